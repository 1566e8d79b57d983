"""Retries: a policy for errors, a signal for what the handler knows better, and what ends a job at once."""

import asyncio

from windlass import Ctx, JobFailed, Reject, Retry, Snooze, Windlass

app = Windlass()


@app.job(retry=Retry(4, base=0.05, jitter=False))
async def fetch(ctx: Ctx, url: str) -> str:
    if ctx.attempt < 3:
        raise ConnectionError(f"attempt {ctx.attempt}: {url} did not answer")
    return f"{url} answered at attempt {ctx.attempt}"


@app.job(retry=3)
async def call_busy_service(ctx: Ctx) -> str:
    if ctx.attempt == 1:
        raise Retry(after=0.1)  # the service said when: this wait counts instead of the policy's
    return f"the service took it at attempt {ctx.attempt}"


@app.job(retry=Retry(5, never=(ValueError,)))
async def parse(text: str) -> int:
    return int(text)


@app.job
async def charge(card: str) -> None:
    raise Reject(f"card {card} is blocked")


naps = 0


@app.job(retry=1)
async def wait_for_file(ctx: Ctx) -> str:
    global naps  # noqa: PLW0603  # stands for a file that appears later
    if naps == 0:
        naps += 1
        raise Snooze(0.1, "the file is not there yet")
    return f"the file came; attempt {ctx.attempt} is still the first"


async def main() -> None:
    async with app.worker():
        print(await (await fetch.enqueue("http://shop.example")).result(timeout=10))
        print(await (await call_busy_service.enqueue()).result(timeout=10))
        print(await (await wait_for_file.enqueue()).result(timeout=10))
        for handle in (await parse.enqueue("ten"), await charge.enqueue("1234")):
            try:
                await handle.result(timeout=10)
            except JobFailed as failed:
                error = failed.job.error
                assert error is not None
                print(f"{failed.job.status} after {failed.job.attempts} attempt: {error.type}: {error.message}")


if __name__ == "__main__":
    asyncio.run(main())
