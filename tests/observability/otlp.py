"""A receiver of OTLP over HTTP, on loopback: what a Jaeger is to an application."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.processes import HOST


class Receiver:
    """What has come so far."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://{HOST}:{port}"
        self.services = set[str]()
        self.spans = list[Span]()

    def take(self, body: bytes) -> None:
        for one in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services |= {a.value.string_value for a in one.resource.attributes if a.key == "service.name"}
            self.spans += [span for scope in one.scope_spans for span in scope.spans]

    def all(self, name: str) -> list[Span]:
        return [span for span in list(self.spans) if span.name == name]


@contextmanager
def receiving() -> Generator[Receiver, None, None]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                found.take(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer((HOST, 0), Handler)
    found = Receiver(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def told(span: Span) -> dict[str, str | int | bool]:
    """Its attributes."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in span.attributes}
