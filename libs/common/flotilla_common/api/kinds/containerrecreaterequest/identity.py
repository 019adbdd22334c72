"""What admission writes into a new ContainerRecreateRequest (containerrecreaterequest.md §4): which containers are
meant, on which node, and how they want to be stopped.

A container is restarted often and its pod may be replaced by a namesake. The request therefore holds the IDs of what
was running when it was made, and the agent acts on these alone.
"""

import copy

from flotilla_common.api.admission.review import Refused
from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.keys import RECREATE_ACTIVE, RECREATE_NODE_NAME, RECREATE_POD_UID
from flotilla_common.api.kinds.containerrecreaterequest.types import FAIL

HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
"""The kinds of preStop hooks that the agent is told of."""

_VIRTUAL = ("type", "virtual-kubelet")
"""The label of a virtual node, which tells it from the request, too."""


def identified(document: Json, pod: Json, node_labels: dict[str, str]) -> Json:
    """The request with everything filled in, as a new document. Raises Refused for a container that cannot be meant."""
    result = copy.deepcopy(document)
    metadata = result.setdefault("metadata", {})
    metadata["labels"] = mapping(metadata.get("labels")) | _labels(pod, node_labels)
    spec = mapping(result.get("spec"))
    strategy = spec["strategy"] = mapping(spec.get("strategy"))
    strategy["failurePolicy"] = strategy.get("failurePolicy") or FAIL
    grace = member(pod, "spec").get("terminationGracePeriodSeconds")
    if strategy.get("terminationGracePeriodSeconds") is None and grace is not None:
        strategy["terminationGracePeriodSeconds"] = grace
    seen: set[str] = set()
    for container in mappings(spec.get("containers")):
        name = text(container.get("name"))
        if name in seen:
            raise Refused(400, f"can not recreate {name} multi times")
        seen.add(name)
        _identify(container, pod)
    return result


def _labels(pod: Json, node_labels: dict[str, str]) -> dict[str, str]:
    labels = {
        RECREATE_ACTIVE: "true",
        RECREATE_POD_UID: text(member(pod, "metadata").get("uid")),
        RECREATE_NODE_NAME: text(member(pod, "spec").get("nodeName")),
    }
    key, value = _VIRTUAL
    return labels | ({key: value} if node_labels.get(key) == value else {})


def _identify(container: Json, pod: Json) -> None:
    name = text(container.get("name"))
    if any(container.get(field) for field in ("preStop", "ports", "statusContext")):
        raise Refused(400, f"preStop, ports, statusContext in container {name} are read-only fields")
    template = _named(mappings(member(pod, "spec").get("containers")), name)
    if template is None:
        raise Refused(400, f"container {name} not found in Pod")
    status = _named(mappings(member(pod, "status").get("containerStatuses")), name)
    if status is None:
        raise Refused(400, f"not found {name} containerStatus in Pod Status")
    identity = text(status.get("containerID"))
    if not identity:
        raise Refused(400, f"no containerID in {name} containerStatus, maybe the container has not been initialized")
    hook = member(template, "lifecycle").get("preStop")
    if hook is not None:
        container["preStop"] = {kind: handler for kind, handler in mapping(hook).items() if kind in HANDLERS}
        if "httpGet" in container["preStop"] and template.get("ports"):
            container["ports"] = template["ports"]
    container["statusContext"] = {"containerID": identity, "restartCount": status.get("restartCount") or 0}


def _named(entries: list[Json], name: str) -> Json | None:
    return next((entry for entry in entries if entry.get("name") == name), None)
