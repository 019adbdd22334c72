"""`get` and `explain` of UnitedDeployments, of the native workloads that they create, and of WorkloadSpreads."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from flotilla_cli.output import plain
from flotilla_cli.tree.live import LiveView
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, EVENT, POD, REPLICA_SET, REVISION, Resource
from flotilla_common.clock import ManualClock
from flotilla_insight.views import view_of
from flotilla_insight.views.kindview import PodQuestion
from flotilla_insight.views.related import related_of
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json, decoded

NOW = datetime(2026, 3, 1, 8, 2, 0, tzinfo=UTC)
UNITED, SPREAD = view_of(UNITED_DEPLOYMENT), view_of(WORKLOAD_SPREAD)
TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
QUOTA = 'pods "p" is forbidden: exceeded quota: few'


def named(name: str, owner: Json | None = None, **labels: str) -> Json:
    meta: Json = {"name": name, "namespace": "shop", "uid": f"u-{name}", "creationTimestamp": "2026-03-01T08:00:00Z"}
    if owner is not None:
        reference = {"uid": owner["metadata"]["uid"], "name": owner["metadata"]["name"], "controller": True}
        meta["ownerReferences"] = [{**reference, "apiVersion": owner["apiVersion"], "kind": owner["kind"]}]
    return meta | {"labels": labels}


def made(resource: Resource, metadata: Json, **members: Any) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **members}


def running(name: str, owner: Json, image: str = "nginx:2", **labels: str) -> Json:
    status = {"name": "main", "ready": True, "restartCount": 0}
    return made(
        POD,
        named(name, owner, app="web", **labels),
        spec={"nodeName": "n1", "containers": [{"name": "main", "image": image}]},
        status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [status]},
    )


def template(image: str) -> Json:
    return {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}


UNITED_ONE = made(
    UNITED_DEPLOYMENT,
    named("web"),
    spec={
        "replicas": 3,
        "topology": {
            "subsets": [
                {"name": "a", "replicas": "50%", "nodeSelectorTerm": TERM},
                {"name": "b", "minReplicas": 1, "maxReplicas": 4},
                {"name": "c", "minReplicas": 1},
                {"name": "d"},
            ]
        },
        "updateStrategy": {"manualUpdate": {"partitions": {"a": 1}}},
    },
    status={
        "readyReplicas": 2,
        "updatedReplicas": 1,
        "reservedPods": 1,
        "updatedRevision": "web-2",
        "subsetStatuses": [
            {"name": "a", "replicas": 2, "readyReplicas": 1, "partition": 1, "reservedPods": 1},
            {"name": "old", "readyReplicas": 1},
            {"name": "b", "conditions": [{"type": "Schedulable", "status": "False", "reason": "reschedule"}]},
        ],
    },
)


def test_the_card_of_a_united_deployment() -> None:
    face = UNITED.summary(msgspec.json.encode(UNITED_ONE))
    assert face.headline == "2 of 3 pods are ready, 1 are updated, 1 more are reserved"
    assert face.columns == ("SUBSET", "ASKED", "REPLICAS", "READY", "PARTITION", "RESERVED", "SCHEDULABLE")
    assert [" | ".join(row) for row in face.rows] == [
        "a | 50% | 2 | 1 | 1 | 1 | ",
        "b | 1 to 4 | 0 | 0 | 0 | 0 | False (reschedule)",
        "c | 1 or more | 0 | 0 | 0 | 0 | ",
        "d | the rest | 0 | 0 | 0 | 0 | ",
        "old | gone | 0 | 1 | 0 | 0 | ",
    ]


def child(resource: Resource, **members: Any) -> Json:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}} | members.pop("spec", {})
    labels = {"apps.kruise.io/subset-name": "a"}
    return made(resource, named("web-a", UNITED_ONE, **labels), spec=spec, **members)


def of_deployment(**members: Any) -> FakeApi:
    """Return a Deployment in the middle of a rollout."""
    api, deployment = FakeApi(), child(DEPLOYMENT, **members)
    api.put(UNITED_DEPLOYMENT, UNITED_ONE)
    api.put(DEPLOYMENT, deployment)
    for number in (1, 2):
        meta = named(f"web-a-h{number}", deployment)
        meta["annotations"] = {"deployment.kubernetes.io/revision": str(number)}
        replica_set = api.put(REPLICA_SET, made(REPLICA_SET, meta, spec=template(f"nginx:{number}")))
        labels = {"apps.kruise.io/subset-name": "a", "apps.kruise.io/controller-revision-hash": f"web-{number}"}
        api.put(POD, running(f"web-a-h{number}-x", replica_set, f"nginx:{number}", **labels))
    return api


async def drawn(api: FakeApi) -> str:
    live = LiveView(api.api, ManualClock(NOW), UNITED, "shop", "web")
    await live.load()
    return plain(live.drawing(NOW))


async def test_a_deployment_stands_with_its_replica_sets_and_their_pods() -> None:
    status = {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 1}
    text = await drawn(of_deployment(status=status))
    assert text.partition("└── Deployment")[2] == (
        " shop/web-a  2 desired, 2 exist, 2 ready, 1 of 2 updated  age 2m\n"
        "    ├── nothing to wait for\n"
        "    ├── revision web-a-h2 (#2)  1/1 ready  nginx:2\n"
        "    │   └── ●  web-a-h2-x  Running  -  1/1  0 restarts  2m  n1  nginx:2\n"
        "    └── revision web-a-h1 (#1)  1/1 ready  nginx:1\n"
        "        └── ●  web-a-h1-x  Running  -  1/1  0 restarts  2m  n1  nginx:1\n"
    )


async def test_a_stateful_set_of_kubernetes_stands_with_its_revisions_and_pods() -> None:
    api = FakeApi()
    status = {"replicas": 1, "readyReplicas": 1, "currentRevision": "web-a-1", "updateRevision": "web-a-1"}
    stateful = child(BUILT_IN_STATEFUL_SET, status=status)
    api.put(UNITED_DEPLOYMENT, UNITED_ONE)
    api.put(BUILT_IN_STATEFUL_SET, stateful)
    api.put(REVISION, made(REVISION, named("web-a-1", stateful), revision=1, data={"spec": template("nginx:2")}))
    api.put(POD, running("web-a-0", stateful, **{"controller-revision-hash": "web-a-1"}))
    text = await drawn(api)
    assert "StatefulSet shop/web-a  2 desired, 1 exist, 1 ready, 0 of 2 updated" in text
    assert "revision web-a-1 (#1)  update and current  1/1 ready  nginx:2" in text
    assert "●  web-a-0  Running" in text


async def test_why_a_deployment_makes_no_pods() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
    api = of_deployment(status={"conditions": [failure]})
    raw = msgspec.json.encode(api.named(DEPLOYMENT, "shop", "web-a"))
    related = await related_of(api.api, view_of(DEPLOYMENT), raw, NOW)
    assert sorted(pod.metadata.name for pod in related.pods) == ["web-a-h1-x", "web-a-h2-x"]
    assert [group.sentence for group in related.troubles] == [f"web-a: the Deployment cannot create pods: {QUOTA}"]


@pytest.mark.parametrize(("wanted", "told"), [(0, []), (2, [f"web-a: the StatefulSet cannot create pods: {QUOTA}"])])
async def test_why_a_stateful_set_makes_no_pods(wanted: int, told: list[str]) -> None:
    api = FakeApi()
    stateful = child(BUILT_IN_STATEFUL_SET, spec={"replicas": wanted})
    for second, message in (("01", "older"), ("02", QUOTA)):
        event = {"reason": "FailedCreate", "message": message, "lastTimestamp": f"2026-03-01T08:01:{second}Z"}
        api.put(EVENT, {"metadata": {"name": f"e{second}", "namespace": "shop"}} | event)
    related = await related_of(api.api, view_of(BUILT_IN_STATEFUL_SET), msgspec.json.encode(stateful), NOW)
    assert [group.sentence for group in related.troubles] == told


async def about(api: FakeApi, name: str, tell: Any = UNITED.about_pod) -> list[str]:
    async def nothing(*_: object) -> dict[str, Any]:
        return {}

    pod = decoded(api.named(POD, "shop", name), Pod)
    return list(await tell(PodQuestion(api=api.api, pod=pod, everything=False, whys=nothing)))


async def test_why_a_pod_is_in_a_subset_of_a_united_deployment() -> None:
    api = of_deployment()
    begin = "UnitedDeployment web gives subset a 2 of 3 pods (it asks for 50%), on nodes with zone In (a, b)"
    assert await about(api, "web-a-h2-x") == [begin]
    api.named(POD, "shop", "web-a-h1-x")["metadata"]["labels"]["apps.kruise.io/united-deployment-reserved-pod"] = "true"
    assert await about(api, "web-a-h1-x") == [
        begin,
        "it is reserved: another pod replaces it until it has been ready long enough",
        "it is on revision web-1, not on web-2: the subset keeps 1 pod on old ones",
    ]


async def test_pods_of_nobody_and_of_subsets_that_are_gone() -> None:
    api = of_deployment()
    labels = api.named(POD, "shop", "web-a-h1-x")["metadata"]["labels"]
    labels["apps.kruise.io/subset-name"] = "z"
    assert await about(api, "web-a-h1-x") == [
        "UnitedDeployment web has no subset z any more: the pod is deleted once others serve"
    ]
    del labels["apps.kruise.io/subset-name"]
    assert await about(api, "web-a-h1-x") == []
    del api.objects["replicasets", "shop", "web-a-h2"]
    assert await about(api, "web-a-h2-x") == []


def book(name: str, replicas: int, missing: int, **more: Any) -> Json:
    return {"name": name, "replicas": replicas, "missingReplicas": missing} | more


def spread(books: Json) -> Json:
    return made(
        WORKLOAD_SPREAD,
        named("ws"),
        spec={
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-a"},
            "subsets": [{"name": "a", "maxReplicas": 2}, {"name": "b"}],
        },
        status={"subsetStatuses": [book("a", 2, 0), book("b", 1, -1)], "versionedSubsetStatuses": books},
    )


def test_the_card_of_a_workload_spread() -> None:
    """With one version of pods, its status has more details than the totals."""
    flight = {"creatingPods": {"p": "2026-03-01T08:00:00Z"}}
    condition = {"conditions": [{"type": "Schedulable", "status": "True", "reason": "Sufficient"}]}
    face = SPREAD.summary(
        msgspec.json.encode(spread({"v": [book("a", 1, 0, **flight), book("b", 1, -1, **condition)]}))
    )
    assert face.headline == "2 pods of Deployment web-a are spread"
    assert [dict(zip(face.columns, row, strict=True)) for row in face.rows] == [
        {"SUBSET": "a", "LIMIT": "2", "PODS": "1", "LEFT": "0", "CREATING": "1", "DELETING": "0", "SCHEDULABLE": ""},
        {
            "SUBSET": "b",
            "LIMIT": "none",
            "PODS": "1",
            "LEFT": "any",
            "CREATING": "0",
            "DELETING": "0",
            "SCHEDULABLE": "True (Sufficient)",
        },
    ]


def test_versions_that_are_told_apart_have_rows_of_their_own() -> None:
    books = {"v1": [book("a", 1, 1)], "v2": [book("a", 1, 1), book("b", 1, -1)]}
    face = SPREAD.summary(msgspec.json.encode(spread(books)))
    assert [row[:4] for row in face.rows] == [
        ("a", "2", "2", "0"),
        ("b", "none", "1", "any"),
        ("a of v1", "2", "1", "1"),
        ("b of v1", "none", "0", "0"),
        ("a of v2", "2", "1", "1"),
        ("b of v2", "none", "1", "any"),
    ]


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        pytest.param(
            {
                "apps.kruise.io/matched-workloadspread": '{"name":"ws","subset":"a"}',
                "controller.kubernetes.io/pod-deletion-cost": "200",
            },
            "WorkloadSpread ws put it into subset a, which takes at most 2 pods and has 2: the first with room when it "
            "was created, or the one that fits its node; deletion cost 200: pods with the lowest are deleted first",
            id="placed",
        ),
        pytest.param(
            {"apps.kruise.io/matched-workloadspread": '{"name":"ws","subset":"z"}'},
            "WorkloadSpread ws put it into subset z, which no longer exists",
            id="its subset is gone",
        ),
        pytest.param(
            {"controller.kubernetes.io/pod-deletion-cost": "-300"},
            "WorkloadSpread ws has no subset for it: none fits its node; "
            "deletion cost -300: pods with the lowest are deleted first",
            id="no node",
        ),
    ],
)
async def test_why_a_pod_is_in_a_subset_of_a_workload_spread(annotations: Json, told: str) -> None:
    api = of_deployment()
    api.put(WORKLOAD_SPREAD, spread({}))
    api.named(POD, "shop", "web-a-h2-x")["metadata"]["annotations"] = annotations
    assert await about(api, "web-a-h2-x", SPREAD.about_pod) == [told]


async def test_a_pod_that_no_subset_had_room_for_is_left_alone() -> None:
    api = of_deployment()
    full = spread({})
    full["spec"]["subsets"] = [{"name": "a", "maxReplicas": 2}]
    full["metadata"]["creationTimestamp"] = "2026-03-01T07:00:00Z"
    api.put(WORKLOAD_SPREAD, full)
    (told,) = await about(api, "web-a-h2-x", SPREAD.about_pod)
    assert told == "WorkloadSpread ws did not assign it: no subset had room when it was created"


async def test_a_workload_spread_is_about_the_pods_of_its_workload_and_what_keeps_them() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
    api = of_deployment(status={"conditions": [failure]})
    related = await related_of(api.api, SPREAD, msgspec.json.encode(spread({})), NOW)
    assert (len(related.pods), len(related.troubles)) == (2, 1)
    del api.objects["deployments", "shop", "web-a"]
    assert (await related_of(api.api, SPREAD, msgspec.json.encode(spread({})), NOW)).pods == ()
