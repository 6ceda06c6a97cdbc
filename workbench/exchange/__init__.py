"""Runs for other tools, and other tools' results as runs.

perfetto.py   a trace as a Chrome trace event file, for ui.perfetto.dev and chrome://tracing
tables.py     a trace as CSV or Parquet files and back, exactly; as pandas data frames
results.py    which tool wrote a result file
vllm_bench.py, guidellm.py, aiperf.py   one reader a tool: a result file as a trace, with what it holds
rows.py       what the readers have in common
importing.py  a result file as a run folder
"""

from workbench.exchange.importing import import_file, record
from workbench.exchange.perfetto import write_perfetto
from workbench.exchange.results import read_results
from workbench.exchange.tables import read_csv, read_parquet, to_pandas, write_csv, write_parquet

__all__ = [
    "import_file",
    "read_csv",
    "read_parquet",
    "read_results",
    "record",
    "to_pandas",
    "write_csv",
    "write_parquet",
    "write_perfetto",
]
