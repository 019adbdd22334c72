"""Fluent builders for CloneSets, pods and snapshots, and the notation of the worked examples (cloneset.md §8).

`pods("3o 2n 1n!*^")`: three available old pods, two available new ones, and one new pod that is unavailable (`!`),
specified for deletion (`*`) and PreparingDelete (`^`). Letters after a colon set the lifecycle state:
`1o:PreparingUpdate`.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot, Options
from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.meta import Condition
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from flotilla_common.gates import Gates
from flotilla_common.workload.hashing import revision_data

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
OWNER = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "CloneSet",
    "name": "sample",
    "uid": "uid-sample",
    "controller": True,
    "blockOwnerDeletion": True,
}
_TOKEN = re.compile(r"(\d+)([on])([!*^]*)(?::(\w+))?")


def template(image: str = "nginx:2", **spec: Any) -> dict[str, Any]:
    """A pod template as admission leaves it."""
    return {
        "metadata": {"labels": {"app": "sample"}},
        "spec": {"containers": [{"name": "nginx", "image": image, "imagePullPolicy": "Always"}], **spec},
    }


def raw(document: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(document))


def revision(name: str, content: dict[str, Any], number: int, **annotations: str) -> ControllerRevision:
    """A stored revision of a template."""
    document = {
        "metadata": {
            "name": f"sample-{name}",
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "labels": {"app": "sample", "controller.kubernetes.io/hash": name},
            "annotations": {"kruise.io/cloneset-volumeclaimtemplate-hash": "", **annotations},
            "ownerReferences": [OWNER],
        },
        "revision": number,
        "data": msgspec.Raw(revision_data(raw(content))),
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=ControllerRevision)


class CloneSetBuilder:
    """A CloneSet `sample`, whose update revision is `sample-new` and whose current one is `sample-old`."""

    def __init__(self) -> None:
        self.spec: dict[str, Any] = {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "sample"}},
            "template": template(),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate"}},
            "scaleStrategy": {},
        }
        self.status: dict[str, Any] = {"currentRevision": "sample-old", "collisionCount": 0}
        self.metadata: dict[str, Any] = {
            "name": "sample",
            "namespace": "default",
            "uid": "uid-sample",
            "resourceVersion": "7",
            "generation": 1,
        }

    def _rolling(self, **members: Any) -> "CloneSetBuilder":
        self.spec["updateStrategy"]["rollingUpdate"].update(members)
        return self

    def replicas(self, number: int) -> "CloneSetBuilder":
        self.spec["replicas"] = number
        return self

    def partition(self, value: int | str) -> "CloneSetBuilder":
        return self._rolling(partition=value)

    def max_unavailable(self, value: int | str) -> "CloneSetBuilder":
        return self._rolling(maxUnavailable=value)

    def max_surge(self, value: int | str) -> "CloneSetBuilder":
        return self._rolling(maxSurge=value)

    def in_place(self, *, only: bool = False, grace: int = 0) -> "CloneSetBuilder":
        policy = "InPlaceOnly" if only else "InPlaceIfPossible"
        return self._rolling(podUpdatePolicy=policy, inPlaceUpdateStrategy={"gracePeriodSeconds": grace})

    def paused(self) -> "CloneSetBuilder":
        return self._rolling(paused=True)

    def on_delete(self) -> "CloneSetBuilder":
        self.spec["updateStrategy"] = {"type": "OnDelete"}
        return self

    def min_ready(self, seconds: int) -> "CloneSetBuilder":
        self.spec["minReadySeconds"] = seconds
        return self

    def deadline(self, seconds: int) -> "CloneSetBuilder":
        self.spec["progressDeadlineSeconds"] = seconds
        return self

    def scale(self, **members: Any) -> "CloneSetBuilder":
        self.spec["scaleStrategy"].update(members)
        return self

    def hook(self, name: str, *, not_ready: bool = False) -> "CloneSetBuilder":
        """Let label `hold: <name>` hold pods in a state."""
        hook = {"labelsHandler": {"hold": name}, "markPodNotReady": not_ready}
        self.spec.setdefault("lifecycle", {})[name] = hook
        return self

    def claims(self, *names: str, size: str = "1Gi") -> "CloneSetBuilder":
        self.spec["volumeClaimTemplates"] = [
            {"metadata": {"name": name}, "spec": {"resources": {"requests": {"storage": size}}}} for name in names
        ]
        return self

    def template(self, content: dict[str, Any]) -> "CloneSetBuilder":
        self.spec["template"] = content
        return self

    def stored(self, **members: Any) -> "CloneSetBuilder":
        """Members of the status; those that are null are not stored."""
        self.status.update({name: value for name, value in members.items() if value is not None})
        return self

    def build(self) -> CloneSet:
        document = {"metadata": self.metadata, "spec": self.spec, "status": self.status}
        return msgspec.json.decode(msgspec.json.encode(document), type=CloneSet)


def cloneset() -> CloneSetBuilder:
    return CloneSetBuilder()


def pod(
    name: str,
    side: str = "n",
    *,
    ready: bool = True,
    ready_since: datetime = LONG_AGO,
    state: str = "Normal",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    node: str = "node-1",
    created: datetime = LONG_AGO,
    phase: str = "Running",
    deleting: bool = False,
    restarts: int = 0,
) -> Pod:
    """A pod of the CloneSet on the old ("o") or the new ("n") revision."""
    hash_ = "old" if side == "o" else "new"
    document = {
        "metadata": {
            "name": f"sample-{name}",
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "creationTimestamp": created,
            "deletionTimestamp": NOW if deleting else None,
            "labels": {
                "app": "sample",
                "controller-revision-hash": f"sample-{hash_}",
                "pod-template-hash": hash_,
                "apps.kruise.io/cloneset-instance-id": name,
                **({"lifecycle.apps.kruise.io/state": state} if state else {}),
                **(labels or {}),
            },
            "annotations": annotations or {},
            "ownerReferences": [OWNER],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "nginx", "image": "nginx:1" if side == "o" else "nginx:2"}],
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}],
        },
        "status": {
            "phase": phase,
            "conditions": [
                {"type": "InPlaceUpdateReady", "status": "True", "lastTransitionTime": LONG_AGO},
                {"type": "KruisePodReady", "status": "True", "lastTransitionTime": LONG_AGO},
                {"type": "ContainersReady", "status": str(ready), "lastTransitionTime": ready_since},
                {"type": "Ready", "status": str(ready), "lastTransitionTime": ready_since},
            ],
            "containerStatuses": [
                {"name": "nginx", "ready": ready, "restartCount": restarts, "image": "nginx", "imageID": "id"}
            ],
        },
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


def pods(notation: str, *, on_way_out: bool = False) -> list[Pod]:
    """Pods in the notation of the worked examples; named o1, o2, …, n1, n2, … in order."""
    made: list[Pod] = []
    numbers = {"o": 0, "n": 0}
    for token in notation.split():
        match = _TOKEN.fullmatch(token)
        assert match, token
        count, side, flags, state = match.groups()
        for _ in range(int(count)):
            numbers[side] += 1
            made.append(
                pod(
                    f"{side}{numbers[side]}",
                    side,
                    ready="!" not in flags,
                    state=state or ("PreparingDelete" if "^" in flags else "Normal"),
                    labels={"apps.kruise.io/specified-delete": "true"} if "*" in flags else None,
                )
            )
    return made


def claim(identity: str, template_name: str = "data", *, deleting: bool = False) -> PersistentVolumeClaim:
    """A claim of an instance."""
    document = {
        "metadata": {
            "name": f"{template_name}-sample-{identity}",
            "namespace": "default",
            "uid": f"uid-{template_name}-{identity}",
            "resourceVersion": "3",
            "deletionTimestamp": NOW if deleting else None,
            "labels": {"app": "sample", "apps.kruise.io/cloneset-instance-id": identity},
            "ownerReferences": [OWNER],
        }
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=PersistentVolumeClaim)


def revisions(old: dict[str, Any] | None = None, new: dict[str, Any] | None = None) -> tuple[ControllerRevision, ...]:
    """The stored revisions `sample-old` and `sample-new`."""
    return (revision("old", old or template("nginx:1"), 1), revision("new", new or template(), 2))


def snapshot(builder: CloneSetBuilder, notation: str | list[Pod] = "", **members: Any) -> CloneSetSnapshot:
    """A snapshot with both revisions stored."""
    gates = members.pop("gates", "")
    if isinstance(gates, str):
        gates = Gates.parse(gates)
    members.setdefault("revisions", revisions())
    return CloneSetSnapshot(
        cloneset=builder.build(),
        pods=pods(notation) if isinstance(notation, str) else notation,
        gates=gates,
        options=members.pop("options", Options()),
        **members,
    )


def planned(builder: CloneSetBuilder, notation: str | list[Pod] = "", now: datetime = NOW, **members: Any) -> Plan:
    """The plan of one pass."""
    return plan(snapshot(builder, notation, **members), now)


def actions(result: Plan) -> list[Action]:
    """All actions of a plan in order."""
    return result.actions


def summary(result: Plan) -> list[str]:
    """What a plan does to pods, one word each: "create new", "delete n1", "mark o1", "update o1", "state n1
    Normal"."""
    return [
        text
        for stage in result.stages
        for chain in stage.chains
        if chain[-1].resource.kind in ("Pod", "PersistentVolumeClaim")
        for text in [_describe(chain)]
    ]


def _describe(chain: tuple[Action, ...]) -> str:
    for action in chain:
        name = action.name.removeprefix("sample-")
        match action:
            case Create() if action.resource.kind == "Pod":
                return f"create {action.body['metadata']['labels']['pod-template-hash']}"
            case Delete():
                return f"delete {name}"
            case Patch():
                labels = action.body.get("metadata", {}).get("labels", {})
                if "apps.kruise.io/specified-delete" in labels:
                    return f"mark {name}"
                if len(chain) == 1 and "ownerReferences" in action.body.get("metadata", {}):
                    return f"release {name}"
                if "controller-revision-hash" in (chain[-1].body.get("metadata", {}).get("labels", {})):
                    return f"update {name}"
                state = labels.get("lifecycle.apps.kruise.io/state")
                return f"state {name} {state}" if state else f"patch {name}"
            case _:
                continue
    return "?"


def codes(result: Plan) -> set[str]:
    """The reasons' codes."""
    return {reason.code for reason in result.reasons}


def progressing(result: Plan) -> str:
    """The reason of condition Progressing in the planned status; empty when there is none."""
    assert result.status is not None
    conditions = result.status.body["status"]["conditions"] or []
    return next((item["reason"] for item in conditions if item["type"] == "Progressing"), "")


def condition(reason: str, since: datetime, status: str = "True") -> dict[str, Any]:
    """A stored condition Progressing."""
    value = Condition(
        type="Progressing", status=status, reason=reason, last_update_time=since, last_transition_time=since
    )
    return msgspec.to_builtins(value)
