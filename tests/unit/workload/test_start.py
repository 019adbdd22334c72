"""Starting an in-place update: two writes, grace, batches, resize (common.md §9.5-§9.7; examples 2, 10, 13, 15, 19)."""

import base64
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Event, Patch
from flotilla_common.workload.inplace import UpdateSpec, start
from flotilla_common.workload.inplace.batches import has_resize_subresource, next_batch
from flotilla_common.workload.inplace.state import ContainerMeta
from flotilla_common.workload.predicates import launch_priority
from tests.unit.workload.build import (
    GATES,
    GRACE,
    LIFECYCLE,
    RESIZE,
    STATE,
    annotations_of,
    barrier,
    conditions_of,
    container,
    in_place,
    labels_of,
    patches,
    pod,
    state_in,
    status,
)

IMAGE = UpdateSpec(revision="sample-56dfb978d4", images={"nginx": "nginx:mainline"})
AT = "2024-03-01T08:00:00Z"
EVENT = Event(reason="SuccessfulUpdatePodInPlace", message="done")


def started(target: Pod, spec: UpdateSpec, gates: Any = GATES, version: str = "v1.33.1", **members: Any) -> list[Patch]:
    labels = {"controller-revision-hash": spec.revision, "pod-template-hash": "56dfb978d4"}
    settings = {name: members.pop(name) for name in ("has_states", "drop_field_owners") if name in members}
    context = in_place(gates=gates, server_version=version, **settings)
    return patches(start(target, spec, context, revision_labels=labels, **members))


def test_an_image_update_is_two_writes() -> None:
    first, second = started(pod(), IMAGE, on_success=EVENT)
    assert conditions_of(first)["InPlaceUpdateReady"] == {
        "type": "InPlaceUpdateReady",
        "status": "False",
        "reason": "StartInPlaceUpdate",
        "lastTransitionTime": AT,
    }
    assert conditions_of(first)["Ready"]["status"] == "False"
    assert (first.resource_version, first.after_previous, first.on_success) == ("7", False, None)
    assert labels_of(second) == {
        "controller-revision-hash": "sample-56dfb978d4",
        "pod-template-hash": "56dfb978d4",
        LIFECYCLE: "Updating",
    }
    assert second.body["spec"] == {"containers": [{"name": "nginx", "image": "nginx:mainline"}]}
    assert annotations_of(second)[STATE] == (
        '{"revision":"sample-56dfb978d4","updateTimestamp":"2024-03-01T08:00:00Z",'
        '"lastContainerStatuses":{"nginx":{"imageID":"id-1"}},"updateImages":true,'
        '"containerBatchesRecord":[{"timestamp":"2024-03-01T08:00:00Z","containers":["nginx"]}]}'
    )
    assert (second.subresource, second.resource_version, second.after_previous) == ("", "", True)
    assert (second.on_success, second.uid) == (EVENT, "uid-web")


def test_02_metadata_only() -> None:
    spec = UpdateSpec(revision="r-2", metadata_patch={"labels": {"v": "b", "old": None}})
    first, second = started(pod(labels={"v": "a", "old": "1"}), spec)
    assert first.subresource == "status"
    assert labels_of(second)["v"] == "b"
    assert labels_of(second)["old"] is None
    assert "spec" not in second.body
    state = state_in(second)
    assert state["lastContainerStatuses"] is None
    assert state["containerBatchesRecord"] == [{"timestamp": AT, "containers": []}]
    assert "updateImages" not in state


def test_without_the_gate_one_conditional_write_is_enough() -> None:
    (only,) = started(pod(gates=()), IMAGE)
    assert (only.subresource, only.resource_version, only.after_previous) == ("", "7", False)


HALF = {"InPlaceUpdateReady": {"value": "False", "reason": "StartInPlaceUpdate"}}


def test_a_half_started_pod_needs_only_the_second_write() -> None:
    (only,) = started(pod(conditions={**HALF, "Ready": "False"}), IMAGE)
    assert (only.subresource, only.resource_version, only.after_previous) == ("", "7", False)


@pytest.mark.parametrize(
    "conditions",
    [HALF, {"InPlaceUpdateReady": "False", "Ready": "False"}, {"InPlaceUpdateReady": ""}],
    ids=["still Ready", "other reason", "no condition"],
)
def test_everything_else_is_made_not_ready_first(conditions: dict[str, Any]) -> None:
    first, _ = started(pod(conditions=conditions), IMAGE)
    assert "InPlaceUpdateReady" in conditions_of(first)


def test_kinds_without_lifecycle_get_no_state() -> None:
    _, second = started(pod(state=""), IMAGE, has_states=False)
    assert LIFECYCLE not in labels_of(second)


def test_legacy_keys_are_dropped() -> None:
    target = pod(annotations={"inplace-update-state": "{}", "inplace-update-grace": "x", GRACE: "y"})
    _, second = started(target, IMAGE)
    written = annotations_of(second)
    assert written["inplace-update-state"] is None
    assert written["inplace-update-grace"] is None
    assert written[GRACE] is None


def test_19_grace() -> None:
    spec = UpdateSpec(
        revision="sample-b",
        images={"nginx": "nginx:mainline"},
        metadata_patch={"labels": {"v": "<b>"}, "annotations": {"z": "1", "a": "2"}},
        ref_metadata={"nginx": ContainerMeta(annotations={"cfg": "2"})},
        env_from_metadata=True,
    )
    _, second = started(pod(), spec, grace_seconds=10)
    assert "spec" not in second.body
    assert "v" not in labels_of(second)
    assert labels_of(second)["controller-revision-hash"] == "sample-b"
    patch = base64.b64encode(
        b'{"metadata":{"annotations":{"a":"2","z":"1"},"labels":{"v":"\\u003cb\\u003e"}}}'
    ).decode()
    assert annotations_of(second)[GRACE] == (
        '{"revision":"sample-b","containerImages":{"nginx":"nginx:mainline"},'
        '"containerRefMetadata":{"nginx":{"creationTimestamp":null,"annotations":{"cfg":"2"}}},'
        f'"metaDataPatch":"{patch}","updateEnvFromMetadata":true,"graceSeconds":10}}'
    )
    state = state_in(second)
    assert state["lastContainerStatuses"] is None
    assert "containerBatchesRecord" not in state


def test_metadata_of_later_batches_waits_with_them() -> None:
    meta = {name: ContainerMeta(annotations={f"cfg-{name}": "2"}) for name in "ab"}
    spec = UpdateSpec(revision="r-2", images={"a": "a:2", "b": "b:2"}, ref_metadata=meta)
    _, second = started(pod(containers=PAIR), spec)
    state = state_in(second)
    assert (state["nextContainerImages"], list(state["nextContainerRefMetadata"])) == ({"b": "b:2"}, ["b"])
    assert annotations_of(second)["cfg-a"] == "2"
    assert "cfg-b" not in annotations_of(second)


def test_only_a_positive_grace_period_is_waited_for() -> None:
    for seconds, waits in ((-1, False), (0, False), (1, True)):
        _, second = started(pod(), IMAGE, grace_seconds=seconds)
        assert (GRACE in annotations_of(second), "spec" in second.body) == (waits, not waits)


def test_metadata_that_containers_read_is_remembered() -> None:
    spec = UpdateSpec(
        revision="r-2", ref_metadata={"nginx": ContainerMeta(labels={"b": "1", "a": "2"})}, env_from_metadata=True
    )
    _, second = started(pod(), spec)
    assert state_in(second)["updateEnvFromMetadata"] is True
    assert labels_of(second)["a"] == "2"
    _, waiting = started(pod(), spec, grace_seconds=10)
    assert '"nginx":{"creationTimestamp":null,"labels":{"a":"2","b":"1"}}' in annotations_of(waiting)[GRACE]


@pytest.mark.parametrize(
    "spec",
    [
        UpdateSpec(revision="r-2", metadata_patch={"labels": {"v": "b"}}),
        UpdateSpec(revision="r-2", images={"nginx": "nginx:2"}, resources={"nginx": {"limits": {"cpu": "2"}}}),
        UpdateSpec(revision="r-2", resources={"nginx": {"limits": {"cpu": "2"}}}, env_from_metadata=True),
    ],
    ids=["metadata", "image and resources", "env and resources"],
)
def test_only_a_mere_resize_leaves_the_pod_ready(spec: UpdateSpec) -> None:
    first, *_ = started(pod(), spec, gates=RESIZE)
    assert conditions_of(first)["InPlaceUpdateReady"]["status"] == "False"


PAIR = [container("a", env=[barrier(5)]), container("b", env=[barrier(1)])]


def test_13_batches_by_launch_priority() -> None:
    spec = UpdateSpec(revision="r-2", images={"a": "a:2", "b": "b:2"}, metadata_patch={"labels": {"v": "b"}})
    _, second = started(pod(containers=PAIR), spec)
    assert second.body["spec"]["containers"] == [{"name": "a", "image": "a:2"}]
    assert labels_of(second)["v"] == "b"
    state = state_in(second)
    assert state["lastContainerStatuses"] == {"a": {"imageID": "id-1"}}
    assert state["nextContainerImages"] == {"b": "b:2"}
    assert state["preCheckBeforeNext"] == {"containersRequiredReady": ["a"]}
    assert list(state) == [
        "revision",
        "updateTimestamp",
        "lastContainerStatuses",
        "updateImages",
        "nextContainerImages",
        "preCheckBeforeNext",
        "containerBatchesRecord",
    ]


def test_15_a_shared_key_pulls_a_container_in() -> None:
    meta = {"a": ContainerMeta(labels={"k": "2"}), "b": ContainerMeta(labels={"k": "2"})}
    spec = UpdateSpec(revision="r-2", images={"a": "a:2"}, ref_metadata=meta, env_from_metadata=True)
    _, second = started(pod(containers=PAIR), spec)
    assert labels_of(second)["k"] == "2"
    state = state_in(second)
    assert state["containerBatchesRecord"][0]["containers"] == ["a", "b"]
    assert "nextContainerRefMetadata" not in state


@pytest.mark.parametrize(
    ("priorities", "spec", "expected"),
    [
        ({"a": None, "b": None}, UpdateSpec(images={"a": "x", "b": "y"}), {"a", "b"}),
        ({"a": None, "b": 1, "c": 2}, UpdateSpec(images={"a": "x", "b": "y", "c": "z"}), {"a", "c"}),
        ({"a": 5, "b": 1}, UpdateSpec(images={"b": "y"}), {"b"}),
        ({"a": -1, "b": 0}, UpdateSpec(images={"a": "x", "b": "y"}), {"b"}),
        ({"a": 5}, UpdateSpec(images={"gone": "x"}), set[str]()),
        (
            {"a": 3, "b": 2, "c": 1},
            UpdateSpec(
                ref_metadata={
                    "a": ContainerMeta(labels={"x": "1"}),
                    "b": ContainerMeta(labels={"x": "1"}, annotations={"y": "1"}),
                    "c": ContainerMeta(annotations={"y": "1"}),
                }
            ),
            {"a", "b", "c"},
        ),
        (
            {"a": 3, "b": 2},
            UpdateSpec(
                ref_metadata={"a": ContainerMeta(labels={"x": "1"}), "b": ContainerMeta(annotations={"x": "1"})}
            ),
            {"a"},
        ),
    ],
    ids=["no barrier", "mixed", "only lower", "negative", "not in the pod", "transitive", "label is not annotation"],
)
def test_next_batch(priorities: dict[str, int | None], spec: UpdateSpec, expected: set[str]) -> None:
    containers = [
        container(name, env=[] if priority is None else [barrier(priority)]) for name, priority in priorities.items()
    ]
    assert next_batch(pod(containers=containers).spec.containers, spec) == expected


def test_launch_priority_that_nobody_can_read() -> None:
    held = pod(containers=[container(env=[{"name": "KRUISE_CONTAINER_BARRIER", "value": "x"}])])
    assert launch_priority(held.spec.containers[0]) is None
    env = [{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": {"name": "b", "key": "p_x"}}}]
    assert launch_priority(pod(containers=[container(env=env)]).spec.containers[0]) is None


def sized(*restart: str) -> Pod:
    policies = [{"resourceName": name, "restartPolicy": "RestartContainer"} for name in restart]
    resources = {"requests": {"cpu": "1000m", "memory": "1Gi"}}
    return pod(containers=[container(resources=resources, resizePolicy=policies)])


CPU = UpdateSpec(revision="r-2", resources={"nginx": {"requests": {"cpu": "2", "memory": "1024Mi"}}})


def test_10_resize_goes_through_its_subresource_first() -> None:
    first, second = started(sized("memory-x"), CPU, RESIZE)
    assert first.subresource == "resize"
    changed = {"name": "nginx", "resources": {"requests": {"cpu": "2"}}}  # memory is the same, only written otherwise
    assert first.body == {"spec": {"containers": [changed]}}
    assert (first.resource_version, second.after_previous) == ("7", True)
    assert "spec" not in second.body
    assert state_in(second)["updateResources"] is True
    assert state_in(second)["lastContainerStatuses"] is None


def test_resize_on_old_servers_travels_with_the_rest() -> None:
    (only,) = started(sized(), CPU, RESIZE, "v1.31.9")
    assert only.body["spec"] == {"containers": [{"name": "nginx", "resources": {"requests": {"cpu": "2"}}}]}


def test_10_resize_that_restarts_makes_not_ready() -> None:
    subresources = [patch.subresource for patch in started(sized("cpu"), CPU, RESIZE)]
    assert subresources == ["status", "resize", ""]


def test_resize_to_what_is_there_writes_no_resize() -> None:
    spec = UpdateSpec(revision="r-2", resources={"nginx": {"requests": {"cpu": "1"}}})
    assert [patch.subresource for patch in started(sized(), spec, RESIZE)] == [""]


@pytest.mark.parametrize(
    ("node", "statuses", "last"),
    [
        ("", [], None),
        ("", [status("nginx", image_id="")], {"nginx": {}}),
        ("node-1", [], {"nginx": {"image": "nginx:alpine"}}),
        ("node-1", [status("nginx", image_id="")], {"nginx": {"image": "nginx:alpine"}}),
    ],
    ids=["nowhere", "nowhere, waiting", "the kubelet may begin", "the kubelet is about to begin"],
)
def test_what_is_remembered_of_containers_that_do_not_run_yet(
    node: str, statuses: list[dict[str, Any]], last: dict[str, Any] | None
) -> None:
    _, second = started(pod(node=node, statuses=statuses), IMAGE)
    assert state_in(second)["lastContainerStatuses"] == last


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("v1.32.0", True),
        ("v1.32+gke.1", True),
        ("1.36.3", True),
        ("v1.31.9", False),
        ("v1.9", False),
        ("v2.0", True),
        ("", False),
        ("vx.y", False),
        ("v1", False),
    ],
)
def test_server_version(version: str, expected: bool) -> None:
    assert has_resize_subresource(version) is expected


def test_the_annotation_is_what_others_parse() -> None:
    _, second = started(pod(), IMAGE)
    assert msgspec.json.decode(annotations_of(second)[STATE])["revision"] == "sample-56dfb978d4"
