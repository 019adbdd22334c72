"""The CloneSet manifests and commands of the users' articles, verbatim, and their outcomes.

The articles: a tutorial with printed tables, the announcement of release 1.2, an experience report about stable IPs,
and a study of all features.
"""

import re

import pytest

from tests.support.workspace import (
    Workspace,
    available,
    condition,
    identity,
    image,
    instance,
    is_ready,
    moment,
    restarts,
    revision_of,
    table,
    terminating,
)
from tests.testkit.manifests import article

SAMPLE = article("cloneset/sample")
SAMPLE_DATA = article("cloneset/sample-data")
NGINX_ALPINE = article("cloneset/nginx-alpine")
IN_PLACE_WITH_GRACE = """
  updateStrategy:
    type: InPlaceIfPossible
    inPlaceUpdateStrategy:
      gracePeriodSeconds: 10
  selector:"""
FIRST, SECOND = "sample-d4d4fb5bd", "sample-56dfb978d4"


def with_strategy(manifest: str, strategy: str) -> str:
    return manifest.replace("  selector:", f"  updateStrategy:{strategy}\n  selector:", 1)


@pytest.fixture
def sample(space: Workspace) -> Workspace:
    """Apply the first manifest of the tutorial, and wait for its five pods."""
    assert space.kubectl("apply", "-f", "-", stdin=SAMPLE) == "cloneset.apps.kruise.io/sample created\n"
    space.settled(replicas=5, updatedReadyReplicas=5, availableReplicas=5)
    return space


def test_create(sample: Workspace):
    rows = table(sample.kubectl("get", "pod"))
    assert rows[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert len(rows) == 6
    for name, ready, status, restarted, _age in rows[1:]:
        assert re.fullmatch("sample-[bcdfghjklmnpqrstvwxz2456789]{5}", name)
        assert (ready, status, restarted) == ("1/1", "Running", "0")


def test_printed_columns(sample: Workspace):
    for word in ("cloneset", "clone", "clonesets.apps.kruise.io", "clonesets.v1alpha1.apps.kruise.io"):
        header, row = table(sample.kubectl("get", word))
        assert header == [
            "NAME", "DESIRED", "UPDATED", "UPDATED_READY", "UPDATED_AVAILABLE", "READY", "TOTAL", "AGE",
        ]  # fmt: skip
        assert row[:-1] == ["sample", "5", "5", "5", "5", "5", "5"]
    header, row = table(sample.kubectl("get", "cloneset", "-o", "wide"))
    assert header[-4:] == ["AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert row[-3:] == ["nginx", "nginx:alpine", "app=sample"]


def test_no_deployment_is_made_and_both_readiness_gates_are_met(sample: Workspace):
    assert sample.kubectl("get", "deployment") == ""
    header, *rows = table(sample.kubectl("get", "pods", "-o", "wide"))
    assert header[-1] == "READINESS GATES"
    assert [row[-1] for row in rows] == ["2/2"] * 5


def test_revision_names_and_status_of_a_partial_update(sample: Workspace):
    """The status block of the study: partition 3 of 5."""
    assert sample.status()["currentRevision"] == FIRST
    changed = with_strategy(SAMPLE, "\n    partition: 3").replace("nginx:alpine", "nginx:mainline")
    sample.apply(changed)
    status = sample.settled(updatedReadyReplicas=2, readyReplicas=5)
    expected = {
        "observedGeneration": 2,
        "readyReplicas": 5,
        "replicas": 5,
        "currentRevision": FIRST,
        "updateRevision": SECOND,
        "updatedReadyReplicas": 2,
        "updatedReplicas": 2,
        "expectedUpdatedReplicas": 2,
    }
    assert {field: status[field] for field in expected} == expected
    images = sorted((image(pod), revision_of(pod)) for pod in sample.pods.values())
    assert images == 3 * [("nginx:alpine", FIRST)] + 2 * [("nginx:mainline", SECOND)]


def test_pods_to_delete_with_fewer_replicas(sample: Workspace):
    before = set(sample.pods)
    victim = min(before)
    manifest = SAMPLE.replace("replicas: 5", f"replicas: 4\n  scaleStrategy:\n    podsToDelete:\n    - {victim}")
    assert sample.kubectl("apply", "-f", "-", stdin=manifest) == "cloneset.apps.kruise.io/sample configured\n"
    sample.settled(replicas=4, readyReplicas=4)
    assert set(sample.pods) == before - {victim}
    sample.until(lambda: "podsToDelete" not in sample.clone()["spec"]["scaleStrategy"])
    assert not any(
        event.type == "ADDED" and event.object["metadata"]["name"] not in before for event in sample.history()
    )


def test_pods_to_delete_without_fewer_replicas_makes_a_new_pod(sample: Workspace):
    before = set(sample.pods)
    victim = min(before)
    manifest = SAMPLE.replace("  selector:", f"  scaleStrategy:\n    podsToDelete:\n    - {victim}\n  selector:")
    sample.kubectl("apply", "-f", "-", stdin=manifest)
    sample.until(lambda: victim not in sample.pods and sum(map(is_ready, sample.pods.values())) == 5)
    assert len(before & set(sample.pods)) == 4
    sample.until(lambda: "podsToDelete" not in sample.clone()["spec"]["scaleStrategy"])


def test_pods_to_delete_must_exist(sample: Workspace):
    manifest = SAMPLE.replace("  selector:", "  scaleStrategy:\n    podsToDelete:\n    - sample-xhbjd\n  selector:")
    message = sample.refuses(manifest, "apply")
    assert "spec.scaleStrategy.podsToDelete" in message
    assert "find pod sample-xhbjd failed" in message
    assert sample.clone()["metadata"]["generation"] == 1


def test_claims_of_each_pod(space: Workspace):
    space.apply(SAMPLE_DATA)
    space.settled("sample-data", replicas=5, readyReplicas=5)
    claims = {claim["metadata"]["name"]: claim for claim in space.read("pvc")["items"]}
    ids = {instance(pod) for pod in space.pods.values()}
    assert set(claims) == {f"data-vol-sample-data-{identifier}" for identifier in ids}
    uid = space.clone("sample-data")["metadata"]["uid"]
    for claim in claims.values():
        owner = claim["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("CloneSet", "sample-data", uid)
        assert claim["metadata"]["name"].endswith(instance(claim))
        assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
        assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    for name, pod in space.pods.items():
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        assert volumes["data-vol"]["persistentVolumeClaim"]["claimName"] == f"data-vol-sample-data-{name[-5:]}"


def test_image_changes_and_addresses_stay(space: Workspace):
    """The experience report: in place, with ten seconds for the load balancers before the container restarts."""
    space.kubectl("apply", "-f", "-", stdin=NGINX_ALPINE)
    space.settled("nginx-alpine", updatedReadyReplicas=5)
    before = {identity(pod) for pod in space.pods.values()}
    start = space.now()
    changed = NGINX_ALPINE.replace("nginx:alpine\n", "nginx:latest\n").replace("\n  selector:", IN_PLACE_WITH_GRACE)
    # One at a time takes a minute (maxUnavailable is 20%); all at once shows the same.
    space.apply(changed.replace("gracePeriodSeconds: 10", "gracePeriodSeconds: 10\n    maxUnavailable: 100%"))
    space.settled("nginx-alpine", updatedReadyReplicas=5, readyReplicas=5, seconds=40)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert [(image(pod), restarts(pod)) for pod in space.pods.values()] == [("nginx:latest", 1)] * 5
    for name in space.pods:
        _assert_not_ready_for_ten_seconds_before_restart(space, name, start)
    rows = [row.split() for row in space.kubectl("get", "pods").splitlines()[1:]]
    assert {(row[1], row[2], row[3]) for row in rows} == {("1/1", "Running", "1")}
    killed = space.read("events", "--field-selector=reason=Killing")["items"]
    assert {event["involvedObject"]["name"] for event in killed} == set(space.pods)


def _assert_not_ready_for_ten_seconds_before_restart(space: Workspace, name: str, start: int) -> None:
    history = [event.object for event in space.history(start) if event.object["metadata"]["name"] == name]
    restart = next(number for number, pod in enumerate(history) if image(pod) == "nginx:latest")
    waiting = [pod for pod in history[:restart] if not is_ready(pod)]
    assert waiting
    assert condition(waiting[0], "InPlaceUpdateReady")["reason"] == "StartInPlaceUpdate"
    stopped = moment(condition(waiting[0], "Ready")["lastTransitionTime"])
    started = moment(history[-1]["status"]["containerStatuses"][0]["state"]["running"]["startedAt"])
    assert 10 <= (started - stopped).total_seconds() <= 30  # timestamps have whole seconds


def test_percentage_below_100_updates_at_least_one(space: Workspace):
    """The announcement: 8 replicas, partition 90%."""
    manifest = with_strategy(SAMPLE, "\n    partition: 90%").replace("replicas: 5", "replicas: 8")
    space.apply(manifest)
    space.settled(replicas=8, updatedReadyReplicas=8)
    space.apply(manifest.replace("nginx:alpine", "nginx:mainline"))
    status = space.settled(updatedReadyReplicas=1, readyReplicas=8)
    assert (status["replicas"], status["expectedUpdatedReplicas"], status["updatedReplicas"]) == (8, 1, 1)
    assert [image(pod) for pod in space.pods.values()].count("nginx:mainline") == 1


def test_streaming_in_batches_without_losing_a_pod(space: Workspace):
    """The tutorial: maxSurge 20%, maxUnavailable 0, partition 3 of 5; then partition 0."""
    strategy = "\n    type: InPlaceIfPossible\n    maxSurge: 20%\n    maxUnavailable: 0\n    partition: 3"
    manifest = with_strategy(SAMPLE, strategy)
    space.apply(manifest)
    space.settled(replicas=5, updatedReadyReplicas=5)
    originals, start = set(space.pods), space.now()
    changed = manifest.replace("nginx:alpine", "nginx:mainline")
    space.apply(changed)
    space.settled(replicas=5, readyReplicas=5, updatedReadyReplicas=2, updatedAvailableReplicas=2)
    assert sorted(image(pod) for pod in space.pods.values()) == 3 * ["nginx:alpine"] + 2 * ["nginx:mainline"]
    assert len(originals & set(space.pods)) == 4  # one surge pod stays, one old pod went
    space.apply(changed.replace("partition: 3", "partition: 0"))
    space.settled(replicas=5, readyReplicas=5, updatedReadyReplicas=5, updatedAvailableReplicas=5)
    moments = list(space.moments(start))
    assert min(sum(map(available, pods.values())) for pods in moments) == 5
    assert max(sum(not terminating(pod) for pod in pods.values()) for pods in moments) == 6


def test_recreate_updates_make_other_pods(sample: Workspace):
    before = {identity(pod) for pod in sample.pods.values()}
    start = sample.now()
    sample.apply(with_strategy(SAMPLE, "\n    type: ReCreate").replace("nginx:alpine", "nginx:mainline"))
    sample.settled(updatedReadyReplicas=5, replicas=5)
    assert not {name for name, *_ in before} & set(sample.pods)
    serving = [sum(map(available, pods.values())) for pods in sample.moments(start)]
    assert min(serving) >= 4  # maxUnavailable is 20%
