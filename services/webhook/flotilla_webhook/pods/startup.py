"""Steps 1 and 4 of the pod webhook: the readiness gate, and containers that are started one after the other.

See webhooks.md §7 and container-extras.md §B2. Each container waits for a key of a ConfigMap that is named after the
pod; the launch priority controller adds the keys.
"""

import re

from flotilla_common.api.admission.review import Request
from flotilla_common.api.documents import Json, ensured, fill, mapping, mappings, member, sequence, text
from flotilla_common.api.keys import (
    CONTAINER_BARRIER_ENV,
    CONTAINER_PRIORITY_ENV,
    LAUNCH_PRIORITY,
    LAUNCHED_IN_ORDER,
    POD_READY,
)
from flotilla_common.api.podrules import LACKS_READINESS_GATE, LAUNCHES_IN_ORDER, PodRule
from flotilla_common.clock import Entropy
from flotilla_common.gates import Gates
from flotilla_common.workload.pod_creation import suffix
from flotilla_webhook.pods.admission import AdmissionStep

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_PREFIX_LIMIT = 58  # as in the apiserver's names from generateName


def readiness_step(gates: Gates) -> AdmissionStep:
    """Return step 1, the KruisePodReady readiness gate; idle without the feature gate that requires it on every pod.

    Our controllers write it into the pods that they create, so only that feature gate requires the step.
    """
    on = gates.on("KruisePodReadinessGate")

    async def rules() -> list[PodRule]:
        return [LACKS_READINESS_GATE] if on else []

    async def change(pod: Json, request: Request) -> None:
        if on:
            _add_gate(mapping(pod["spec"]))

    return AdmissionStep("readiness gate", rules, change)


def _add_gate(spec: Json) -> None:
    if not any(gate.get("conditionType") == POD_READY for gate in mappings(spec.get("readinessGates"))):
        fill(spec, readinessGates=[])
        spec["readinessGates"].append({"conditionType": POD_READY})


def launch_step(gates: Gates, entropy: Entropy) -> AdmissionStep:
    """Return step 4, the launch order; idle without the gate PodWebhook."""
    on = gates.on("PodWebhook")

    async def rules() -> list[PodRule]:
        return [LAUNCHES_IN_ORDER] if on else []

    async def change(pod: Json, request: Request) -> None:
        if on:
            order_launch(pod, entropy)

    return AdmissionStep("launch priority", rules, change)


def order_launch(pod: Json, entropy: Entropy) -> None:
    """Make containers of different priorities wait for their turn.

    Raises ValueError for a priority that is not an integer.
    """
    containers = mappings(mapping(pod["spec"]).get("containers"))
    priorities = _priorities(pod, containers)
    if len(containers) < 2 or len(set(priorities)) < 2:
        return
    name = _named(ensured(pod, "metadata"), entropy)
    for container, priority in zip(containers, priorities, strict=True):
        reference = {"name": f"{name}-barrier", "key": f"p_{priority}"}
        barrier = {"name": CONTAINER_BARRIER_ENV, "valueFrom": {"configMapKeyRef": reference}}
        container["env"] = [entry for entry in sequence(container.get("env")) if not _is_barrier(entry)] + [barrier]


def _priorities(pod: Json, containers: list[Json]) -> list[int]:
    annotations = member(pod, "metadata", "annotations")
    if annotations.get(LAUNCH_PRIORITY) == LAUNCHED_IN_ORDER:
        return [-index for index in range(len(containers))]
    return [_priority(container) for container in containers] if len(containers) > 1 else []


def _priority(container: Json) -> int:
    found = 0
    for entry in mappings(container.get("env")):
        if entry.get("name") == CONTAINER_PRIORITY_ENV:
            value = text(entry.get("value"))
            if not _INTEGER.fullmatch(value):
                where = f"env {CONTAINER_PRIORITY_ENV} of container {text(container.get('name'))}"
                raise ValueError(f"{where} is {value!r}: it must be an integer")
            found = int(value)
    return found


def _is_barrier(entry: object) -> bool:
    """Report whether the entry is a barrier of ours: the pod is a copy of a live one, or is admitted again."""
    env = mapping(entry)
    return env.get("name") == CONTAINER_BARRIER_ENV and "configMapKeyRef" in member(env, "valueFrom")


def _named(metadata: Json, entropy: Entropy) -> str:
    """Return the pod's name."""
    # The ConfigMap is named after the pod, so its name cannot be left to the apiserver.
    if not text(metadata.get("name")):
        metadata["name"] = text(metadata.get("generateName"))[:_PREFIX_LIMIT] + suffix(entropy.token().encode(), 0)
    return text(metadata["name"])
