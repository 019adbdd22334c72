"""Classification of changes as in-place, and their effects (common.md §9.2, §9.3; worked examples 1-12 of §16)."""

from typing import Any

import pytest

from flotilla_common.gates import Gates
from flotilla_common.workload.inplace import UpdateSpec, calculate
from flotilla_common.workload.inplace.calculate import hindrances, qos_class
from flotilla_common.workload.inplace.state import ContainerMeta
from tests.unit.workload.build import CODEC, GATES, RESIZE, container, env_from, revision, template

HASH = "kruise.io/cloneset-volumeclaimtemplate-hash"
NO_ENV = Gates.parse("InPlaceUpdateEnvFromMetadata=false")


def spec_of(old: Any, new: Any, gates: Gates = GATES) -> UpdateSpec | None:
    return calculate(CODEC, revision(old, "sample-old"), revision(new, "sample-new"), gates=gates)


def sized(cpu: str | None = None, limit: str | None = None, memory: str = "1Gi") -> Any:
    resources: Any = {"requests": {"memory": memory} | ({"cpu": cpu} if cpu else {})}
    if limit:
        resources["limits"] = {"cpu": limit, "memory": "1Gi"}
    return template(container(resources=resources))


def meta(labels: Any = None, annotations: Any = None, **more: Any) -> Any:
    content: Any = {"labels": {"app": "sample", **(labels or {})}, **more}
    if annotations is not None:
        content["annotations"] = annotations
    return content


READS = container(env=[env_from("CFG", "metadata.annotations['cfg']"), env_from("V", "metadata.labels['x.io/v']")])


def test_01_image() -> None:
    spec = spec_of(template(), template(container(image="nginx:mainline")))
    assert spec == UpdateSpec(revision="sample-new", images={"nginx": "nginx:mainline"})


def test_02_label() -> None:
    spec = spec_of(template(metadata=meta({"v": "a"})), template(metadata=meta({"v": "b"})))
    assert spec == UpdateSpec(revision="sample-new", metadata_patch={"labels": {"v": "b"}})


def test_03_annotation_read_by_env() -> None:
    old = template(READS, metadata=meta(annotations={"cfg": "1", "other": "1"}))
    new = template(READS, metadata=meta({"x.io/v": "2"}, annotations={"cfg": "2", "other": "2"}))
    assert spec_of(old, new) == UpdateSpec(
        revision="sample-new",
        metadata_patch={"annotations": {"other": "2"}},
        ref_metadata={"nginx": ContainerMeta(labels={"x.io/v": "2"}, annotations={"cfg": "2"})},
        env_from_metadata=True,
    )


def test_04_the_same_without_the_gate() -> None:
    old = template(READS, metadata=meta(annotations={"cfg": "1"}))
    new = template(READS, metadata=meta(annotations={"cfg": "2"}))
    assert spec_of(old, new, NO_ENV) == UpdateSpec(revision="sample-new", metadata_patch={"annotations": {"cfg": "2"}})


def test_05_label_removed() -> None:
    spec = spec_of(template(metadata=meta({"v": "a"})), template())
    assert spec is not None
    assert spec.metadata_patch == {"labels": {"v": None}}


def test_07_first_annotation_travels_in_the_patch_even_when_read() -> None:
    spec = spec_of(template(READS), template(READS, metadata=meta(annotations={"cfg": "1"})))
    assert spec == UpdateSpec(revision="sample-new", metadata_patch={"annotations": {"cfg": "1"}})


def test_a_read_key_that_is_removed_travels_in_the_patch() -> None:
    old = template(READS, metadata=meta(annotations={"cfg": "1", "b": "1"}))
    spec = spec_of(old, template(READS, metadata=meta(annotations={"b": "1"})))
    assert spec == UpdateSpec(revision="sample-new", metadata_patch={"annotations": {"cfg": None}})


def test_finalizers() -> None:
    spec = spec_of(template(metadata=meta(finalizers=["a"])), template(metadata=meta(finalizers=["b"])))
    assert spec is not None
    assert spec.metadata_patch == {"finalizers": ["b"], "$deleteFromPrimitiveList/finalizers": ["a"]}


def test_a_difference_in_spelling_is_none() -> None:
    assert spec_of(template(), template(container(env=None), volumes=[])) == UpdateSpec(revision="sample-new")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            template(container(env=[{"name": "A", "value": "1"}])),
            template(container(env=[{"name": "A", "value": "2"}])),
        ),
        (template(), template(container(), container("sidecar"))),
        (template(container(), container("sidecar")), template()),
        (template(container("a"), container("b")), template(container("b"), container("a"))),
        (template(initContainers=[container("i", "a")]), template(initContainers=[container("i", "b")])),
        (template(), template(container(args=["-v"]))),
        (template(), template(terminationGracePeriodSeconds=1)),
        (template(container(stdin=True)), template()),
        (sized("1"), sized("2")),
        (sized(), sized("1")),
    ],
    ids=[
        "06 env literal",
        "08 container appended",
        "container removed",
        "containers swapped",
        "09 init image",
        "args",
        "grace",
        "member removed",
        "resources without the gate",
        "12 request added without the gate",
    ],
)
def test_not_in_place(old: Any, new: Any) -> None:
    assert spec_of(old, new) is None


def test_what_stands_in_the_way_is_named() -> None:
    old, new = template(container(args=["-v"]), container("b")), template(container(image="x:2"), container("b"))
    assert hindrances(old, new, gates=GATES) == "template.spec.containers[nginx].args cannot be changed in place"
    path = "template.spec.containers[nginx].resources.requests.cpu"
    assert hindrances(sized("1"), sized("2"), gates=GATES) == f"{path} cannot be changed in place"
    assert hindrances(sized("1"), sized("2"), gates=RESIZE) == ""


def test_of_many_hindrances_the_first_are_named() -> None:
    changed = container(args=["-v"], command=["x"], tty=True, stdin=True, workingDir="/")
    text = hindrances(template(container()), template(changed), gates=GATES)
    assert text.endswith("and 2 more cannot be changed in place")


def test_10_resize() -> None:
    spec = spec_of(sized("1", "4"), sized("2", "4"), RESIZE)
    assert spec == UpdateSpec(revision="sample-new", resources={"nginx": {"requests": {"cpu": "2"}}})


def test_resize_of_both_sides_and_names() -> None:
    spec = spec_of(sized("1", "4", "1Gi"), sized("2", "3", "512Mi"), RESIZE)
    assert spec is not None
    assert spec.resources == {"nginx": {"requests": {"cpu": "2", "memory": "512Mi"}, "limits": {"cpu": "3"}}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (sized("1", "2"), sized("2", "2")),
        (template(), sized("1")),
        (sized(), sized("1")),
        (sized("1", "4"), sized("1")),
        (
            template(container(resources={"requests": {"ephemeral-storage": "1Gi"}})),
            template(container(resources={"requests": {"ephemeral-storage": "2Gi"}})),
        ),
    ],
    ids=["11 becomes Guaranteed", "12 first request", "added", "limits removed", "other resource"],
)
def test_resize_not_in_place(old: Any, new: Any) -> None:
    assert spec_of(old, new, RESIZE) is None


@pytest.mark.parametrize(
    ("old", "new", "annotation", "possible"),
    [
        ("1", "2", "", True),
        ("1", "2", HASH, False),
        ("1", "1", HASH, True),
        (None, "2", HASH, True),
        ("1", None, HASH, True),
    ],
    ids=["not asked", "differ", "same", "unknown before", "unknown after"],
)
def test_an_annotation_that_must_match(old: str | None, new: str | None, annotation: str, possible: bool) -> None:
    revisions = [
        revision(template(), f"sample-{value}", annotations={} if value is None else {HASH: value})
        for value in (old, new)
    ]
    assert (calculate(CODEC, *revisions, gates=GATES, must_match=annotation) is not None) is possible


def test_unreadable_data_is_not_in_place() -> None:
    unreadable = revision(template(), "sample-old")
    unreadable = type(unreadable)(metadata=unreadable.metadata)
    assert calculate(CODEC, unreadable, revision(template()), gates=GATES) is None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{}]}, "BestEffort"),
        ({"containers": [{"resources": {"requests": {"cpu": "0"}}}]}, "BestEffort"),
        ({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, "Burstable"),
        ({"containers": [{"resources": {"limits": {"cpu": "1", "memory": "1"}}}]}, "Guaranteed"),
        ({"containers": [{"resources": {"limits": {"cpu": "1", "memory": "1"}}}, {}]}, "Burstable"),
        (
            {"containers": [{"resources": {"limits": {"cpu": "1", "memory": "1"}, "requests": {"cpu": "500m"}}}]},
            "Burstable",
        ),
        ({"resources": {"limits": {"cpu": "1", "memory": "1"}}, "containers": [{}]}, "Guaranteed"),
        ({"initContainers": [{}], "containers": [{"resources": {"limits": {"cpu": "1", "memory": "1"}}}]}, "Burstable"),
    ],
)
def test_qos(spec: Any, expected: str) -> None:
    assert qos_class(spec) == expected
