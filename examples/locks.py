"""Locks: one holder at a time over all processes, and a token by which a resource can refuse a late one."""

import asyncio

from windlass import LockHeld, Windlass

app = Windlass()
largest = 0


def write(page: str, token: int) -> str:
    """A resource that remembers the largest token it has seen refuses an earlier holder of the lock."""
    global largest  # noqa: PLW0603  # it plays a server
    if token < largest:
        return f"{page}: refused, a later holder was here"
    largest = token
    return f"{page}: written"


async def main() -> None:
    async with app:
        async with app.lock("site", ttl=30) as first:
            try:
                async with app.lock("site"):
                    print("never: somebody holds it")
            except LockHeld as held:
                print(f"{held.name} is held")
            first.check()  # raises LockLost if it is no longer ours
            print(write("home", first.token))
        async with app.lock("site", wait=5) as second:  # waits up to five seconds if it must
            print(write("home", second.token))
        print(write("home", first.token))


if __name__ == "__main__":
    asyncio.run(main())
