"""Fluent builders for CloneSets, pods and snapshots, and the notation of the worked examples (cloneset.md §8).

`pods("3o 2n 1n!*^")`: three available old pods, two available new ones, and one new pod that is unavailable (`!`),
specified for deletion (`*`) and PreparingDelete (`^`). Letters after a colon set the lifecycle state:
`1o:PreparingUpdate`.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import msgspec

from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot, Options
from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.meta import Condition
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from flotilla_common.gates import Gates
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, conditions, decoded, metadata, owner
from tests.testkit.pods import container, container_status
from tests.testkit.workloads import Workload, stored_revision

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
OWNER = owner("CloneSet", "sample", "uid-sample", blockOwnerDeletion=True)
GATED = ("InPlaceUpdateReady", "KruisePodReady")
_TOKEN = re.compile(r"(\d+)([on])([!*^]*)(?::(\w+))?")


def template(image: str = "nginx:2", **spec: Any) -> Json:
    """Return a pod template as admission leaves it."""
    return {
        "metadata": {"labels": {"app": "sample"}},
        "spec": {"containers": [{"name": "nginx", "image": image, "imagePullPolicy": "Always"}], **spec},
    }


def revision(name: str, content: Json, number: int, **annotations: str) -> ControllerRevision:
    """Return a stored revision of a template."""
    return stored_revision(
        f"sample-{name}",
        number,
        content,
        uid=f"uid-{name}",
        labels={"app": "sample", "controller.kubernetes.io/hash": name},
        annotations={"kruise.io/cloneset-volumeclaimtemplate-hash": "", **annotations},
        ownerReferences=[OWNER],
    )


class CloneSetBuilder(Workload[CloneSet]):
    """A CloneSet `sample`, whose update revision is `sample-new` and whose current one is `sample-old`."""

    def __init__(self) -> None:
        spec = {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "sample"}},
            "template": template(),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "ReCreate"}},
            "scaleStrategy": {},
        }
        super().__init__(CloneSet, "sample", spec=spec, status={"currentRevision": "sample-old", "collisionCount": 0})

    def replicas(self, number: int) -> Self:
        return self.set(replicas=number)

    def partition(self, value: int | str) -> Self:
        return self.rolling(partition=value)

    def max_unavailable(self, value: int | str) -> Self:
        return self.rolling(maxUnavailable=value)

    def max_surge(self, value: int | str) -> Self:
        return self.rolling(maxSurge=value)

    def paused(self) -> Self:
        return self.rolling(paused=True)

    def min_ready(self, seconds: int) -> Self:
        return self.set(minReadySeconds=seconds)

    def deadline(self, seconds: int) -> Self:
        return self.set(progressDeadlineSeconds=seconds)

    def scale(self, **members: Any) -> Self:
        self.spec["scaleStrategy"].update(members)
        return self

    def claims(self, *names: str, size: str = "1Gi") -> Self:
        spec = {"resources": {"requests": {"storage": size}}}
        return self.set(volumeClaimTemplates=[{"metadata": {"name": name}, "spec": spec} for name in names])

    def template(self, content: Json) -> Self:
        return self.set(template=content)

    def stored(self, **members: Any) -> Self:
        """Set members of the status, except those that are None."""
        return super().stored(**{name: value for name, value in members.items() if value is not None})


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
    """Return a pod of the CloneSet on the old ("o") or the new ("n") revision."""
    hash_ = "old" if side == "o" else "new"
    known = {"app": "sample", "controller-revision-hash": f"sample-{hash_}", "pod-template-hash": hash_}
    known |= {"apps.kruise.io/cloneset-instance-id": name}
    document = pods_of.pod(
        f"sample-{name}",
        uid=f"uid-{name}",
        version=5,
        created=created,
        deleted=NOW if deleting else None,
        labels=known | ({"lifecycle.apps.kruise.io/state": state} if state else {}) | (labels or {}),
        annotations=annotations,
        ownerReferences=[OWNER],
        node=node,
        containers=[container("nginx", "nginx:1" if side == "o" else "nginx:2")],
        gates=GATED,
        phase=phase,
        conditions=[
            *conditions(dict.fromkeys(GATED, True), LONG_AGO),
            *conditions({"ContainersReady": ready, "Ready": ready}, ready_since),
        ],
        statuses=[container_status("nginx", "nginx", "id", ready=ready, restartCount=restarts)],
    )
    return decoded(document, Pod)


def pods(notation: str, *, on_way_out: bool = False) -> list[Pod]:
    """Return pods by the notation of the worked examples; named o1, o2, …, n1, n2, … in order."""
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
    """Return a claim of an instance."""
    named = metadata(
        f"{template_name}-sample-{identity}",
        "default",
        uid=f"uid-{template_name}-{identity}",
        version=3,
        deleted=NOW if deleting else None,
        labels={"app": "sample", "apps.kruise.io/cloneset-instance-id": identity},
        ownerReferences=[OWNER],
    )
    return decoded({"metadata": named}, PersistentVolumeClaim)


def revisions(old: Json | None = None, new: Json | None = None) -> tuple[ControllerRevision, ...]:
    """Return the stored revisions `sample-old` and `sample-new`."""
    return (revision("old", old or template("nginx:1"), 1), revision("new", new or template(), 2))


def snapshot(builder: CloneSetBuilder, notation: str | list[Pod] = "", **members: Any) -> CloneSetSnapshot:
    """Return a snapshot with both revisions stored."""
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
    """Return the plan of one pass."""
    return plan(snapshot(builder, notation, **members), now)


def summary(result: Plan) -> list[str]:
    """Return a plan's effects on pods: "create new", "delete n1", "mark o1", "update o1", "state n1 Normal"."""
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


def progressing(result: Plan) -> str:
    """Return the reason of condition Progressing in the planned status; empty if absent."""
    assert result.status is not None
    conditions = result.status.body["status"]["conditions"] or []
    return next((item["reason"] for item in conditions if item["type"] == "Progressing"), "")


def condition(reason: str, since: datetime, status: str = "True") -> Json:
    """Return a stored condition Progressing."""
    value = Condition(
        type="Progressing", status=status, reason=reason, last_update_time=since, last_transition_time=since
    )
    return msgspec.to_builtins(value)
