"""By name: a process that does not have the handler enqueues for one that does."""

import asyncio

from windlass import PayloadInvalid, Windlass

shop = Windlass()  # the web application: knows the name and the shape of the payload, not the code
office = Windlass()  # the worker's application, on the same store


@office.job(name="invoice.print")
async def print_invoice(order_id: int, *, copies: int = 1) -> str:
    return f"{copies} x invoice {order_id}"


async def main() -> None:
    async with shop, office.worker():
        handle = await shop.enqueue("invoice.print", {"order_id": 42, "copies": 2}, user="ada", entity=("order", 42))
        print(await handle.result(timeout=10))
        about = await shop.jobs.about("order", 42)
        print(f"jobs about order 42: {', '.join(job.type for job in about)}")

        # Without the handler the payload can only be checked when it runs; trying again would not help.
        wrong = await (await shop.enqueue("invoice.print", {"order": 42})).wait(timeout=10)
        assert wrong.error is not None
        print(f"{wrong.status} after {wrong.attempts} attempt: {wrong.error.message}")

        # Where the handler is known, the same payload is refused before it is stored.
        try:
            await office.enqueue("invoice.print", {"order": 42})
        except PayloadInvalid as error:
            print(error)


if __name__ == "__main__":
    asyncio.run(main())
