"""Tracing: one trace from a request to what its jobs did, printed as a tree. Needs windlass[tracing] and the SDK."""

import asyncio

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from windlass import Ctx, Retry, Windlass
from windlass.observability.tracing import instrument

kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))

app = Windlass()
instrument(app, provider)


@app.job(queue="mail")
async def receipt(number: int) -> None: ...


@app.job(queue="orders", retry=Retry(2, base=0.01))
async def order(ctx: Ctx, number: int) -> None:
    await ctx.step("charge", charge, number)
    if ctx.attempt == 1:
        raise ConnectionError("the shop is closed")
    await receipt.enqueue(number)


def charge(number: int) -> str:
    return f"charged {number}"


async def main() -> None:
    ended = asyncio.Event()
    app.listen(lambda event: ended.set() if event.name == "job.ended" and event.job.type == "receipt" else None)
    async with app:
        with provider.get_tracer("shop").start_as_current_span("POST /orders"):
            await order.enqueue(7)
        async with app.worker(poll=0.05):
            await ended.wait()
    spans = sorted(kept.get_finished_spans(), key=lambda span: span.start_time)
    depth = {None: -1}
    for span in spans:
        depth[span.context.span_id] = depth[span.parent and span.parent.span_id] + 1
        told = [event.name for event in span.events if event.name != "exception"]
        told += ["remembered"] if span.attributes.get("windlass.step.remembered") else []
        print("  ".join(["  " * depth[span.context.span_id] + span.name, *told]))


asyncio.run(main())
