"""An application as its users trace theirs: with the SDK, sent by OTLP; run by real workers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from opentelemetry import baggage, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from windlass import Ctx, Retry, Windlass
from windlass.observability.tracing import instrument

if "OTEL_EXPORTER_OTLP_ENDPOINT" in os.environ:
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)

app = Windlass(os.environ.get("SHOP_URL", "sqlite://"))
instrument(app)


@app.job(queue="apart", process=True, retry=Retry(2, base=0.001))
def apart(ctx: Ctx) -> str:
    """Take a step, and fail the first time."""
    with trace.get_tracer("shop").start_as_current_span("inside"):
        ctx.step_now("count", int)
    if ctx.attempt == 1:
        raise ValueError("password=hunter2")
    return str(baggage.get_baggage("tenant"))


@app.job(queue="held")
async def hold(folder: str) -> None:
    """Begin, and end when that is allowed."""
    (Path(folder) / f"begun-{os.getpid()}").touch()
    while not (Path(folder) / "go").exists():
        await asyncio.sleep(0.01)  # a file cannot be waited for otherwise
