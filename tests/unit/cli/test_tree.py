"""The tree: its content for pods and workloads, and its layout."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_cli.output import plain
from flotilla_cli.tree.render import render, short_image
from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_insight.published import Why, decoded
from flotilla_insight.tree import view
from flotilla_insight.views.cloneset import clone_set
from flotilla_insight.views.daemonset import daemon_set
from flotilla_insight.views.statefulset import stateful_set
from flotilla_insight.workload import PodFacts, Workload, pod_waits_for, waits_for

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
CREATED = "2026-05-04T11:00:00Z"


def pod(name: str, revision: str = "web-new", *, ready: bool = True, state: str = "Normal", **extra: Any) -> PodFacts:
    status: dict[str, Any] = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": CREATED}],
        "containerStatuses": [{"name": "main", "ready": ready, "restartCount": extra.get("restarts", 0)}],
    }
    if reason := extra.get("reason"):
        status["containerStatuses"][0]["state"] = {"waiting": {"reason": reason}}
    if extra.get("in_place"):
        status["conditions"].append({"type": "InPlaceUpdateReady", "status": "False"})
    labels = {"controller-revision-hash": revision, "lifecycle.apps.kruise.io/state": state} | extra.get("labels", {})
    metadata = {"name": name, "namespace": "shop", "labels": labels, "creationTimestamp": CREATED}
    metadata |= extra.get("metadata", {})
    image = extra.get("image", "registry.example.com/shop/web:2")
    spec = {"nodeName": extra.get("node", "node-1"), "containers": [{"name": "main", "image": image}]}
    spec |= {"affinity": extra["affinity"]} if "affinity" in extra else {}
    document = {"metadata": metadata, "spec": spec, "status": status}
    return PodFacts(msgspec.json.decode(json.dumps(document), type=Pod))


def cloneset(
    *, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, generation: int = 3
) -> Workload:
    counts = {
        "observedGeneration": 3,
        "replicas": 5,
        "readyReplicas": 5,
        "updatedReplicas": 5,
        "expectedUpdatedReplicas": 5,
        "updateRevision": "web-new",
        "currentRevision": "web-new",
    }
    document = {
        "metadata": {"name": "web", "namespace": "shop", "generation": generation, "creationTimestamp": CREATED},
        "spec": {"replicas": 5} | (spec or {}),
        "status": counts | (status or {}),
    }
    return clone_set(msgspec.json.encode(document))


def statefulset(
    *, status: dict[str, Any] | None = None, rolling: dict[str, Any] | None = None, **spec: Any
) -> Workload:
    counts = {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "updatedReplicas": 3,
        "updateRevision": "db-new",
        "currentRevision": "db-new",
    }
    document = {
        "metadata": {"name": "db", "namespace": "shop", "generation": 1, "creationTimestamp": CREATED},
        "spec": {"replicas": 3, "updateStrategy": {"rollingUpdate": rolling or {}}} | spec,
        "status": counts | (status or {}),
    }
    return stateful_set(msgspec.json.encode(document))


def revision(name: str, number: int, image: str) -> ControllerRevision:
    template = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
    document = {"metadata": {"name": name}, "revision": number, "data": template}
    return msgspec.json.decode(json.dumps(document), type=ControllerRevision)


REVISIONS = [
    revision("web-older", 1, "registry.example.com/shop/web:0"),
    revision("web-old", 2, "registry.example.com/shop/web:1"),
    revision("web-new", 3, "registry.example.com/shop/web:2"),
]
ROLLOUT = [
    pod("web-aaaaa"),
    pod("web-bbbbb", ready=False, state="Updating", in_place=True, restarts=1),
    pod("web-ccccc", ready=False, reason="ImagePullBackOff", restarts=7, node="node-2"),
    pod("web-ddddd", "web-old", image="registry.example.com/shop/web:1"),
    pod("web-eeeee", "old", image="registry.example.com/shop/web:1", state="PreparingDelete"),
    pod("web-fffff", "web-gone", metadata={"deletionTimestamp": CREATED, "finalizers": ["example.com/hold"]}),
]
HALFWAY = {"readyReplicas": 3, "updatedReplicas": 3, "expectedUpdatedReplicas": 4, "currentRevision": "web-old"}


def check(name: str, text: str) -> None:
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def test_rollout_from_status_only():
    check("rollout.txt", plain(render(view(cloneset(status=HALFWAY), ROLLOUT, REVISIONS, None), NOW)))


def test_rollout_with_the_service_s_reasons():
    why = decoded(
        b'{"generation": 3, "reasons": [{"code": "WaitingForMaxUnavailable", "objects": ["web-bbbbb"],'
        b' "state": "waiting", "message": "maxUnavailable 1 is used by web-bbbbb"}],'
        b' "errors": [{"phase": "scale", "message": "exceeded quota"}]}',
        Why,
    )
    check("rollout-why.txt", plain(render(view(cloneset(status=HALFWAY), ROLLOUT, REVISIONS, why), NOW)))


def test_reasons_without_a_state_cannot_be_read():
    """Records of an earlier release have none: only the object gives the state."""
    assert decoded(b'{"generation": 3, "reasons": [{"code": "Complete", "message": "all done"}]}', Why) is None


def test_complete():
    pods = [pod(f"web-{letter * 5}") for letter in "abcde"]
    check("complete.txt", plain(render(view(cloneset(), pods, REVISIONS[2:], None), NOW)))


def test_reasons_of_an_older_generation_are_not_shown():
    why = msgspec.convert({"generation": 2, "reasons": [{"state": "stuck", "code": "Old", "message": "old"}]}, Why)
    found = view(cloneset(), [], [], why)
    assert (found.told_by, found.waiting_for) == ("status", ())


def test_json_has_everything():
    document = json.loads(msgspec.json.encode(view(cloneset(status=HALFWAY), ROLLOUT, REVISIONS, None)))
    assert document["toldBy"] == "status"
    assert document["numbers"]["expectedUpdated"] == 4
    assert [one["name"] for one in document["revisions"]] == ["web-new", "web-old", "web-gone"]
    assert document["olderRevisions"] == 1
    assert document["revisions"][0]["pods"][0]["waitingFor"].startswith("in-place update: ")


def claims(fitting: int, grown: int) -> dict[str, Any]:
    return {"volumeClaimName": "data", "compatibleReplicas": fitting, "compatibleReadyReplicas": grown}


def test_a_stateful_set_half_way():
    found = statefulset(
        status={"readyReplicas": 2, "updatedReplicas": 1, "currentRevision": "db-old", "volumeClaims": [claims(2, 1)]},
        rolling={"partition": 1},
        reserveOrdinals=[1, "3-8"],
    )
    pods = [
        pod("db-2", "db-old", image="registry.example.com/shop/db:1"),
        pod("db-9", "db-new", ready=False, state="Updating", in_place=True, image="registry.example.com/shop/db:2"),
        pod("db-0", "db-old", image="registry.example.com/shop/db:1"),
    ]
    revisions = [
        revision("db-old", 1, "registry.example.com/shop/db:1"),
        revision("db-new", 2, "registry.example.com/shop/db:2"),
    ]
    check("statefulset.txt", plain(render(view(found, pods, revisions, None), NOW)))


def test_pods_of_a_stateful_set_stand_by_ordinal():
    pods = [pod(f"db-{ordinal}", "db-new", ready=ordinal != 3) for ordinal in (10, 9, 3, 0)]
    [shown] = view(statefulset(), pods, [], None).revisions
    assert [one.name for one in shown.pods] == ["db-3", "db-0", "db-9", "db-10"]


def test_revisions_of_a_stateful_set_are_told_apart_by_the_whole_name():
    stored = [revision("db-new", 1, "db:1")]
    shown = view(statefulset(), [pod("db-0", "new"), pod("db-1", "db-new")], stored, None).revisions
    assert [(one.name, len(one.pods)) for one in shown] == [("db-new", 1), ("new", 1)]


@pytest.mark.parametrize(
    ("volume_claims", "expected"),
    [
        pytest.param([], (), id="none"),
        pytest.param([claims(3, 3)], (), id="all grown"),
        pytest.param([claims(1, 1)], ("claims of data: 1 of 3 as the template says",), id="not begun"),
        pytest.param(
            [claims(3, 1)], ("claims of data: 3 of 3 as the template says, 2 of them still growing",), id="on"
        ),
    ],
)
def test_claims_that_differ_from_their_template(volume_claims: list[dict[str, Any]], expected: tuple[str, ...]):
    assert statefulset(status={"volumeClaims": volume_claims}).details == expected


def daemonset(*, status: dict[str, Any] | None = None, rolling: dict[str, Any] | None = None, **spec: Any) -> Workload:
    counts = {
        "observedGeneration": 1,
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 3,
        "numberReady": 3,
        "updatedNumberScheduled": 3,
        "updateRevision": "new",
    }
    document = {
        "metadata": {"name": "probe", "namespace": "shop", "generation": 1, "creationTimestamp": CREATED},
        "spec": {"updateStrategy": {"rollingUpdate": rolling or {}}} | spec,
        "status": counts | (status or {}),
    }
    return daemon_set(msgspec.json.encode(document))


def test_a_daemon_set_half_way():
    found = daemonset(
        status={"numberReady": 2, "updatedNumberScheduled": 1, "numberMisscheduled": 1},
        rolling={"partition": "34%", "selector": {"matchLabels": {"ring": "canary"}}},
        scaleStrategy={"partitionedScaling": True},
    )
    pods = [
        pod("probe-x", "old", node="node-9", image="registry.example.com/probe:1"),
        pod("probe-y", "old", node="node-10", image="registry.example.com/probe:1"),
        pod("probe-z", "new", node="node-2", ready=False, reason="ErrImagePull", image="registry.example.com/probe:2"),
    ]
    revisions = [
        revision("probe-old", 1, "registry.example.com/probe:1"),
        revision("probe-new", 2, "registry.example.com/probe:2"),
    ]
    check("daemonset.txt", plain(render(view(found, pods, revisions, None), NOW)))


def test_a_pod_of_a_daemon_set_that_has_no_node_yet_stands_at_the_one_that_it_is_made_for():
    asked = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-3"]}]}
    nodes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [asked]}}
    affinity = {"nodeAffinity": nodes}
    [shown] = view(daemonset(), [pod("probe-x", "new", node="", affinity=affinity)], [], None).revisions
    assert [one.node for one in shown.pods] == ["node-3"]


@pytest.mark.parametrize(("partition", "expected"), [(None, 3), (1, 2), ("50%", 2), (5, 0), ("much", 3)])
def test_nodes_that_a_partition_leaves(partition: int | str | None, expected: int):
    assert daemonset(rolling={"partition": partition}).numbers.expected_updated == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(pod("a"), "", id="serving"),
        pytest.param(pod("a", ready=False, node=""), "scheduler default-scheduler has not looked", id="unscheduled"),
        pytest.param(pod("a", ready=False), "it is not Ready", id="not ready"),
        pytest.param(pod("a", ready=False, reason="ErrImagePull"), "image registry.example.com/shop/web:2", id="image"),
        pytest.param(pod("a", in_place=True), "in-place update: its kubelet has not", id="in-place update"),
        pytest.param(
            pod("a", labels={"apps.kruise.io/specified-delete": "true"}),
            "waits for its requested deletion",
            id="specified delete",
        ),
        pytest.param(pod("a", metadata={"deletionTimestamp": CREATED}), "terminating: ", id="terminating"),
    ],
)
def test_what_a_pod_waits_for(facts: PodFacts, expected: str):
    told = pod_waits_for(facts)
    assert told.startswith(expected)
    assert bool(told) == bool(expected)


ROLLING = {"replicas": 3, "updatedReplicas": 1, "expectedUpdatedReplicas": 1, "currentRevision": "web-old"}


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(cloneset(), (), id="nothing"),
        pytest.param(
            cloneset(generation=4),
            ("waiting: generation 4 has not been observed yet, the last one is 3",),
            id="not observed",
        ),
        pytest.param(
            cloneset(status={"replicas": 4}), ("waiting: 1 pod to be created: 4 of 5 exist",), id="scaling out"
        ),
        pytest.param(
            cloneset(status={"replicas": 7}), ("waiting: 2 pods to be deleted: 7 exist, 5 are wanted",), id="scaling in"
        ),
        pytest.param(
            cloneset(spec={"replicas": 3}, status=ROLLING | {"expectedUpdatedReplicas": 3}),
            ("waiting: 2 pods to be updated to web-new",),
            id="updating",
        ),
        pytest.param(
            cloneset(spec={"replicas": 3, "updateStrategy": {"rollingUpdate": {"paused": True}}}, status=ROLLING),
            ("paused by the user: unpause the update to continue",),
            id="paused",
        ),
        pytest.param(
            cloneset(spec={"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": "50%"}}}, status=ROLLING),
            ("partition 50% keeps 2 pods at web-old",),
            id="partition",
        ),
        pytest.param(
            cloneset(spec={"replicas": 3, "updateStrategy": {"type": "OnDelete"}}, status=ROLLING),
            ("2 pods of older revisions to be deleted by the user (OnDelete)",),
            id="on delete",
        ),
        pytest.param(
            statefulset(status={"updatedReplicas": 1, "currentRevision": "db-old"}, rolling={"partition": 1}),
            ("waiting: 1 pod to be updated to db-new",),
            id="numbered pods",
        ),
        pytest.param(
            statefulset(status={"updatedReplicas": 2, "currentRevision": "db-old"}, rolling={"partition": 1}),
            ("partition 1 keeps 1 pod at db-old",),
            id="a partition of numbered pods",
        ),
        pytest.param(
            daemonset(status={"currentNumberScheduled": 2}), ("waiting: 1 pod to be created: 2 of 3 exist",), id="nodes"
        ),
        pytest.param(
            daemonset(status={"updatedNumberScheduled": 2}, rolling={"partition": 1}),
            ("partition 1 keeps 1 pod at older revisions",),
            id="a partition of nodes",
        ),
        pytest.param(
            statefulset(
                status={"updatedReplicas": 3, "currentRevision": "db-old"}, updateStrategy={"type": "OnDelete"}
            ),
            (),
            id="all numbered pods were deleted",
        ),
    ],
)
def test_what_a_workload_waits_for(subject: Workload, expected: tuple[str, ...]):
    assert tuple(reason.sentence for reason in waits_for(subject)) == expected


def test_pods_with_the_same_cause_are_named_up_to_a_limit():
    pods = [pod(f"web-{letter}", ready=False) for letter in "abcdefg"]
    assert view(cloneset(), pods, [], None).causes == ("web-a, web-b, web-c, web-d, web-e and 2 more: it is not Ready",)


@pytest.mark.parametrize(
    ("image", "short"),
    [
        pytest.param("nginx", "nginx", id="bare"),
        pytest.param("registry:5000/team/nginx:1.2", "nginx:1.2", id="registry with a port"),
        pytest.param("a/nginx@sha256:0123456789abcdef", "nginx@sha256:0123456789ab", id="digest"),
    ],
)
def test_short_image(image: str, short: str):
    assert short_image(image) == short


@pytest.mark.parametrize(
    ("ready", "seconds", "text"),
    [
        pytest.param(True, 3700, "available in 100s (minReadySeconds)", id="ready an hour ago"),
        pytest.param(True, 3600, "", id="over"),
        pytest.param(True, 0, "", id="none"),
        pytest.param(False, 3700, "it is not Ready", id="not ready yet"),
    ],
)
def test_the_rest_of_min_ready_seconds(ready: bool, seconds: int, text: str) -> None:
    found = view(cloneset(spec={"minReadySeconds": seconds}), [pod("web-a", ready=ready)], [], None)
    line = next(line for line in plain(render(found, NOW)).splitlines() if "web-a  Running" in line)
    assert line.endswith(text or "web:2")
