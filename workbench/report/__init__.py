"""One self-contained HTML file that a person can hand over, and the check that it is what it claims to be.

run.py          what a report is made of: runs with their settings and figures
table.py        the comparison table's columns, and how a figure is written
finding.py      the sentence on top, worked out from the table
page.py         the sections: charts and tables
details.py      tables of stalls by cause and of classes
intervals.py    two runs with the intervals of their ratios
verdicts.py     which of the articles' claims the runs can judge
selfcheck.py    how late the client was
download.py     the data of a run, as far as a page should hold it
thinning.py     what is kept where that is not all
ranked.py       percentiles from what is kept
packed.py       tables as gzipped columns
figure.py       a chart in a page; svg.py: its static drawing
reproduce.py    commands that play the runs again
environment.py  hardware, versions, command, without secrets
definitions.py  the terms on the page
html.py         write_report: all of it in one file
frame.py        what pages have in common: template, style, script, policy
seal.py         the digest by which a later change of a page is seen
verify.py       verify_report: reopen the file and check it
parsed.py       what a page holds, and what in it points outside
sheet.py        the claims' verdict sheet as a page, and its check
sheet_charts.py a picture for each claim
pdf.py          the file as PDF, through Chromium
notebook.py     a notebook executed with parameters
export.py       and as a page without a network

Import from the modules: html.py draws with Altair, which takes two seconds to import, and the command line waits for it
only where a report is written.
"""
