"""Calls an application as a server would call it."""

from typing import Any

from fastapi import FastAPI


async def call(
    app: FastAPI, path: str, body: bytes, kind: str = "application/json", method: str = "POST", *, closed: bool = False
) -> tuple[int, bytes]:
    """Return the status and the body of the answer. `closed`: the sender closes its connection before the end."""
    chunks = [body[start : start + 65536] for start in range(0, len(body), 65536)] or [b""]
    answer: dict[str, Any] = {"status": 0, "body": b""}

    async def receive() -> dict[str, Any]:
        if not chunks:
            return {"type": "http.disconnect"}
        chunk = chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": closed or bool(chunks)}

    async def send(message: Any) -> None:
        answer["status"] = message.get("status", answer["status"])
        answer["body"] += message.get("body", b"")

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(b"content-type", kind.encode())],
        "query_string": b"",
        "root_path": "",
    }
    await app(scope | {"asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "https"}, receive, send)
    return answer["status"], answer["body"]
