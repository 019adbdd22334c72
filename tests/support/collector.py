"""An OTLP collector for tests: takes traces over HTTP, as a real one does, and keeps their spans.

    with collector() as traces:
        … --otlp-endpoint traces.endpoint …
        await eventually(lambda: traces.of(change(uid, 2).trace_id))

It runs on threads of its own, since tests that wait with kubectl keep their event loop busy.
"""

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Arrived(msgspec.Struct, frozen=True):
    """A span as a collector stores it."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str  # empty: a root
    attributes: dict[str, str]


class Collector(ThreadingHTTPServer):
    """An HTTP server that keeps the spans that have arrived."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Endpoint)
        self.spans: list[Arrived] = []

    @property
    def endpoint(self) -> str:
        """Return the collector's base address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def of(self, trace_id: str) -> list[Arrived]:
        """Return the spans of one trace."""
        return [span for span in self.spans if span.trace_id == trace_id]

    def take(self, body: bytes) -> None:
        """Keep the spans of one export."""
        request = ExportTraceServiceRequest.FromString(body)
        for of_process in request.resource_spans:
            about = {one.key: one.value.string_value for one in of_process.resource.attributes}
            for span in (span for scope in of_process.scope_spans for span in scope.spans):
                attributes = {one.key: one.value.string_value for one in span.attributes}
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                self.spans.append(Arrived(about["service.name"], span.name, *ids, attributes))


class _Endpoint(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        known = self.path == "/v1/traces"
        if known:
            self.server.take(body)
        self.send_response(200 if known else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:  # pytest's output is for tests
        pass


@contextmanager
def collector() -> Generator[Collector]:
    """Run a collector on a free port."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
