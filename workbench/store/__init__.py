"""Runs on disk: one folder a run, Parquet inside, DuckDB over all of them.

folder.py     the root and its run folders
meta.py       ``run.json``: read, write, and what it says of a run now
listing.py    list and delete runs
owner.py      is the process that writes a run still alive?
streams.py    Arrow streams that a kill -9 can cut anywhere
writer.py     RunWriter: takes rows while a run goes on
in_order.py   sorts what is nearly in order, piece by piece
compact.py    streams to Parquet, at the end of a run or after a crash
reader.py     open_run: a trace from a folder, whatever state it was left in
snapshot.py   a run as it is now, in a folder of its own
catalogue.py  SQL over all runs
"""

from workbench.store.catalogue import catalogue
from workbench.store.folder import default_root, handed_over, new_run_folder, prepare_root, run_folder
from workbench.store.listing import delete_run, list_runs
from workbench.store.reader import open_run
from workbench.store.snapshot import snapshot
from workbench.store.writer import RunWriter

__all__ = [
    "RunWriter",
    "catalogue",
    "default_root",
    "delete_run",
    "handed_over",
    "list_runs",
    "new_run_folder",
    "open_run",
    "prepare_root",
    "run_folder",
    "snapshot",
]
