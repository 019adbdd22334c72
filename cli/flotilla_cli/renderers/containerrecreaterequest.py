"""ContainerRecreateRequest: a card with its containers."""

from functools import partial

import msgspec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_common.api.keys import RECREATE_NODE_NAME
from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest


def recreate_request(raw: bytes) -> Rendering:
    """The containers, how far each is, and the ID that its new one has."""
    request = msgspec.json.decode(raw, type=ContainerRecreateRequest)
    status, node = request.status, request.metadata.labels.get(RECREATE_NODE_NAME, "?")
    headline = f"{status.phase or 'not taken up'}: pod {request.spec.pod_name} on {node}"
    if status.message:
        headline += f", {status.message}"
    states = {state.name: state for state in status.container_recreate_states}
    seen = {container.name: container for container in status.container_status_snapshot}
    rows: list[tuple[str, ...]] = []
    for container in request.spec.containers:
        state, new = states.get(container.name), seen.get(container.name)
        rows.append(
            (
                container.name,
                state.phase if state else "-",
                ("yes" if state.is_killed else "no") if state else "-",
                short_id(new.container_id) if new else "-",
                ("yes" if new.ready else "no") if new else "-",
                state.message if state else "",
            )
        )
    return Rendering(headline, ("CONTAINER", "STATE", "KILLED", "NEW ID", "READY", "MESSAGE"), rows)


def short_id(identity: str) -> str:
    """A container's ID without its runtime, as container tools shorten it."""
    return identity.rpartition("/")[2][:12]


picture: Opener = partial(LiveCard, recreate_request)
