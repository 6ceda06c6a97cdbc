"""One self-contained HTML file that a person can hand over, and the check that it is what it claims to be.

run.py          what a report is made of: runs with their settings and figures
table.py        the comparison table's columns, and how a figure is written
finding.py      the sentence on top, worked out from the table
page.py         the sections: charts and tables
details.py      tables of stalls by cause and of classes
download.py     the data of a run, column by column
svg.py          their static drawings
environment.py  hardware, versions, command, without secrets
definitions.py  the terms on the page
html.py         write_report: all of it in one file
verify.py       verify_report: reopen the file and check it

Import from the modules: html.py draws with Altair, which takes two seconds to import, and the command line waits for it
only where a report is written.
"""
