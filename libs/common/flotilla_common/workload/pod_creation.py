"""Builds new pods: additions to the template (common.md §6.1), suffixes of names, and limits for slow start.

Slow start creates one, two, four and so on, because a refusal of one pod will hit the others, too; and not too many in
one pass.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.documents import mapping, sequence
from flotilla_common.control.plan import Json
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS
from flotilla_common.gates import Gates

CREATES_PER_PASS = 32
"""Most pods that one pass creates, unless the set is large (`most_creates`).

A new pod gets its readiness conditions in the pass after it gets a node; with short passes it has them before its
kubelet has started it, which saves the kubelet a status write.
"""

BATCHES_PER_PASS = 2
"""Batches of slow start in one pass; for the same reason the others come with later passes."""

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, and no digits that look like letters: suffixes spell no words."""
LENGTH = 5

KUBE_SYSTEM = "kube-system"


def decode_template(document: msgspec.Raw) -> Json:
    """Decode a pod template to a plain document; empty if it is not an object."""
    return mapping(msgspec.json.decode(document))


def revision_template(data: msgspec.Raw) -> Json:
    """Return the pod template of a ControllerRevision, with its marker for strategic merge."""
    return mapping(mapping(decode_template(data).get("spec")).get("template"))


def wanted_gates(gates: Gates, namespace: str, system_namespace: str) -> tuple[str, ...]:
    """Return the readiness gates that the pod webhook would add, so that new pods do not need it.

    The webhook exempts the system namespaces.
    """
    system = namespace in (KUBE_SYSTEM, system_namespace)
    return (keys.POD_READY,) if gates.on("PodWebhook") and not system else ()


def with_readiness_gates(spec: Mapping[str, Any], names: Iterable[str]) -> Json:
    """Return the pod spec with these gates after its own."""
    gates = [*sequence(spec.get("readinessGates"))]
    gates += [gate for name in names if (gate := {"conditionType": name}) not in gates]
    return {**spec, "readinessGates": gates} if gates else dict(spec)


def with_volumes(spec: Mapping[str, Any], volumes: Iterable[Json]) -> Json:
    """Return the pod spec with these volumes, in place of its own of the same names."""
    mine = list(volumes)
    names = {volume["name"] for volume in mine}
    others = [volume for volume in sequence(spec.get("volumes")) if mapping(volume).get("name") not in names]
    return {**spec, "volumes": mine + others} if mine else dict(spec)


def suffix(seed: bytes, attempt: int) -> str:
    """Return five characters for a seed; `attempt` counts the attempts whose result was taken.

    They look random, and are derived from what exists: planning twice from the same view gives the same names, so that
    a repeated create gets AlreadyExists for its own object.
    """
    number = int.from_bytes(hashlib.sha256(seed + attempt.to_bytes(8)).digest()[:8])
    characters: list[str] = []
    for _ in range(LENGTH):
        number, index = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[index])
    return "".join(characters)


def most_creates(existing: int) -> int:
    """Return how many pods one pass creates at most in a set that has this many.

    Planning takes longer in a large set, and so does the rest after it: a hundredth of the pods makes up for fewer
    passes.
    """
    return min(max(CREATES_PER_PASS, existing // 100), MAX_CHAINS_PER_PASS)


def creates_of_pass(there: int, *, failed: bool, most: int = CREATES_PER_PASS) -> int:
    """Return how many pods the pass may create.

    `there` counts the existing ones; `failed`: creates of the last pass were refused; `most` is higher in large sets,
    and where the conditions of new pods do not wait for a pass.
    """
    return 1 if failed else min((there + 1) * (2**BATCHES_PER_PASS - 1), most)


def first_batch(there: int, planned: int, missing: int, *, failed: bool) -> int:
    """Return `Stage.slow_start` for the planned creates; 0 if they are one batch, and none is left for later passes."""
    goes_on = planned < missing and not failed
    return there + 1 if goes_on or planned > there + 1 else 0
