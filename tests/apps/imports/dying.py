"""A worker that imports, to be killed: `python -m tests.apps.imports.dying STORE FOLDER`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from windlass import Windlass
from windlass.apps.imports.imports import install
from windlass.apps.imports.settings import ImportsSettings


async def main(url: str, namespace: str, folder: Path) -> None:
    """Work until killed."""
    app = Windlass(url, namespace=namespace)
    install(app, ImportsSettings(folder=folder, uploads=folder / "uploads", batch=20, crashes=1000))
    async with app, app.worker(lease=0.5, poll=0.05, rescue=0.05):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
