"""Uniqueness: one live job per key, debouncing, and work that is the same work within a day."""

import asyncio

from windlass import DuplicateJob, Windlass

app = Windlass()


@app.job(unique="recount:{facility}")
async def recount(facility: str) -> str:
    return f"{facility} recounted"


@app.job(unique="index:{page}")
async def index(page: str, text: str) -> str:
    return f"{page} indexed with {text!r}"


@app.job(idempotent=True)
async def welcome(email: str) -> str:
    return f"{email} welcomed"


async def main() -> None:
    async with app:
        first = await recount.enqueue("north")
        second = await recount.enqueue("north")
        print(f"second created: {second.created}, same job: {second.id == first.id}")
        try:
            await recount.using(on_conflict="raise").enqueue("north")
        except DuplicateJob as duplicate:
            print(f"refused for job {'first' if duplicate.existing == first.id else 'another'}")

        # Each edit replaces the waiting job and puts it off again, but never beyond a minute from the first.
        typing = index.using(delay=0.2, on_conflict="replace", longest_wait=60)
        for text in ("w", "wi"):
            await typing.enqueue("home", text)
        debounced = await typing.enqueue("home", "windlass")

        welcomed = await welcome.enqueue("ada@example.com")

        async with app.worker():
            print(await first.result(timeout=10))
            print(await debounced.result(timeout=10))
            print(await welcomed.result(timeout=10))
        again = await welcome.enqueue("ada@example.com")
        print(f"welcomed again: {again.created}")
        print(f"recounted again: {(await recount.enqueue('north')).created}")


if __name__ == "__main__":
    asyncio.run(main())
