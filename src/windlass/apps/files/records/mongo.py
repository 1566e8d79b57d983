"""Records in MongoDB: a document for each file; each change compares and sets its revision."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from pymongo import ASCENDING, AsyncMongoClient
from pymongo.errors import DuplicateKeyError, PyMongoError

from windlass import StoreUnavailable
from windlass.apps.files.names import Name, Space
from windlass.apps.files.records.records import NOTHING, Held, Listed, PathTaken, Project, Swapping, Usage
from windlass.apps.files.state import State, dump, load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator

_TIMEOUT_MS = 10_000


class MongoRecords(Swapping):
    """Records as documents of a MongoDB database, read from its primary and written to a majority."""

    def __init__(self, url: str, database: str, namespace: str) -> None:
        super().__init__()
        self._client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(
            url,
            w="majority",
            readConcernLevel="majority",
            readPreference="primary",
            timeoutMS=_TIMEOUT_MS,
            appname="windlass files",
        )
        self._files = self._client[database][f"{namespace}_files"]

    async def prepare(self) -> None:
        """Make the indexes that are missing."""
        project = [("owner", ASCENDING), ("project", ASCENDING)]
        with _told():
            await self._files.create_index([*project, ("file", ASCENDING)], unique=True)
            await self._files.create_index(
                [*project, ("disk", ASCENDING)], unique=True, partialFilterExpression={"disk": {"$type": "string"}}
            )

    async def held(self, name: Name) -> Held:
        """What is there."""
        with _told():
            found = await self._files.find_one({"_id": _key(name)}, {"revision": 1, "state": 1})
        return NOTHING if found is None else Held(found["revision"], load(found["state"]))

    async def swap(self, name: Name, revision: int, state: State) -> bool:
        """Put a state in the place of another."""
        values = {
            "there": int(state.is_there),
            "bytes": state.bytes,
            "waiting": len(state.waiting),
            "state": dump(state),
            **({} if state.disk is None else {"disk": state.disk}),
        }
        with _told():
            try:
                if revision:
                    told = await self._files.update_one(
                        {"_id": _key(name), "revision": revision}, {"$set": {**values, "revision": revision + 1}}
                    )
                    return told.matched_count == 1
                space = name.space
                await self._files.insert_one(
                    {
                        "_id": _key(name),
                        "owner": space.owner,
                        "project": space.project,
                        "file": name.file,
                        "revision": 1,
                        **values,
                    }
                )
            except DuplicateKeyError as error:
                if "disk" in ((error.details or {}).get("keyPattern") or {}):
                    raise PathTaken from None
                return False
        return True

    async def usage(self, space: Space) -> Usage:
        """What a project takes."""
        total = {"_id": None, "files": {"$sum": "$there"}, "bytes": {"$sum": "$bytes"}}
        with _told():
            made = await self._files.aggregate([{"$match": _of(space)}, {"$group": total}])
            found = await made.to_list()
        return Usage(found[0]["files"], found[0]["bytes"]) if found else Usage(0, 0)

    async def files(self, space: Space, after: str, most: int) -> list[Listed]:
        """Files of a project by their names."""
        with _told():
            found = self._files.find({**_of(space), "file": {"$gt": after}}, sort=[("file", ASCENDING)], limit=most)
            return [Listed(Name(space, one["file"]), load(one["state"])) async for one in found]

    async def projects(self, owner: str | None, after: Space | None, most: int) -> list[Project]:
        """Projects in order."""
        where: dict[str, Any] = {} if owner is None else {"owner": owner}
        if after is not None:
            same = {"owner": after.owner, "project": {"$gt": after.project}}
            where = {"$and": [where, {"$or": [{"owner": {"$gt": after.owner}}, same]}]}
        counted = {name: {"$sum": f"${name}"} for name in ("bytes", "waiting")}
        group = {"_id": {"owner": "$owner", "project": "$project"}, "files": {"$sum": "$there"}, **counted}
        steps: list[dict[str, Any]] = [
            {"$match": where},
            {"$group": group},
            {"$sort": {"_id.owner": 1, "_id.project": 1}},
            {"$limit": most},
        ]
        with _told():
            made = await self._files.aggregate(steps)
            found = await made.to_list()
        return [Project(Space(**one["_id"]), one["files"], one["bytes"], one["waiting"]) for one in found]

    async def walk(self) -> AsyncIterator[Listed]:
        """All files."""
        with _told():
            async for one in self._files.find({}, sort=[("_id", ASCENDING)]):
                yield Listed(Name(Space(one["owner"], one["project"]), one["file"]), load(one["state"]))

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


def _key(name: Name) -> str:
    """Names hold no line breaks."""
    return "\n".join((*name.space, name.file))


def _of(space: Space) -> dict[str, str]:
    return {"owner": space.owner, "project": space.project}


@contextlib.contextmanager
def _told() -> Generator[None]:
    """The driver's errors in windlass's words."""
    try:
        yield
    except PyMongoError as error:
        raise StoreUnavailable(f"the records of files cannot be used: {str(error)[:200]}") from error
