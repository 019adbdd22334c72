"""The status of CloneSets and the events about them: progress, deadlines, failures (cloneset.md §5)."""

from datetime import timedelta

from tests.support.workspace import Workspace, cloneset, image, moment
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


def test_progress_through_partition_pause_deadline_and_repair(space: Workspace):
    """A rollout stops at its partition, is paused, misses its deadline with a broken image, and is repaired."""
    space.apply(cloneset(2, strategy=IN_PLACE, progressDeadlineSeconds=2))
    space.until(lambda: space.progress() == AVAILABLE)
    first = space.status()["currentRevision"]
    rolling(space, partition=1)
    space.set_image("nginx:1")
    space.until(lambda: space.progress() == PARTITION)
    assert progressing(space)["message"] == "CloneSet has been paused due to partition ready"
    assert (space.status()["currentRevision"], space.status()["expectedUpdatedReplicas"]) == (first, 1)
    rolling(space, paused=True, partition=0)
    space.until(lambda: space.progress() == PAUSED)
    assert progressing(space)["message"] == "CloneSet is paused"
    rolling(space, paused=False)
    space.until(lambda: space.progress() == AVAILABLE)
    assert space.status()["currentRevision"] == space.status()["updateRevision"] != first

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
    space.set_image("nginx:2")
    space.until(lambda: space.progress() == AVAILABLE)
    assert {image(pod) for pod in space.pods.values()} == {"nginx:2"}


def test_a_name_that_fits_no_label_is_reported(space: Workspace):
    """`controller-revision-hash` holds name and hash, unless CloneSetShortHash is on."""
    name = 60 * "x"
    space.apply(cloneset(1, name=name))
    space.until(lambda: any(found["type"] == "FailedScale" for found in space.status(name).get("conditions", [])))
    assert space.pods == {}
    assert all("63" in message for message in space.warnings("FailedCreate"))


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
