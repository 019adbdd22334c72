"""The status of CloneSets: availability, deadlines, failures (cloneset.md §5)."""

from datetime import timedelta

from tests.support.workspace import Workspace, cloneset, condition, image, moment
from tests.testkit.documents import Json

IN_PLACE: Json = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}
AVAILABLE = ("True", "CloneSetAvailable")
UPDATED = ("True", "CloneSetUpdated")
PARTITION = ("True", "ProgressPartitionAvailable")
PAUSED = ("True", "CloneSetPaused")
EXCEEDED = ("False", "ProgressDeadlineExceeded")


def rolling(space: Workspace, **fields: object) -> None:
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": fields}}})


def progressing(space: Workspace) -> Json:
    return next(found for found in space.status()["conditions"] if found["type"] == "Progressing")


def test_every_field_of_a_complete_set(space: Workspace):
    space.apply(cloneset(2))
    status = space.settled(replicas=2, availableReplicas=2, updatedAvailableReplicas=2)
    revision = "sample-d4d4fb5bd"
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "updatedReplicas": 2,
        "updatedReadyReplicas": 2,
        "updatedAvailableReplicas": 2,
        "expectedUpdatedReplicas": 2,
        "updateRevision": revision,
        "currentRevision": revision,
        "collisionCount": 0,
        "labelSelector": "app=sample",
    }
    assert status.get("conditions", []) == []


def test_selector_in_the_status_is_canonical(space: Workspace):
    manifest = cloneset(0)
    expressions = [{"key": "tier", "operator": "In", "values": ["web", "api"]}]
    manifest["spec"]["selector"]["matchExpressions"] = expressions
    manifest["spec"]["template"]["metadata"]["labels"]["tier"] = "web"
    space.apply(manifest)
    assert space.settled(replicas=0)["labelSelector"] == "app=sample,tier in (api,web)"


def test_min_ready_seconds_delay_availability(space: Workspace):
    space.apply(cloneset(2, minReadySeconds=3))
    start = space.now()
    space.settled(readyReplicas=2, availableReplicas=0)
    space.settled(readyReplicas=2, availableReplicas=2)
    latest = max(moment(condition(pod, "Ready")["lastTransitionTime"]) for pod in space.pods.values())
    counted = [event.object["status"] for event in space.history(start, "CloneSet") if "status" in event.object]
    assert [status["availableReplicas"] for status in counted][-1] == 2
    assert latest + timedelta(seconds=3) <= space.clock()


def test_no_deadline_no_condition(space: Workspace):
    space.apply(cloneset(1))
    space.settled(availableReplicas=1)
    assert space.progress() == ("", "")
    space.patch({"spec": {"progressDeadlineSeconds": 30}})
    space.until(lambda: space.progress() == AVAILABLE)
    assert progressing(space)["message"] == "CloneSet is available"
    space.patch({"spec": {"progressDeadlineSeconds": 2147483647}})
    space.until(lambda: bool(space.status()) and space.progress() == ("", ""))


def test_progress_through_partition_pause_and_end(space: Workspace):
    space.apply(cloneset(3, strategy=IN_PLACE, progressDeadlineSeconds=60))
    space.until(lambda: space.progress() == AVAILABLE)
    rolling(space, partition=2)
    space.set_image("nginx:mainline")
    space.until(lambda: space.progress() == PARTITION)
    assert progressing(space)["message"] == "CloneSet has been paused due to partition ready"
    rolling(space, paused=True, partition=0)
    space.until(lambda: space.progress() == PAUSED)
    assert progressing(space)["message"] == "CloneSet is paused"
    rolling(space, paused=False)
    space.until(lambda: space.progress() == AVAILABLE)
    seen = [
        found["reason"]
        for event in space.history(kind="CloneSet")
        for found in event.object.get("status", {}).get("conditions", [])
        if found["type"] == "Progressing"
    ]
    assert list(dict.fromkeys(seen)) == [
        "CloneSetUpdated", "CloneSetAvailable", "ProgressPartitionAvailable", "CloneSetPaused",
    ]  # fmt: skip


def test_a_deadline_passes_and_the_repair_is_seen(space: Workspace):
    space.apply(cloneset(2, strategy=IN_PLACE, progressDeadlineSeconds=2))
    space.until(lambda: space.progress() == AVAILABLE)
    revision = space.set_image("nginx:broken") and space.settled(updatedReplicas=1)["updateRevision"]
    assert space.progress() == UPDATED
    entered = moment(progressing(space)["lastUpdateTime"])
    space.until(lambda: space.progress() == EXCEEDED)
    found = progressing(space)
    text = f"CloneSet revision {revision} has timed out progressing"
    assert found["message"] == text  # clients compare it
    (told,) = space.warnings(EXCEEDED[1])
    assert told.startswith(f"{text}: ")
    assert "image nginx:broken of container nginx cannot be pulled" in told
    assert timedelta(seconds=2) <= moment(found["lastTransitionTime"]) - entered <= timedelta(seconds=20)
    space.scale(3)
    space.settled(replicas=3)
    assert space.progress() == EXCEEDED  # until something is available or paused, it stays
    space.set_image("nginx:mainline")
    space.until(lambda: space.progress() == AVAILABLE)
    assert {image(pod) for pod in space.pods.values()} == {"nginx:mainline"}


def test_nothing_wanted_nothing_missing(space: Workspace):
    space.apply(cloneset(0, progressDeadlineSeconds=60))
    space.until(lambda: space.progress() == AVAILABLE)
    status = space.status()
    assert status["currentRevision"] == status["updateRevision"]


def test_a_pod_without_a_node_is_recreated_by_the_next_template(space: Workspace):
    """It needs no budget, because it serves no traffic."""
    manifest = cloneset(1, template={"spec": {"nodeSelector": {"disk": "none-has-it"}}}, progressDeadlineSeconds=2)
    space.apply(manifest)
    space.until(lambda: space.progress() == EXCEEDED)
    status = space.settled(replicas=1, readyReplicas=0)
    assert status["availableReplicas"] == 0
    (homeless,) = space.pods
    assert space.pod(homeless)["metadata"]["labels"]["lifecycle.apps.kruise.io/state"] == "PreparingNormal"
    space.json_patch({"op": "remove", "path": "/spec/template/spec/nodeSelector"})
    space.until(lambda: space.progress() == AVAILABLE)
    space.until(lambda: homeless not in space.pods)


def test_a_pod_that_waits_for_its_users_misses_the_deadline(space: Workspace):
    """preNormal: ready is not enough."""
    hook = {"preNormal": {"labelsHandler": {"example.io/registered": "true"}}}
    space.apply(cloneset(1, lifecycle=hook, progressDeadlineSeconds=2))
    space.until(lambda: space.progress() == EXCEEDED)
    space.settled(readyReplicas=1, availableReplicas=0)
    space.label(min(space.pods), "example.io/registered=true")
    space.until(lambda: space.progress() == AVAILABLE)


def test_a_name_that_fits_no_label_is_reported(space: Workspace):
    """`controller-revision-hash` holds name and hash, unless CloneSetShortHash is on."""
    name = 60 * "x"
    space.apply(cloneset(1, name=name))
    space.until(lambda: any(found["type"] == "FailedScale" for found in space.status(name).get("conditions", [])))
    assert space.pods == {}
    assert all("63" in message for message in space.warnings("FailedCreate"))


def test_current_revision_follows_when_all_are_updated(space: Workspace):
    space.apply(cloneset(2, strategy=IN_PLACE))
    first = space.settled(readyReplicas=2)["currentRevision"]
    rolling(space, partition=1)
    space.set_image("nginx:mainline")
    status = space.settled(updatedReadyReplicas=1, readyReplicas=2)
    assert (status["currentRevision"], status["expectedUpdatedReplicas"]) == (first, 1)
    rolling(space, partition=0)
    status = space.settled(updatedReadyReplicas=2)
    assert status["currentRevision"] == status["updateRevision"] != first


def test_events_tell_what_was_done(space: Workspace):
    space.apply(cloneset(2, strategy=IN_PLACE))
    space.settled(readyReplicas=2)
    first, second = sorted(space.pods)
    for name in (first, second):
        space.event("SuccessfulCreate", f"succeed to create pod {name}")
    space.set_image("nginx:mainline")
    revision = space.settled(updatedReadyReplicas=2)["updateRevision"]
    for name in (first, second):
        space.event("SuccessfulUpdatePodInPlace", f"successfully update pod {name} in-place(revision {revision})")
    rolling(space, podUpdatePolicy="ReCreate", partition=1)
    space.set_image("nginx:latest")
    revision = space.settled(updatedReadyReplicas=1, readyReplicas=2)["updateRevision"]
    gone = min({first, second} - set(space.pods))
    message = f"successfully patch pod {gone} specified-delete for update(revision {revision})"
    space.event("SuccessfulUpdatePodReCreate", message)
    space.event("SuccessfulDelete", f"succeed to delete pod {gone}")
    events = space.read("events", "--field-selector=involvedObject.kind=CloneSet")["items"]
    assert {event["source"]["component"] for event in events} == {"cloneset-controller"}
    assert {event["involvedObject"]["uid"] for event in events} == {space.clone()["metadata"]["uid"]}
    description = space.kubectl("describe", "clone", "sample")
    assert "SuccessfulUpdatePodInPlace" in description
    assert "cloneset-controller" in description
