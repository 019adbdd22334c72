"""The demo reports every promise of an in-place update that was not kept."""

from typing import Any

import msgspec
import pytest

from flotilla_dev.cluster.demo import AFTER, BEFORE, Row, broken_promises, manifest, row

OLD = Row("sample-a", "uid-1", "node-1", "10.0.0.1", BEFORE, "sha256:old", 0, True)
NEW = msgspec.structs.replace(OLD, image=AFTER, image_id="sha256:new", restarts=1)


def test_an_in_place_update_keeps_its_promises() -> None:
    assert broken_promises({"sample-a": OLD}, {"sample-a": NEW}) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param({"uid": "uid-2"}, "sample-a: its uid changed from uid-1 to uid-2", id="uid"),
        pytest.param({"node": "node-2"}, "sample-a: its node changed from node-1 to node-2", id="node"),
        pytest.param({"ip": "10.0.0.2"}, "sample-a: its ip changed from 10.0.0.1 to 10.0.0.2", id="ip"),
        pytest.param({"restarts": 2}, "sample-a: its container restarted 2 times instead of once", id="restarts"),
        pytest.param({"image_id": "sha256:old"}, "sample-a: it still runs the old image", id="image"),
    ],
)
def test_each_broken_promise_is_named(change: dict[str, Any], problem: str) -> None:
    after = msgspec.structs.replace(NEW, **change)
    assert broken_promises({"sample-a": OLD}, {"sample-a": after}) == [problem]


def test_a_replaced_pod_is_a_broken_promise() -> None:
    after = msgspec.structs.replace(NEW, name="sample-b")
    assert broken_promises({"sample-a": OLD}, {"sample-b": after}) == [
        "the pods are not the same: ['sample-a'] became ['sample-b']"
    ]


def test_a_pod_that_has_not_started_is_a_row() -> None:
    pod = {"metadata": {"name": "sample-a", "uid": "uid-1"}, "spec": {}}
    assert row(pod) == Row("sample-a", "uid-1", "", "", "", "", 0, False)


def test_only_the_image_differs_between_the_two_manifests() -> None:
    before, after = manifest(BEFORE), manifest(AFTER)
    after["spec"]["template"]["spec"]["containers"][0]["image"] = BEFORE
    assert before == after
