"""The earlier templates of a workload: its ControllerRevisions, or the ReplicaSets of a Deployment."""

from collections.abc import Iterable, Sequence

import msgspec

from flotilla_common.api.documents import Json, mapping, mappings, member, strings, text
from flotilla_common.api.keys import DEPLOYMENT_REVISION
from flotilla_common.api.numbers import integer
from flotilla_common.api.resources import REPLICA_SET
from flotilla_common.kube.interface import pages
from flotilla_console.actions.client import Client
from flotilla_console.actions.kinds import ActionKind


class Past(msgspec.Struct, frozen=True):
    """An earlier template."""

    name: str
    number: int
    template: Json


async def past_of(api: Client, kind: ActionKind, document: Json) -> Sequence[Past]:
    """Read the templates of a workload, newest first. Raises ApiError, Unreachable."""
    if kind.revisions is None:
        return ()
    metadata = member(document, "metadata")
    listed = pages(api, kind.revisions, text(metadata.get("namespace")))
    found = [mapping(msgspec.json.decode(raw)) async for page in listed for raw in page.items]
    reading = of_replica_sets if kind.revisions == REPLICA_SET else of_revisions
    return reading(text(metadata.get("uid")), found)


def of_revisions(uid: str, found: Iterable[Json]) -> Sequence[Past]:
    """Return the templates in the ControllerRevisions that this workload controls, newest first."""
    own = [one for one in found if _is_controlled(one, uid)]
    return _newest_first(
        Past(_name(one), _number(one.get("revision")), member(one, "data", "spec", "template")) for one in own
    )


def of_replica_sets(uid: str, found: Iterable[Json]) -> Sequence[Past]:
    """Return the templates in the ReplicaSets that this Deployment controls, newest first."""
    own = [one for one in found if _is_controlled(one, uid)]
    return _newest_first(Past(_name(one), _revision(one), member(one, "spec", "template")) for one in own)


def _newest_first(found: Iterable[Past]) -> Sequence[Past]:
    return sorted((one for one in found if one.name and one.template), key=lambda one: (-one.number, one.name))


def _is_controlled(document: Json, uid: str) -> bool:
    owners = mappings(member(document, "metadata").get("ownerReferences"))
    return bool(uid) and any(one.get("uid") == uid and one.get("controller") is True for one in owners)


def _name(document: Json) -> str:
    return text(member(document, "metadata").get("name"))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _revision(replica_set: Json) -> int:
    annotations = strings(member(replica_set, "metadata").get("annotations"))
    return integer(annotations.get(DEPLOYMENT_REVISION, "")) or 0
