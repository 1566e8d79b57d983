"""A module that a job's own process is slow to import."""

from __future__ import annotations

import multiprocessing
import time

from windlass import Windlass

jobs = Windlass("sqlite://")
if multiprocessing.parent_process() is not None:
    time.sleep(2)  # the subject: it takes long to import


@jobs.job(process=True)
def measure(text: str) -> int:
    return len(text)
