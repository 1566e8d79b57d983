"""Failed attempts as issues in Sentry, or in anything that speaks its protocol: `pip install sentry-sdk`.

Set SENTRY_DSN and run it; without one, nothing is sent.
"""

import asyncio
import os

import sentry_sdk
from sentry_sdk.integrations.logging import ignore_logger

from windlass import Failure, Windlass

# Local variables are left out: they are what a payload is made of.
sentry_sdk.init(os.environ.get("SENTRY_DSN"), include_local_variables=False)
ignore_logger("windlass.jobs")  # it would make of each failure another issue, without what is known here
app = Windlass(os.environ.get("WINDLASS_URL", "sqlite:///sentry.db"))


@app.on_error
def report(failure: Failure) -> None:
    print(f"{failure.type} failed, attempt {failure.attempt}: {failure.error.type}")
    with sentry_sdk.new_scope() as scope:
        scope.set_tag("job.type", failure.type)
        scope.set_tag("job.queue", failure.queue)
        scope.set_tag("job.final", failure.final)
        scope.set_user(None if failure.user is None else {"id": failure.user})
        scope.set_context(
            "job",
            {
                "id": failure.id,
                "attempt": f"{failure.attempt} of {failure.max_attempts}",
                "correlation": failure.correlation,
                "worker": failure.worker,
                "tags": list(failure.tags),
            },
        )
        scope.level = "error" if failure.final else "warning"
        if failure.raised is not None:
            scope.capture_exception(failure.raised)
        else:  # of a process that died, or raised what only its words are known of
            told = {"type": failure.error.type, "value": failure.error.message}
            scope.capture_event({"exception": {"values": [told]}, "extra": {"traceback": failure.error.traceback}})


@app.job(retry=1)
async def charge(order: int) -> None:
    raise ConnectionError(f"the bank does not answer for order {order}")


async def main() -> None:
    async with app:
        await charge.using(user="ann").enqueue(7)
        await app.worker(drain=True).run()


if __name__ == "__main__":
    asyncio.run(main())
