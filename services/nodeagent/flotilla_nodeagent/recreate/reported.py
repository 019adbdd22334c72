"""A request's status as the agent knows it: what the channel says, or what it has reported since (§7.1).

The channel shows an accepted report a moment later. Until then the report counts, so that nothing is done twice.
"""

import msgspec

from flotilla_common.api.kinds.containerrecreaterequest.types import COMPLETED, ContainerRecreateRequest, RecreateState
from flotilla_nodeagent.channel.copies import version


class View(msgspec.Struct, frozen=True):
    """Phase and states of a request."""

    phase: str
    states: list[RecreateState]


class _Overlay(msgspec.Struct, frozen=True):
    view: View
    seen: int  # the version of the copy when we reported
    written: int  # the version that the report became; 0: nothing had to be written


class Reported:
    """Accepted reports by the request's uid."""

    def __init__(self) -> None:
        self._overlays: dict[str, _Overlay] = {}

    def view(self, request: ContainerRecreateRequest) -> View:
        """The newest that is known."""
        overlay = self._overlays.get(request.metadata.uid)
        if overlay is not None:
            current = version(request)
            if current < overlay.written or (not overlay.written and current <= overlay.seen):
                done = request.status.phase == COMPLETED
                return View(COMPLETED, overlay.view.states) if done else overlay.view
        return View(request.status.phase, request.status.container_recreate_states)

    def accepted(self, request: ContainerRecreateRequest, view: View, resource_version: str) -> None:
        """The view is what has been reported."""
        self._overlays[request.metadata.uid] = _Overlay(view, version(request), int(resource_version or 0))

    def keep(self, uids: set[str]) -> None:
        """Forget all other requests."""
        for uid in self._overlays.keys() - uids:
            del self._overlays[uid]
