"""Records in Redis: each change is one script that compares, sets and counts. All keys of a project share a slot."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from windlass import StoreUnavailable
from windlass.apps.files.names import Name, Space
from windlass.apps.files.records.records import NOTHING, Held, Listed, PathTaken, Project, Swapping, Usage
from windlass.apps.files.state import State, dump, load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator

_SWAP = Path(__file__).parent / "swap.lua"
_PAGE = 500
_TAKEN = -1


class RedisRecords(Swapping):
    """Records in a Redis: as durable as that is told to be."""

    def __init__(self, url: str, namespace: str) -> None:
        super().__init__()
        self._redis: Any = Redis.from_url(url, decode_responses=True, socket_timeout=10, socket_connect_timeout=10)  # pyright: ignore[reportUnknownMemberType]  # its options have no types
        self._prefix = f"{namespace}:files:"
        self._swap = self._redis.register_script(_SWAP.read_text(encoding="utf-8"))

    async def prepare(self) -> None:
        """There is nothing to make."""
        with _told():
            await self._redis.ping()

    async def held(self, name: Name) -> Held:
        """What is there."""
        with _told():
            revision, state = await self._redis.hmget(self._keys(name)[0], "revision", "state")
        return NOTHING if revision is None else Held(int(revision), load(state))

    async def swap(self, name: Name, revision: int, state: State) -> bool:
        """Put a state in the place of another."""
        with _told():
            if not revision:
                await self._redis.zadd(self._listing, {_text(name.space): 0})
            told = await self._swap(
                keys=self._keys(name),
                args=[
                    revision,
                    name.file,
                    dump(state),
                    state.bytes,
                    len(state.waiting),
                    state.disk or "",
                    int(state.is_there),
                ],
            )
        if told == _TAKEN:
            raise PathTaken
        return bool(told)

    async def usage(self, space: Space) -> Usage:
        """What a project takes."""
        with _told():
            files, taken = await self._redis.hmget(self._at(space, "usage"), "files", "bytes")
        return Usage(int(files or 0), int(taken or 0))

    async def files(self, space: Space, after: str, most: int) -> list[Listed]:
        """Files of a project by their names."""
        with _told():
            names = await self._redis.zrangebylex(self._at(space, "names"), f"({after}", "+", start=0, num=most)
            states = await asyncio.gather(*(self.read(Name(space, name)) for name in names))
        return [
            Listed(Name(space, name), state) for name, state in zip(names, states, strict=True) if state is not None
        ]

    async def projects(self, owner: str | None, after: Space | None, most: int) -> list[Project]:
        """Projects in order."""
        least = "-" if owner is None else f"[{owner}\n"
        least = least if after is None else max(least, f"({_text(after)}", key=lambda bound: bound[1:])
        highest = "+" if owner is None else f"({owner}\x0b"  # behind the line break
        found: list[Project] = []
        with _told():
            while len(found) < most:
                texts = await self._redis.zrangebylex(self._listing, least, highest, start=0, num=most)
                for text in texts:
                    space = Space(*text.split("\n"))
                    files, taken, waiting = await self._redis.hmget(
                        self._at(space, "usage"), "files", "bytes", "waiting"
                    )
                    if int(files or 0):
                        found.append(Project(space, int(files), int(taken), int(waiting or 0)))
                if not texts:
                    break
                least = f"({texts[-1]}"
        return found[:most]

    async def walk(self) -> AsyncIterator[Listed]:
        """All files."""
        last: Space | None = None
        while projects := await self.projects(None, last, _PAGE):
            for one in projects:
                after = ""
                while listed := await self.files(one.space, after, _PAGE):
                    for file in listed:
                        yield file
                    after = listed[-1].name.file
            last = projects[-1].space

    async def close(self) -> None:
        """Close the pool."""
        await self._redis.aclose()

    @property
    def _listing(self) -> str:
        return f"{self._prefix}projects"

    def _at(self, space: Space, what: str) -> str:
        # Names may hold braces: what stands in ours is hexadecimal, so that a project is one slot of a cluster.
        return f"{self._prefix}{{{_text(space).encode().hex()}}}:{what}"

    def _keys(self, name: Name) -> list[str]:
        """Of the file, the names of its project, what it takes, and its places on disk."""
        space = name.space
        return [
            self._at(space, f"file:{name.file}"),
            *(self._at(space, what) for what in ("names", "usage", "disk")),
        ]


def _text(space: Space) -> str:
    """Names hold no line breaks."""
    return "\n".join(space)


@contextlib.contextmanager
def _told() -> Generator[None]:
    """The driver's errors in windlass's words."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"the records of files cannot be used: {error}") from error
