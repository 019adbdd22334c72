"""New pods: what workloads put into them beside what their templates say (common.md §6.1), how names that look random
end, and how many are created at once.

Slow start creates one, two, four and so on, because what refuses one pod will refuse the others; and not too many in
one pass.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.documents import mapping, sequence
from flotilla_common.control.plan import Json
from flotilla_common.gates import Gates

CREATES_PER_PASS = 32
"""Pods that one pass creates at most. A new pod waits for its readiness conditions until the pass after the one in
which it gets a node; short passes bring them before a kubelet has started it, which saves it a status write."""

BATCHES_PER_PASS = 2
"""Batches of slow start in one pass; for the same reason the others come with later passes."""

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, and no digits that look like letters: they spell no words."""
LENGTH = 5

KUBE_SYSTEM = "kube-system"


def decode_template(document: msgspec.Raw) -> Json:
    """A pod template as a plain document; empty when it is none."""
    return mapping(msgspec.json.decode(document))


def revision_template(data: msgspec.Raw) -> Json:
    """The pod template that a ControllerRevision stores, with the marker that says how to apply it."""
    return mapping(mapping(decode_template(data).get("spec")).get("template"))


def wanted_gates(gates: Gates, namespace: str, system_namespace: str) -> tuple[str, ...]:
    """The readiness gates that the pod webhook would give a pod of ours: new pods ask for them by themselves, so that
    it need not stand in their path. It exempts the system namespaces."""
    system = namespace in (KUBE_SYSTEM, system_namespace)
    return (keys.POD_READY,) if gates.on("PodWebhook") and not system else ()


def with_readiness_gates(spec: Mapping[str, Any], names: Iterable[str]) -> Json:
    """The pod spec with these gates behind those that it has."""
    gates = [*sequence(spec.get("readinessGates"))]
    gates += [gate for name in names if (gate := {"conditionType": name}) not in gates]
    return {**spec, "readinessGates": gates} if gates else dict(spec)


def with_volumes(spec: Mapping[str, Any], volumes: Iterable[Json]) -> Json:
    """The pod spec with these volumes, in place of its own of the same names."""
    mine = list(volumes)
    names = {volume["name"] for volume in mine}
    others = [volume for volume in sequence(spec.get("volumes")) if mapping(volume).get("name") not in names]
    return {**spec, "volumes": mine + others} if mine else dict(spec)


def suffix(seed: bytes, attempt: int) -> str:
    """Five characters for a seed. `attempt`: those of earlier attempts are taken.

    They look random, and are derived from what exists: a plan that is made twice from the same view plans the same
    names, so that a repeated create meets its own object.
    """
    number = int.from_bytes(hashlib.sha256(seed + attempt.to_bytes(8)).digest()[:8])
    characters: list[str] = []
    for _ in range(LENGTH):
        number, index = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[index])
    return "".join(characters)


def creates_of_pass(there: int, *, failed: bool, most: int = CREATES_PER_PASS) -> int:
    """How many pods the pass may create. `there`: those that exist; `failed`: creates of the last pass were refused;
    `most`: where the conditions of new pods do not wait for a pass, there may be more."""
    return 1 if failed else min((there + 1) * (2**BATCHES_PER_PASS - 1), most)


def first_batch(there: int, planned: int, missing: int, *, failed: bool) -> int:
    """`Stage.slow_start` of so many planned creates; 0 if they are one batch and none is left for later passes."""
    goes_on = planned < missing and not failed
    return there + 1 if goes_on or planned > there + 1 else 0
