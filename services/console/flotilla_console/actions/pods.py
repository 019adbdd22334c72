"""Changes of chosen pods: they are deleted, or their containers are restarted where they run."""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.keys import SPECIFIED_DELETE_LABEL
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import PatchType
from flotilla_console.actions.client import Client
from flotilla_console.actions.fields import Fields, InvalidField

PREFIX = "pod."
"""Prefix of the fields of chosen pods; the name follows, the value is the uid."""

MOST = 50
"""Pods that one form may choose."""

REQUEST_SECONDS = 3600
"""Time for which a finished request of a restart is kept."""


class Chosen(msgspec.Struct, frozen=True):
    """A pod that the user has chosen, by the uid that they saw."""

    name: str
    uid: str


class Replaced(Exception):
    """Another pod has the name now."""


def chosen(fields: Fields) -> Sequence[Chosen]:
    """Return the chosen pods, in the order of their names. Raises InvalidField."""
    found = [Chosen(key.removeprefix(PREFIX), uid) for key, uid in sorted(fields.items()) if key.startswith(PREFIX)]
    if not found or not all(one.name and one.uid for one in found):
        raise InvalidField("pods", "choose at least one pod")
    if len(found) > MOST:
        raise InvalidField("pods", f"choose at most {MOST} pods at a time: {len(found)} are chosen")
    return found


def of_workload(pods: Sequence[Chosen], own: Mapping[str, str]) -> None:
    """Check that these pods belong to the workload; `own`: its pods' uids by name. Raises InvalidField."""
    for pod in pods:
        if own.get(pod.name) != pod.uid:
            raise InvalidField("pods", f"pod {pod.name} is not one of this workload, or was replaced meanwhile")


async def mark(api: Client, namespace: str, pod: Chosen) -> None:
    """Ask the pod's controller to delete it, within its limits. Raises ApiError, Unreachable."""
    body = {"metadata": {"uid": pod.uid, "labels": {SPECIFIED_DELETE_LABEL: "true"}}}
    await api.patch(POD, namespace, pod.name, msgspec.json.encode(body), PatchType.MERGE)


async def delete(api: Client, namespace: str, pod: Chosen) -> None:
    """Delete the pod at once. Raises ApiError, Unreachable."""
    await api.delete(POD, namespace, pod.name, uid=pod.uid)


async def restart(api: Client, namespace: str, pod: Chosen) -> None:
    """Ask the node's agent to restart the pod's containers. Raises Replaced, ApiError, Unreachable."""
    raw = await api.get(POD, namespace, pod.name)
    if metadata_of(raw).uid != pod.uid:
        raise Replaced(f"pod {pod.name} was replaced meanwhile by another one of the same name")
    await api.create(RECREATE_REQUEST, namespace, msgspec.json.encode(request_of(metadata_of(raw), containers_of(raw))))


def request_of(pod: ObjectMeta, containers: Sequence[str]) -> Json:
    """Return the request to restart these containers of a pod."""
    return {
        **RECREATE_REQUEST.type_meta,
        "metadata": {"generateName": f"{pod.name}-", "namespace": pod.namespace},
        "spec": {
            "podName": pod.name,
            "containers": [{"name": name} for name in containers],
            "ttlSecondsAfterFinished": REQUEST_SECONDS,
        },
    }


def containers_of(raw: bytes) -> Sequence[str]:
    """Return the names of a pod's containers."""
    spec = member(mapping(msgspec.json.decode(raw)), "spec")
    return [text(one.get("name")) for one in mappings(spec.get("containers"))]
