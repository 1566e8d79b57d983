"""Which tests failed in a run, by the names that pytest takes: one a line, from the run's cache."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_GROUP = re.compile(r"@[^\]@]+$")
"""what pytest-xdist adds to the name of a test that shares a process with others"""


def failed(cache: Path) -> list[str]:
    """The tests of the run that kept this cache; an empty list where it kept none."""
    kept = cache / "v" / "cache" / "lastfailed"
    return sorted({_GROUP.sub("", name) for name in json.loads(kept.read_text("utf-8"))}) if kept.exists() else []


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}\n" for name in failed(Path(sys.argv[1])))
