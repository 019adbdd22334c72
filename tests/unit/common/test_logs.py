"""The fields of a line of the log, and what it must not contain."""

import json
import logging
import subprocess
import sys

import pytest

SCRIPT = """
import logging, sys
import structlog
from structlog.contextvars import bind_contextvars, bound_contextvars
from flotilla_common import logs
logs.configure(*sys.argv[1:])
bind_contextvars(service="cloneset", replica="r1")
log = structlog.get_logger()
with bound_contextvars(object="default/web", trace="abc"):
    log.debug("planned", numbers={"partition": 2})
    log.info("working", url="nats://user:secret@bus:4222,nats://token@other", plain="https://host/path@x")
log.warning("alone")
logging.getLogger("aiohttp").warning("from %s", "https://me:secret@host/")
"""

LOOP = """
import asyncio
from flotilla_common import logs
logs.configure()
loop = asyncio.new_event_loop()
for message, error in (
    ("Fatal error on SSL protocol", "unable to perform operation on <TCPTransport>; the handler is closed"),
    ("Fatal error on SSL protocol", "another one"),
    ("Task exception was never retrieved", "the handler is closed"),
):
    loop.call_exception_handler({"message": message, "exception": RuntimeError(error)})
"""


def lines(*arguments: str, script: str = SCRIPT) -> list[str]:
    reply = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=30, check=True
    )
    assert reply.stdout == ""
    return reply.stderr.splitlines()


def test_json_lines_carry_who_and_what_and_no_secrets() -> None:
    working, alone, foreign = (json.loads(line) for line in lines("info", "json"))
    assert {"service": "cloneset", "replica": "r1", "object": "default/web", "trace": "abc"}.items() <= working.items()
    assert working["url"] == "nats://***@bus:4222,nats://***@other"
    assert working["plain"] == "https://host/path@x"
    assert (alone["service"], alone["level"], "object" in alone) == ("cloneset", "warning", False)
    assert (foreign["service"], foreign["event"]) == ("cloneset", "from https://***@host/")
    assert alone["timestamp"].endswith("Z")


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("error", 0)])
def test_levels(level: str, count: int) -> None:
    assert len(lines(level, "json")) == count


def test_text_is_for_people() -> None:
    text = lines("debug", "text")
    assert len(text) == 4
    assert "planned" in text[0]
    assert "object=default/web" in text[0]
    assert "{" not in text[1]
    assert "secret" not in "".join(text)
    assert logging.getLevelName(logging.DEBUG).lower() in text[0]


def test_connections_that_end_are_no_errors_of_the_loop() -> None:
    told = [json.loads(line) for line in lines(script=LOOP)]
    assert ["another one" in told[0]["exception"], "the handler" in told[1]["exception"]] == [True, True]
    assert [one["event"] for one in told] == ["Fatal error on SSL protocol", "Task exception was never retrieved"]
