"""These run when WINDLASS_TEST_STORES names mongo, as long as that store is in the making."""

from __future__ import annotations

from tests.contract.places import STORES

collect_ignore_glob = [] if "mongo" in STORES else ["test_*.py"]
