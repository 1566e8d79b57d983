"""The child's own program, which finds modules of the tests, too: it looks nowhere but where windlass is installed."""

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

sys.path.insert(0, str(ROOT))
runpy.run_path(str(ROOT / "src" / "windlass" / "apps" / "limited" / "start.py"), run_name="__main__")
