"""Tests of the documents read them with blocks.py, which lies here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
