"""Reads events and logs of pods as the user."""

from collections.abc import Sequence

import msgspec

from flotilla_common.api.resources import EVENT, POD
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.workload.causes import PodEvent
from flotilla_console.access.acting import Acting, Refused
from flotilla_console.access.identity import Identity


class _Events(msgspec.Struct):
    items: list[PodEvent]


MOST_EVENTS = 200

_decode = msgspec.json.Decoder(_Events).decode


class UserReader:
    """Reads events and logs, which the mirror does not have."""

    def __init__(self, acting: Acting, *, most_lines: int, most_bytes: int) -> None:
        self._acting, self._most_lines, self._most_bytes = acting, most_lines, most_bytes

    async def events(self, identity: Identity, namespace: str, uid: str) -> Sequence[PodEvent]:
        """Return the events of the object with this uid. Raises ApiError and Unreachable."""
        try:
            return _decode(await self._acting.client(identity).list(EVENT, namespace, _of(uid))).items
        except Refused as error:
            raise ApiError(error.code, "Refused", str(error)) from error
        except msgspec.MsgspecError as error:
            raise Unreachable(f"events of {namespace}: the answer is not a list: {error}") from error

    async def log(
        self, identity: Identity, namespace: str, name: str, container: str, *, previous: bool, lines: int
    ) -> str:
        """Return the last lines of a container's log. Raises ApiError and Unreachable."""
        wanted = min(lines, self._most_lines)
        try:
            text = await self._acting.client(identity).log(
                POD, namespace, name, container, lines=wanted, most_bytes=self._most_bytes, previous=previous
            )
        except Refused as error:
            raise ApiError(error.code, "Refused", str(error)) from error
        return text.decode(errors="replace")


def _of(uid: str) -> dict[str, str]:
    return {"fieldSelector": f"involvedObject.uid={uid}", "limit": str(MOST_EVENTS)}
