"""Made-up results are shared by the tests of what is done with them, and by those of charts."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
