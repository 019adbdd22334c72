"""The scale subresource: an autoscaling/v1 Scale as another view of an object."""

from collections.abc import Callable

from flotilla_common.api.documents import member
from flotilla_common.control.plan import Json
from tests.simulation.apiserver import errors
from tests.simulation.apiserver.kinds.custom import CustomKind, at_path, with_path

Change = Callable[[Json], Json]


def view(kind: CustomKind, document: Json) -> Json:
    """Return the object's Scale. Raises ApiError 500 for an object without replicas."""
    paths, metadata = kind.scale_paths, document["metadata"]
    seen = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Json = {"replicas": at_path(document, paths["statusReplicasPath"]) or 0}
    if "labelSelectorPath" in paths and (selector := at_path(document, paths["labelSelectorPath"])):
        status["selector"] = selector
    wanted = at_path(document, paths["specReplicasPath"])
    if wanted is None:
        raise errors.internal(f'the spec replicas field "{paths["specReplicasPath"]}" does not exist')
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in seen if key in metadata},
        "spec": {} if not wanted else {"replicas": wanted},
        "status": status,
    }


def apply(kind: CustomKind, document: Json, change: Change) -> Json:
    """Apply a change of the Scale to the object: only the replicas, and the resourceVersion."""
    wanted = change(view(kind, document))
    replicas = member(wanted, "spec").get("replicas", 0)
    if replicas < 0:
        fault = errors.invalid_value(kind.scale_paths["specReplicasPath"], replicas, "should be a non-negative integer")
        raise errors.invalid(kind.resource.kind, kind.resource.group, document["metadata"]["name"], [fault])
    version = member(wanted, "metadata").get("resourceVersion") or document["metadata"]["resourceVersion"]
    metadata = document["metadata"] | {"resourceVersion": version}
    return with_path(document, kind.scale_paths["specReplicasPath"], replicas) | {"metadata": metadata}
