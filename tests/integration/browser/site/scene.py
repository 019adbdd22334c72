"""The objects of the site: a shop whose rollout is stuck, a bank where all is well, and objects of an attacker."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import (
    BUILT_IN_STATEFUL_SET,
    DEPLOYMENT,
    NAMESPACE,
    NODE,
    POD,
    REPLICA_SET,
    REVISION,
    Resource,
)
from flotilla_common.bus import subjects
from flotilla_common.control.plan import Reason, State
from flotilla_console.model.kinds.sets import BUILT_IN_DAEMON_SET
from tests.integration.browser.site.world import World
from tests.testkit.documents import Json, conditions, owned_by, typed
from tests.testkit.pods import container, container_status, pod

SHOP, BANK, LAIR = "shop", "bank", "lair"
"""The namespaces."""

WEB, LEDGER = "web", "ledger"
"""The CloneSet whose rollout is stuck, and one where all is well."""

OLD, NEW = "registry.example.com/shop/web:1.30", "registry.example.com/shop/web:1.31"
NAMES = ("web-7b7p6", "web-9kq2m", "web-dx4tz", "web-mw5vn", "web-zl8fc")
CRASHING = "web-w9d78"
"""The pod of the stuck rollout."""

SCRIPT = "<img src=x onerror=\"alert('run')\"><script>alert('run')</script>"
"""A text that runs where it is not escaped."""

LINK = "javascript:alert('run')"
EVIL = "evil-\"'><svg onload=alert(1)>"
"""The name of a workload that only a broken apiserver would accept."""


class Scene:
    """All objects at one moment."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.objects: dict[Resource, list[Json]] = {}

    def ago(self, **time: float) -> str:
        """Return the moment that was this long ago."""
        return rfc3339(self.now - timedelta(**time))

    def add(self, resource: Resource, document: Json) -> Json:
        """Add an object."""
        self.objects.setdefault(resource, []).append(document)
        return document

    def of(self, resource: Resource, name: str) -> Json:
        """Return an object."""
        return next(one for one in self.objects[resource] if one["metadata"]["name"] == name)

    def workload(
        self, resource: Resource, namespace: str, name: str, image: str, replicas: int, *, status: Json, **more: object
    ) -> Json:
        """Add a workload of some pods with one container."""
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container("main", image)]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        counted = {"observedGeneration": 3, "replicas": replicas, "readyReplicas": replicas} | status
        meta = {"uid": f"u-{name}", "created": self.ago(days=20), "generation": 3, "labels": {"app": name}}
        return self.add(resource, typed(resource, name, namespace, spec=spec | more, status=counted, **meta))

    def revision(self, owner: Json, resource: Resource, number: int, image: str) -> str:
        """Add a revision of a workload, and return its name."""
        meta = owner["metadata"]
        name = f"{meta['name']}-r{number}"
        content = {"spec": {"template": {"spec": {"containers": [container("main", image)]}, "$patch": "replace"}}}
        made = typed(
            REVISION,
            name,
            meta["namespace"],
            uid=f"u-{name}",
            created=self.ago(days=20 - number),
            labels={"app": meta["name"], "controller-revision-hash": name},
            ownerReferences=[owned_by(resource, meta["name"], meta["uid"])],
        )
        self.add(REVISION, made | {"revision": number, "data": content})
        return name

    def pod(
        self,
        name: str,
        owner: Json,
        resource: Resource,
        image: str,
        *,
        revision: str = "",
        node: str = "node-1",
        ready: bool = True,
        status: Json | None = None,
    ) -> Json:
        """Add a pod of a workload."""
        meta = owner["metadata"]
        state = {"state": {"running": {"startedAt": self.ago(hours=5)}}} if ready else (status or {})
        made = pod(
            name,
            meta["namespace"],
            node=node,
            containers=[container("main", image)],
            phase="Running",
            conditions=conditions({"Ready": ready, "ContainersReady": ready, "PodScheduled": True}, self.ago(hours=5)),
            statuses=[container_status("main", image, f"{image}@sha256:{'0' * 64}", ready=ready, **state)],
            status={"podIP": "10.0.0.1", "startTime": self.ago(hours=5)},
            uid=f"u-{name}",
            created=self.ago(hours=5),
            labels={"app": owner["metadata"]["name"], "controller-revision-hash": revision},
            ownerReferences=[owned_by(resource, meta["name"], meta["uid"])],
        )
        return self.add(POD, POD.type_meta | made)


def scene(now: datetime) -> Scene:
    """Return the objects at this moment."""
    made = Scene(now)
    for name in (SHOP, BANK, LAIR):
        made.add(NAMESPACE, typed(NAMESPACE, name, uid=f"u-{name}", created=made.ago(days=90)))
    _nodes(made)
    _shop(made)
    _bank(made)
    _lair(made)
    return made


def _nodes(made: Scene) -> None:
    for number in range(1, 4):
        name = f"node-{number}"
        status = {
            "conditions": conditions({"Ready": number < 3}, made.ago(hours=2)),
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "nodeInfo": {"kubeletVersion": "v1.36.0", "containerRuntimeVersion": "containerd://2.1.0"},
        }
        made.add(NODE, typed(NODE, name, uid=f"u-{name}", created=made.ago(days=90), spec={}, status=status))


def _shop(made: Scene) -> None:
    counts = {"readyReplicas": 5, "availableReplicas": 5, "updatedReplicas": 1, "expectedUpdatedReplicas": 6}
    names = {"updateRevision": f"{WEB}-r2", "currentRevision": f"{WEB}-r1"}
    web = made.workload(CLONE_SET, SHOP, WEB, NEW, 6, status=counts | names, updateStrategy={"maxUnavailable": 1})
    old, new = (made.revision(web, CLONE_SET, number + 1, image) for number, image in enumerate((OLD, NEW)))
    for number, name in enumerate(NAMES):
        made.pod(name, web, CLONE_SET, OLD, revision=old, node=f"node-{number % 3 + 1}")
    crash = {
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 1m20s restarting failed container"}},
        "lastState": {
            "terminated": {
                "exitCode": 1,
                "reason": "Error",
                "message": "no such table: orders",
                "finishedAt": made.ago(minutes=1),
            }
        },
    }
    made.pod(CRASHING, web, CLONE_SET, NEW, revision=new, node="node-2", ready=False, status=crash)
    stateful = {"updatedReplicas": 2, "updateRevision": "db-r1", "currentRevision": "db-r1"}
    db = made.workload(STATEFUL_SET, SHOP, "db", "postgres:18", 2, status=stateful, serviceName="db")
    first = made.revision(db, STATEFUL_SET, 1, "postgres:18")
    for number in range(2):
        made.pod(f"db-{number}", db, STATEFUL_SET, "postgres:18", revision=first)
    _deployment(made, SHOP, "api", "registry.example.com/shop/api:7")
    _others(made)


def _deployment(made: Scene, namespace: str, name: str, image: str) -> None:
    above = made.workload(DEPLOYMENT, namespace, name, image, 2, status={"updatedReplicas": 2, "availableReplicas": 2})
    below = made.workload(REPLICA_SET, namespace, f"{name}-6f9", image, 2, status={})
    meta = above["metadata"]
    below["metadata"] |= {
        "ownerReferences": [owned_by(DEPLOYMENT, name, meta["uid"])],
        "annotations": {"deployment.kubernetes.io/revision": "1"},
    }
    for suffix in ("abcde", "fghij"):
        made.pod(f"{name}-6f9-{suffix}", below, REPLICA_SET, image)


def _others(made: Scene) -> None:
    selector = {"matchLabels": {"app": WEB}}
    sidecars = {"selector": selector, "containers": [container("mesh", "mesh:3")]}
    status: Json = {"matchedPods": 6, "updatedPods": 6, "readyPods": 5, "observedGeneration": 1}
    made.add(
        SIDECAR_SET,
        typed(SIDECAR_SET, "mesh", uid="u-mesh", generation=1, created=made.ago(days=9), spec=sidecars, status=status),
    )
    budget: Json = {"selector": selector, "maxUnavailable": 1}
    status = {
        "observedGeneration": 1,
        "unavailableAllowed": 0,
        "currentAvailable": 5,
        "desiredAvailable": 5,
        "totalReplicas": 6,
        "unavailablePods": {CRASHING: made.ago(minutes=9)},
    }
    made.add(
        POD_UNAVAILABLE_BUDGET,
        typed(
            POD_UNAVAILABLE_BUDGET,
            "web-budget",
            SHOP,
            uid="u-budget",
            generation=1,
            created=made.ago(days=9),
            spec=budget,
            status=status,
        ),
    )
    target = {"apiVersion": CLONE_SET.api_version, "kind": "CloneSet", "name": WEB}
    subsets = [{"name": "near", "maxReplicas": 4}, {"name": "far"}]
    statuses = [{"name": "near", "replicas": 4, "missingReplicas": 0}, {"name": "far", "replicas": 2}]
    made.add(
        WORKLOAD_SPREAD,
        typed(
            WORKLOAD_SPREAD,
            "web-spread",
            SHOP,
            uid="u-spread",
            generation=1,
            created=made.ago(days=9),
            spec={"targetRef": target, "subsets": subsets},
            status={"observedGeneration": 1, "subsetStatuses": statuses},
        ),
    )


def _bank(made: Scene) -> None:
    named = {"updateRevision": f"{LEDGER}-r1", "currentRevision": f"{LEDGER}-r1", "updatedReplicas": 3}
    ledger = made.workload(CLONE_SET, BANK, LEDGER, "bank/ledger:2", 3, status=named)
    revision = made.revision(ledger, CLONE_SET, 1, "bank/ledger:2")
    for number in range(3):
        made.pod(f"{LEDGER}-{number}", ledger, CLONE_SET, "bank/ledger:2", revision=revision, node=f"node-{number + 1}")
    made.workload(BUILT_IN_STATEFUL_SET, BANK, "vault", "vault:1", 1, status={"updatedReplicas": 1})
    counts: Json = {"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 3}
    made.workload(BUILT_IN_DAEMON_SET, BANK, "guard", "guard:1", 0, status=counts | {"updatedNumberScheduled": 3})


def _lair(made: Scene) -> None:
    """Add objects with texts that must stay texts."""
    wrong = [{"type": "FailedScale", "status": "True", "reason": SCRIPT, "message": SCRIPT}]
    evil = made.workload(CLONE_SET, LAIR, EVIL, SCRIPT, 1, status={"conditions": wrong, "updateRevision": SCRIPT})
    evil["metadata"]["labels"] |= {SCRIPT: SCRIPT, "link": LINK}
    evil["metadata"]["annotations"] = {"note": SCRIPT, "link": LINK}
    made.revision(evil, CLONE_SET, 1, SCRIPT)
    waiting = {"state": {"waiting": {"reason": SCRIPT, "message": SCRIPT}}}
    bad = made.pod("evil-pod", evil, CLONE_SET, SCRIPT, revision=SCRIPT, node=EVIL, ready=False, status=waiting)
    bad["spec"]["containers"].append({"name": SCRIPT, "image": LINK, "env": [{"name": SCRIPT, "value": LINK}]})
    bad["status"]["message"] = SCRIPT


def stuck(crashing: str = CRASHING) -> Reason:
    """Return the reason why the rollout of the shop is stuck."""
    text = f'pod {crashing}: container main crashes with exit code 1 (last words: "no such table: orders")'
    return Reason(State.STUCK, "CrashLoopBackOff", text, (crashing,))


async def fill(world: World, now: datetime) -> None:
    """Publish the scene, and what services have decided about it and written."""
    made = scene(now)
    await world.fill(made.objects)
    waits = Reason(State.WAITING, "WaitingForMaxUnavailable", f"maxUnavailable 1 is used by {CRASHING}", (CRASHING,))
    web = made.of(CLONE_SET, WEB)
    numbers = {"maxUnavailable": 1, "unavailable": 1}
    await world.explain(CLONE_SET, web, stuck(), waits, numbers=numbers, wakeAt=rfc3339(now + timedelta(minutes=4)))
    await world.explain(CLONE_SET, made.of(CLONE_SET, EVIL), Reason(State.STUCK, "Evil", SCRIPT, (SCRIPT,)))
    for subject, at, body in _past(web, now):
        stream = subjects.ACT_STREAM if subject.startswith("act.") else subjects.DECISIONS_STREAM
        world.bus.record(stream, subject, msgspec.json.encode(body), at)


def _past(web: Json, now: datetime) -> Iterator[tuple[str, float, Json]]:
    """Yield subject, time and content of the records of the rollout of the shop."""
    meta = web["metadata"]
    about = {"kind": "CloneSet", "namespace": SHOP, "name": WEB, "uid": meta["uid"], "generation": 3}
    for minutes, state, code, message in (
        (10.0, State.PROGRESSING, "Updating", "6 pods to be updated"),
        (9.0, State.WAITING, "WaitingForMaxUnavailable", f"maxUnavailable 1 is used by {CRASHING}"),
    ):
        at = now - timedelta(minutes=minutes)
        sent = {"at": rfc3339(at), "service": "cloneset", "replica": "cloneset-0", "trace": f"t{minutes}"}
        reasons: list[Json] = [{"state": state, "code": code, "message": message, "objects": []}]
        yield subjects.decisions(CLONE_SET, SHOP, WEB), at.timestamp(), about | sent | {"reasons": reasons}
    at = now - timedelta(minutes=9, seconds=30)
    write = {
        "at": rfc3339(at),
        "service": "cloneset",
        "replica": "cloneset-0",
        "trace": "t10.0",
        "action": "create",
        "kind": "Pod",
        "namespace": SHOP,
        "name": CRASHING,
        "owner": {"kind": "CloneSet", "namespace": SHOP, "name": WEB},
        "intent": "create",
        "cause": f"update to {WEB}-r2",
        "revision": f"{WEB}-r2",
        "outcome": "Ok",
        "latencyMs": 4.2,
    }
    yield subjects.act("cloneset", POD, SHOP, CRASHING), at.timestamp(), write
