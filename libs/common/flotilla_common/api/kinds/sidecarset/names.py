"""Names of a SidecarSet's containers in pods (sidecarset.md §6.10)."""

from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.kinds.sidecarset.types import HOT_UPGRADE


def is_hot(container: Json) -> bool:
    """Report whether the container is injected as two, one of which idles."""
    return member(container, "upgradeStrategy").get("upgradeType") == HOT_UPGRADE


def names_in_pods(container: Json) -> tuple[str, ...]:
    """Return the names that the container may have in a pod."""
    name = text(container.get("name"))
    return (name, f"{name}-1", f"{name}-2") if is_hot(container) else (name,)
