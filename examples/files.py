"""Three writers of one file: its versions come in order, a write that is based on an old version is refused, and an
older version is restored.

Over HTTP it is the same, with `install(app)` alone.
"""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from tempfile import TemporaryDirectory

from windlass import Handle, JobFailed, Windlass
from windlass.apps.files.files import Files, install
from windlass.apps.files.names import name_of
from windlass.apps.files.order import Result
from windlass.apps.files.settings import FilesSettings
from windlass.apps.files.state import Unmet

PAGE = name_of(None, "site", "index.html")


async def write(files: Files, who: str, *based: str) -> Awaitable[str]:
    """Enqueue a write; what is given tells what became of it."""
    try:
        handle = await files.write(PAGE, f"<h1>{who}</h1>".encode(), user=who, path="index.html", if_match=based)
    except Unmet:
        return told(who, None)
    return told(who, handle)


async def told(who: str, handle: Handle[Result] | None) -> str:
    try:
        if handle is not None:
            return f"{who}: written, {(await handle.result(timeout=10))['hash'][:8]}"
    except JobFailed:  # its condition held no more when its turn had come
        pass
    return f"{who}: refused, another version is the current one"


async def main(folder: Path) -> None:
    app = Windlass(f"sqlite:///{folder / 'site.db'}")
    files = install(app, FilesSettings(blobs=str(folder / "blobs"), root=folder / "public"))
    async with app, app.worker():
        print(await (await write(files, "ann")))
        based = (await files.current(PAGE)).sha256
        both = [await write(files, who, based) for who in ("bob", "cem")]  # both have seen ann's version
        for one in both:
            print(await one)
        handle = await files.restore(PAGE, 1)
        await handle.result(timeout=10)
        for version in (await files.state(PAGE)).versions:
            print(f"version of {version.who or 'nobody'}: {version.size} bytes, {version.sha256[:8]}")
    print("on disk:", (folder / "public" / "site" / "index.html").read_text())


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))
