"""The child's program: `python -I start.py MODULE GIVEN` runs `MODULE.serve(file, out, asked)` under limits.

`file` is standard input, `out` takes frames. FileRefused, or memory that is not enough, becomes a frame that says so.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

# The package's own start loads the engine, for which a reader of files has no use: it takes a fifth of a second.
_ROOT = Path(__file__).resolve().parents[2]
for _name, _path in (("windlass", _ROOT), ("windlass.apps", _ROOT / "apps")):
    if _name not in sys.modules:
        _stub = ModuleType(_name)
        _stub.__path__ = [str(_path)]
        sys.modules[_name] = _stub

from windlass.apps.limited.bounds import Bounds, follow_parent  # noqa: E402  # after the stubs above
from windlass.apps.limited.frames import write  # noqa: E402  # the same
from windlass.apps.limited.refused import FileRefused  # noqa: E402  # the same


def main() -> None:
    """Serve as asked by the parent, which alone names the module."""
    serve, given = import_module(sys.argv[1]).serve, json.loads(sys.argv[2])
    follow_parent()
    Bounds(**given["bounds"]).bind()
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a library that prints does not print into the frames
    with os.fdopen(0, "rb", closefd=False) as file:
        try:
            serve(file, out, given["asked"])
        except FileRefused as refusal:
            write(out, {"refused": str(refusal)})
        except MemoryError:
            write(out, {"refused": "it needs more memory than a file may: split it into several"})


if __name__ == "__main__":
    main()
