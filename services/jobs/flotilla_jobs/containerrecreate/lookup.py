"""Asking the apiserver itself before a pod is taken for gone.

A request ends for good when its pod is gone, and the mirror may have heard of the request before it hears of the pod:
they come in different streams. So absence in the mirror is only a reason to ask.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from flotilla_common.api.containerrecreaterequest import ContainerRecreateRequest
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_jobs.containerrecreate.snapshot import pod_uid

RETRY_SECONDS = 2.0
"""Between questions that were not answered."""


class PodLookup:
    """Remembers for which requests the apiserver has said that their pod is gone."""

    def __init__(
        self,
        *,
        read: Callable[[str, str], Awaitable[object]],
        held: Callable[[str, str], str],
        again: Callable[[str, str], None],
        clock: Clock,
    ) -> None:
        """`read` brings a pod into the mirror, `held` gives the uid of the one that is there, `again` plans a
        request."""
        self._read = read
        self._held = held
        self._again = again
        self._clock = clock
        self._gone: set[str] = set()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._log = structlog.get_logger()

    def surely_gone(self, request: ContainerRecreateRequest) -> bool:
        """The apiserver has said so. If it has not been asked yet, it is, and the request is planned again after."""
        uid = request.metadata.uid
        if uid in self._gone:
            return True
        if uid not in self._asking:
            task = self._asking[uid] = asyncio.get_running_loop().create_task(self._ask(request))
            task.add_done_callback(lambda _: self._asking.pop(uid, None))
        return False

    def forget(self, request: ContainerRecreateRequest) -> None:
        """The request does not exist any more."""
        self._gone.discard(request.metadata.uid)

    async def _ask(self, request: ContainerRecreateRequest) -> None:
        namespace, name = request.metadata.namespace, request.spec.pod_name
        while True:
            try:
                await self._read(namespace, name)
                break
            except (ApiError, Unreachable) as error:
                self._log.warning("cannot look the pod up", pod=f"{namespace}/{name}", error=str(error))
                await self._clock.sleep(RETRY_SECONDS)
        if self._held(namespace, name) != pod_uid(request):
            self._gone.add(request.metadata.uid)
        self._again(namespace, request.metadata.name)
