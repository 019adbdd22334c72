"""Completion of an in-place update (common.md §9.6; worked examples 2-4, 16-18 of §16)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Container
from flotilla_common.workload.hashing import env_hash, plain_hash
from flotilla_common.workload.inplace import completed
from tests.unit.workload.build import GATES, GRACE, RESIZE, STATE, container, env_from, pod, status

META = "apps.kruise.io/runtime-containers-meta"
LAST = {"lastContainerStatuses": {"nginx": {"imageID": "id-1"}}}


def state(**members: Any) -> dict[str, str]:
    document = {"revision": "r", "updateTimestamp": "2024-03-01T08:00:00Z", "lastContainerStatuses": None, **members}
    return {STATE: msgspec.json.encode(document).decode()}


def runtime(container_id: str = "cid-nginx", plain: int = 0, env: int = 0) -> dict[str, str]:
    hashes = {"plainHash": plain, "extractedEnvFromMetadataHash": env}
    entry = {"name": "nginx", "containerID": container_id, "restartCount": 0, "hashes": hashes}
    return {META: msgspec.json.encode({"containers": [entry]}).decode()}


def running(spec: str, image: str, image_id: str, annotations: dict[str, str]) -> bool:
    return completed(
        pod(containers=[container(image=spec)], statuses=[status("nginx", image, image_id)], annotations=annotations),
        GATES,
    )


@pytest.mark.parametrize(
    ("spec", "image", "image_id", "expected"),
    [
        ("redis", "redis:latest", "id-1", True),
        ("nginx:2", "nginx:2", "id-1", True),
        ("nginx:2", "nginx:1", "id-1", False),
        ("nginx:2", "nginx:1", "id-2", True),
        ("redis", "redis:1", "id-1", False),
    ],
    ids=["16 implicit latest", "17 same image, new tag", "18 not yet", "new image id", "untagged, not yet"],
)
def test_by_image(spec: str, image: str, image_id: str, expected: bool) -> None:
    assert running(spec, image, image_id, state(**LAST)) is expected


@pytest.mark.parametrize(
    ("generation", "observed", "expected"),
    [(3, 3, True), (3, 2, False), (3, 0, True), (0, 0, True)],
    ids=["of this spec", "of an older spec", "the kubelet does not say", "the apiserver does not count"],
)
def test_a_report_of_an_older_spec_completes_nothing(generation: int, observed: int, expected: bool) -> None:
    """The pod got nginx:3 before the kubelet reported nginx:2: the image id differs, but is not that of the spec."""
    held = pod(
        containers=[container(image="nginx:3")],
        statuses=[status("nginx", "nginx:2", "id-2")],
        annotations=state(**LAST),
        generation=generation,
    )
    said = msgspec.structs.replace(held.status, observed_generation=observed)
    assert completed(msgspec.structs.replace(held, status=said), GATES) is expected


@pytest.mark.parametrize(
    ("image", "status_members", "expected"),
    [
        ("nginx:2", {"ready": False}, False),
        ("nginx:2", {"ready": False, "state": {"running": {}}}, True),
        ("docker.io/library/nginx:3", {"ready": False}, True),
    ],
    ids=["what ran in between, stopped", "still starting", "the wanted one, crashing"],
)
def test_what_stands_still_must_be_what_is_wanted(image: str, status_members: dict[str, Any], expected: bool) -> None:
    statuses = [status("nginx", image, "id-2", **status_members)]
    held = pod(containers=[container(image="nginx:3")], statuses=statuses, annotations=state(**LAST))
    assert completed(held, GATES) is expected


@pytest.mark.parametrize(
    ("image", "image_id", "expected"),
    [
        ("nginx:1", "", False),
        ("nginx:1", "id-1", False),
        ("docker.io/library/nginx:1", "id-1", False),
        ("nginx:2", "", True),
        ("nginx:2", "id-2", True),
        ("docker.io/library/nginx:2", "id-2", True),
    ],
    ids=["waits", "runs the old one", "the same, in full", "waits for the new one", "runs it", "the same, in full "],
)
def test_a_container_that_was_about_to_start_may_come_up_with_its_old_image(
    image: str, image_id: str, expected: bool
) -> None:
    last = state(lastContainerStatuses={"nginx": {"image": "nginx:1"}})
    assert running("nginx:2", image, image_id, last) is expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, True),
        (state(), True),
        (state(**LAST) | {GRACE: "{}"}, False),
        (state() | {GRACE: ""}, True),
        (state(nextContainerImages={"b": "x"}), False),
        (state(lastContainerStatuses={"gone": {}}), False),
        (state(**LAST) | {META: "{"}, False),
        ({STATE: "{"}, False),
        (state(**LAST) | runtime(plain=plain_hash(Container(name="nginx", image="nginx:2"))), True),
        (state(**LAST) | runtime(plain=1), False),
        (state(**LAST) | runtime("cid-old", plain_hash(Container(name="nginx", image="nginx:2"))), False),
        ({"inplace-update-state": state(**LAST)[STATE]}, False),
    ],
    ids=[
        "never updated",
        "02 metadata only",
        "in grace",
        "empty grace",
        "later batches",
        "no status",
        "unreadable report",
        "unreadable state",
        "report: new plain hash",
        "report: other plain hash",
        "report of an earlier instance",
        "legacy key",
    ],
)
def test_by_annotations(annotations: dict[str, str], expected: bool) -> None:
    assert running("nginx:2", "nginx:1", "id-1", annotations) is expected


ENV = [env_from("CFG", "metadata.annotations['cfg']")]
READS = container(env=ENV)
NEW = env_hash(msgspec.convert(READS, Container), {}, {"cfg": "2"})
OLD = env_hash(msgspec.convert(READS, Container), {}, {"cfg": "1"})


@pytest.mark.parametrize(
    ("report", "flag", "expected"),
    [
        (runtime(env=NEW), True, True),
        (runtime(env=OLD), True, False),
        ({}, True, False),
        (runtime("cid-old", env=NEW), True, False),
        (runtime(env=OLD), False, True),
    ],
    ids=["03 restarted", "03 not yet", "no report", "earlier instance", "04 gate off"],
)
def test_env_from_metadata(report: dict[str, str], flag: bool, expected: bool) -> None:
    annotations = {"cfg": "2", **state(**({"updateEnvFromMetadata": True} if flag else {})), **report}
    assert completed(pod(containers=[READS], annotations=annotations), GATES) is expected


def test_env_from_labels() -> None:
    reads = container(env=[env_from("CFG", "metadata.labels['cfg']")])
    wanted = env_hash(msgspec.convert(reads, Container), {"cfg": "2"}, {})
    annotations = state(updateEnvFromMetadata=True) | runtime(env=wanted)
    held = {name: pod(containers=[reads], labels={"cfg": name}, annotations=annotations) for name in "12"}
    assert completed(held["2"], GATES)
    assert not completed(held["1"], GATES)


def test_a_container_that_the_spec_lacks_counts_by_its_image_id() -> None:
    last = state(lastContainerStatuses={"gone": {"imageID": "id-1"}})
    for image_id, expected in (("id-1", False), ("id-2", True)):
        statuses = [status("nginx"), status("gone", "nginx:1", image_id)]
        assert completed(pod(statuses=statuses, annotations=last), GATES) is expected


CPU = {"requests": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([status("nginx", resources={"requests": {"cpu": "2000m"}})], True),
        ([status("nginx", resources={"requests": {"cpu": "1"}})], False),
        ([status("nginx", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "3"}})], False),
        ([status("nginx")], False),
        ([], False),
    ],
    ids=["resized", "not yet", "other keys", "unknown", "no status"],
)
def test_resources(statuses: list[Any], expected: bool) -> None:
    held = pod(containers=[container(resources=CPU)], statuses=statuses, annotations=state(updateResources=True))
    assert completed(held, RESIZE) is expected
    assert completed(held, GATES)
