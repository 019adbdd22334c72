"""What a ContainerRecreateRequest must not be, in the words that users are told (containerrecreaterequest.md §4).

Each function returns the first fault as a sentence, or an empty string. Containers are judged when their identity is
frozen.
"""

from flotilla_common.api.admission.plain import decoded
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.keys import RECREATE_NODE_NAME, RECREATE_POD_UID, RECREATE_UNREADY, SIDECAR_TERMINATED
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    FAIL,
    IGNORE,
    ContainerRecreateRequest,
    ContainerRecreateRequestSpec,
)
from flotilla_common.api.versions import V1ALPHA1

MINIMUM_DEADLINE = 3
"""Seconds; fixed (§10)."""


def check_types(document: Json) -> ContainerRecreateRequest:
    """The request, decoded. Raises ValueError if a field has a type that it cannot have."""
    return decoded(document, ContainerRecreateRequest)


def spec_problem(spec: ContainerRecreateRequestSpec) -> str:
    """What is wrong with the spec by itself, before anything is looked up."""
    strategy = spec.strategy
    if not spec.pod_name:
        return "podName can not be empty"
    if not spec.containers:
        return "containers list can not be null"
    if spec.active_deadline_seconds is not None and spec.active_deadline_seconds < MINIMUM_DEADLINE:
        return f"activeDeadlineSeconds can not be less than {MINIMUM_DEADLINE}s"
    if (strategy.termination_grace_period_seconds or 0) < 0:
        return "terminationGracePeriodSeconds must be non-negative integer"
    if (strategy.unready_grace_period_seconds or 0) < 0:
        return "unreadyGracePeriodSeconds must be non-negative integer"
    if strategy.failure_policy not in ("", FAIL, IGNORE):
        return f"unknown failurePolicy {strategy.failure_policy}"
    return ""


def pod_problem(pod: Pod) -> str:
    """Why containers of the pod cannot be restarted now."""
    if not pod.active and SIDECAR_TERMINATED not in pod.conditions:
        return "not allowed to recreate containers in an inactive Pod"
    if not pod.spec.node_name:
        return "not allowed to recreate containers in a pending Pod"
    return ""


def change_problem(document: Json, old: Json) -> str:
    """What an update changes that must stay. Specs are compared as what they mean, not as they are written."""
    if check_types(document).spec != check_types(old).spec:
        return "spec of ContainerRecreateRequest is immutable"
    labels, before = (strings(member(one, "metadata").get("labels")) for one in (document, old))
    for key in (RECREATE_POD_UID, RECREATE_NODE_NAME):
        if labels.get(key) != before.get(key):
            return f"not allowed to update immutable label {key}"
    if document.get("apiVersion") == V1ALPHA1:
        now, was = (member(one, "metadata", "annotations").get(RECREATE_UNREADY) for one in (document, old))
        if was and now != was:
            return f"not allowed to update immutable annotation {RECREATE_UNREADY}"
    return ""
