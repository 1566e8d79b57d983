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

        # The worker has told what its handler takes: a payload that does not fit is refused before it is stored, with
        # the same words as where the handler is at hand.
        for app in (shop, office):
            try:
                await app.enqueue("invoice.print", {"order": 42})
            except PayloadInvalid as error:
                print(error)


if __name__ == "__main__":
    asyncio.run(main())
