"""Configures logs: one line per event, with service and replica, and with the object and the trace id of a pass.

These fields are bound to the running task (structlog's contextvars), so that all lines of the task have them. The
format is JSON by default, text for people.
"""

import logging
import re
import sys

import structlog

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")
"""Matches user and password in a URL, such as that of a NATS server."""


def configure(level: str = "info", fmt: str = "json") -> None:
    """Set up structlog and the standard library's logging to write the same lines to standard error."""
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _without_credentials,
    ]
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer() if fmt == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared))
    handler.addFilter(_is_news)
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)


def _is_news(record: logging.LogRecord) -> bool:
    """Return False for uvloop's report of a TLS connection that its peer closed before all data was read.

    uvloop logs it as a fatal error, but the reader of the connection gets an exception anyway.
    """
    error = record.exc_info[1] if record.exc_info else None
    closed = isinstance(error, RuntimeError) and str(error).endswith("the handler is closed")
    return not (closed and record.getMessage().startswith("Fatal error on SSL protocol"))


def _without_credentials(
    _logger: structlog.types.WrappedLogger, _method: str, event: structlog.types.EventDict
) -> structlog.types.EventDict:
    for key, value in event.items():
        if isinstance(value, str) and "://" in value:
            event[key] = _CREDENTIALS.sub("***", value)
    return event
