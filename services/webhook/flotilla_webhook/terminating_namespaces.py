"""Reads from the apiserver whether namespaces are being deleted. Concurrent requests share a read."""

import asyncio

import structlog

from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import NAMESPACE
from flotilla_common.kube.interface import Api

_log = structlog.get_logger()


class TerminatingNamespaces:
    """The reads in progress."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reading: dict[str, asyncio.Task[bool]] = {}  # by namespace

    async def is_terminating(self, namespace: str) -> bool:
        """Report whether the namespace is being deleted or is gone; False if it cannot be read."""
        reading = self._reading.get(namespace)
        if reading is None:
            reading = self._reading[namespace] = asyncio.create_task(self._read(namespace))
            reading.add_done_callback(lambda _: self._reading.pop(namespace, None))
        return await asyncio.shield(reading)

    async def _read(self, name: str) -> bool:
        try:
            body = await found_or_none(self._api.get(NAMESPACE, "", name))
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot read a namespace", name=name, why=str(failure))
            return False
        return body is None or metadata_of(body).deletion_timestamp is not None
