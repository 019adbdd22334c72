"""Builders for DaemonSets, nodes, pods and snapshots, and the notation of the worked examples (daemonset.md §8).

`pods("1A 2B! 2A")`: pods of DaemonSet `d` on nodes `n1`, `n2`, … by revision. Behind the letter: `!` not ready, `P`
pending without a node, `F` failed, `T` terminating, `H` held by the label of the hook, `D` in PreparingDelete, `U`
out of service for an update in place, `G` given back by it and not Ready yet, `-` without the readiness gate of these;
`@5` ready for 5 seconds.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from flotilla_common.api.core import ControllerRevision, Node, Pod
from flotilla_common.api.kinds.daemonset.types import DaemonSet
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from flotilla_common.gates import Gates
from flotilla_daemonset.daemonset.plan import plan
from flotilla_daemonset.daemonset.snapshot import DaemonSetSnapshot, Options
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, conditions, decoded, owner
from tests.testkit.plans import node_of
from tests.testkit.pods import container, container_status, on_node
from tests.testkit.workloads import Workload, stored_revision

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
OWNER = owner("DaemonSet", "d", "uid-d", blockOwnerDeletion=True)
HOOK = {"labelsHandler": {"hold": "true"}}
_TOKEN = re.compile(r"(\d+)([A-C])([!PFTHDUG-]*)(?:@(\d+))?")


def template(letter: str = "B", **spec: Any) -> Json:
    """Return the pod template of a revision; their images are all that differs."""
    container = {"name": "main", "image": f"agent:{letter}", "imagePullPolicy": "Always"}
    return {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container], **spec}}


def revision(
    letter: str, number: int, content: Json | None = None, *, name: str = "", **meta: Any
) -> ControllerRevision:
    """Return the stored revision `d-A`."""
    labels = {"app": "d", "controller-revision-hash": letter}
    known = {"uid": f"uid-rev-{letter}", "labels": labels, "ownerReferences": [OWNER]}
    return stored_revision(name or f"d-{letter}", number, content or template(letter), **(known | meta))


class Builder(Workload[DaemonSet]):
    """A DaemonSet `d` with the template of revision `update`; maxUnavailable 1 by default."""

    def __init__(self, update: str) -> None:
        spec = {
            "selector": {"matchLabels": {"app": "d"}},
            "template": template(update),
            "burstReplicas": 250,
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        }
        super().__init__(DaemonSet, "d", spec=spec, status={"observedGeneration": 1})

    def m(self, value: int | str) -> Self:
        return self.rolling(maxUnavailable=value)

    def p(self, value: int | str) -> Self:
        return self.rolling(partition=value)

    def surge(self, value: int | str = 1) -> Self:
        return self.rolling(maxSurge=value, maxUnavailable=0)

    def in_place(self, *, only: bool = False, grace: int = 0) -> Self:
        """Update in place where that is possible; DaemonSets have neither `only` nor `grace`."""
        assert (only, grace) == (False, 0)
        return self.rolling(rollingUpdateType="InPlaceIfPossible")

    def nodes(self, **labels: str) -> Self:
        """Update pods on these nodes only."""
        return self.rolling(selector={"matchLabels": labels})

    def progressive(self) -> Self:
        return self.set(scaleStrategy={"partitionedScaling": True})

    def pod_spec(self, **members: Any) -> Self:
        self.spec["template"]["spec"].update(members)
        return self

    def hooked(self, **hook: Any) -> Self:
        return self.set(lifecycle={"preDelete": {**HOOK, **hook}})

    def annotated(self, **annotations: str) -> Self:
        self.metadata["annotations"] = annotations
        return self

    def deleting(self) -> Self:
        return self.deleted(NOW)


def ds(update: str = "B") -> Builder:
    return Builder(update)


def node(name: str, *, taints: Iterable[str] = (), **labels: str) -> Node:
    """Return a node; a taint is `key:effect`, or `key=value:effect`."""
    document = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"taints": [_taint(text) for text in taints]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    return decoded(document, Node)


def _taint(text: str) -> Json:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def nodes(count: int = 5) -> list[Node]:
    return [node(f"n{number}") for number in range(1, count + 1)]


def pods(text: str) -> list[Pod]:
    """Return the pods of the notation."""
    found: list[Pod] = []
    for position, token in enumerate(text.split()):
        match = _TOKEN.fullmatch(token)
        assert match, token
        number, letter, flags, since = match.groups()
        found.append(pod(f"n{number}", letter, flags, since, name=f"d-{number}{letter}{position}", age=position))
    return found


def pod(
    where: str,
    letter: str = "B",
    flags: str = "",
    since: str | None = None,
    *,
    name: str = "",
    age: int = 0,
    labels: dict[str, str] | None = None,
    owners: list[Json] | None = None,
    annotations: dict[str, str] | None = None,
) -> Pod:
    """Build one pod. `age`: the higher, the younger."""
    name = name or f"d-{where}{letter}"
    sound = not set(flags) & set("!PFU")
    ready = sound and "G" not in flags
    phase = next(({"P": "Pending", "F": "Failed"}[flag] for flag in flags if flag in "PF"), "Running")
    ready_since = LONG_AGO if since is None else NOW - timedelta(seconds=int(since))
    gates = ["KruisePodReady"] if "-" in flags else ["InPlaceUpdateReady", "KruisePodReady"]
    own = {"app": "d", "controller-revision-hash": letter}
    held = {"hold": "true"} if "H" in flags else {}
    state = {"lifecycle.apps.kruise.io/state": "PreparingDelete"} if "D" in flags else {}
    document = pods_of.pod(
        name,
        uid=f"uid-{name}",
        version=5,
        created=LONG_AGO + timedelta(seconds=age),
        deleted=NOW if "T" in flags else None,
        labels=(own if labels is None else labels) | held | state,
        annotations=annotations,
        ownerReferences=[OWNER] if owners is None else owners,
        node="" if "P" in flags else where,
        containers=[container("main", f"agent:{letter}")],
        gates=gates,
        spec={"affinity": on_node(where)},
        phase=phase,
        conditions=[
            *conditions({gate: _gate(gate, flags) for gate in gates}, LONG_AGO),
            *conditions({"ContainersReady": sound, "Ready": ready}, ready_since),
        ],
        statuses=[container_status("main", f"agent:{letter}", f"id-{letter}")],
    )
    return decoded(document, Pod)


def _gate(gate: str, flags: str) -> str:
    return str(gate != "InPlaceUpdateReady" or "U" not in flags)


def stored_revisions(builder: Builder) -> list[ControllerRevision]:
    """Return the revisions of the letters up to that of the template, as a rollout from A leaves them."""
    content = builder.spec["template"]
    letters = "ABC"
    for count, letter in enumerate(letters, 1):
        if content["spec"]["containers"][0]["image"] == f"agent:{letter}":
            older = [revision(one, number) for number, one in enumerate(letters[: count - 1], 1)]
            return [*older, revision(letter, count, content)]
    return [revision("A", 1)]


def snapshot(
    builder: Builder,
    found: Iterable[Pod] | str = (),
    *,
    on: Iterable[Node] | int = 5,
    gates: str = "",
    foreign: Iterable[str] = (),
    revisions: Iterable[ControllerRevision] | None = None,
    options: Options | None = None,
    **more: Any,
) -> DaemonSetSnapshot:
    there = pods(found) if isinstance(found, str) else list(found)
    return DaemonSetSnapshot(
        daemonset=builder.build(),
        nodes=nodes(on) if isinstance(on, int) else list(on),
        pods=[one for one in there if one.metadata.owner_references],
        orphans=[one for one in there if not one.metadata.owner_references],
        taken_names=frozenset({*(one.metadata.name for one in there), *foreign}),
        revisions=stored_revisions(builder) if revisions is None else list(revisions),
        gates=Gates.parse(gates),
        options=options or Options(),
        **more,
    )


def planned(builder: Builder, found: Iterable[Pod] | str = (), **more: Any) -> Plan:
    return plan(snapshot(builder, found, **more), NOW)


def summary(result: Plan) -> list[str]:
    """Return the writes in the notation of the examples: `create n3`, `delete 2A0`, `update 4B1`, `hold 2A0`."""
    told = [_told(action) for action in result.actions]
    return [one for one in told if one]


def writes(builder: Builder, found: Iterable[Pod] | str = (), **more: Any) -> str:
    """Return the summary of a plan as one line. Pods are named `<node><revision>`."""
    return " ".join(summary(planned(builder, found, **more)))


def _short(name: str) -> str:
    """Return `2A` for the pod `d-2A0`, and for others the rest of the name behind that of the set."""
    rest = name.removeprefix("d-")
    match = re.fullmatch(r"(\d+[A-C])\d+", rest)
    return match[1] if match else rest


def _told(action: Action) -> str:
    kind, name = action.resource.kind, _short(action.name)
    match action:
        case Create(body=body) if kind == "Pod":
            return f"+{node_of(body)}"
        case Create():
            return f"create:{kind}:{action.name}"
        case Delete():
            return f"-{name}" if kind == "Pod" else f"delete:{kind}:{action.name}"
        case Patch(body=body) if kind == "Pod":
            return _patch(name, action.subresource, body)
        case Patch():
            return f"patch:{kind}:{action.name}"


def _patch(name: str, subresource: str, body: Json) -> str:
    metadata = body.get("metadata", {})
    labels = metadata.get("labels", {})
    if "controller-revision-hash" in labels:
        return f"{'~' if 'spec' in body else 'label:'}{name}"
    if "lifecycle.apps.kruise.io/state" in labels:
        return f"hold:{name}"
    if "ownerReferences" in metadata:
        return f"{'own' if metadata['ownerReferences'] else 'release'}:{name}"
    conditions = {one["type"]: one["status"] for one in body.get("status", {}).get("conditions", [])}
    if conditions.get("InPlaceUpdateReady") == "False":
        return ""  # the first half of an update
    return f"refresh:{name}" if subresource else f"labels:{name}"
