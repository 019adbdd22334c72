"""The conditions under which containers count as new (containerrecreaterequest.md §6.3, §13)."""

from datetime import timedelta

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest
from flotilla_jobs.containerrecreate.merge import observed
from tests.testkit.documents import Json, decoded
from tests.unit.recreate.world import START, pod_document, request_document, stamp, status_of

BEFORE, AFTER = stamp(START - timedelta(seconds=5)), stamp(START + timedelta(seconds=5))
OLD = {"name": "app", "ready": True, "restartCount": 1, "containerID": "containerd://c3"}


def seen(status: Json | None, *, context: Json | None = None, held: Json | None = None) -> list[str]:
    document = request_document("app") | (
        {"status": {"phase": "Recreating", "containerStatusSnapshot": [held]}} if held else {}
    )
    if context is not None:
        document["spec"]["containers"][0]["statusContext"] = context
    pod = pod_document()
    pod["status"]["containerStatuses"] = [status] if status else []
    request = decoded(document, ContainerRecreateRequest)
    return [one.container_id for one in observed(request, decoded(pod, Pod))]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(None, [], id="no status"),
        pytest.param(status_of("app", "containerd://c1", since=BEFORE), [], id="the old one"),
        pytest.param(status_of("app", "containerd://c1", since=AFTER), [], id="the old one, started after the request"),
        pytest.param(status_of("app", "containerd://c3", 1, since=AFTER), ["containerd://c3"], id="a new one"),
        pytest.param(
            status_of("app", "containerd://c3", 1, since=BEFORE), ["containerd://c3"], id="admission saw a stale status"
        ),
        pytest.param(status_of("app", "containerd://c1", 1, since=AFTER), ["containerd://c1"], id="a higher count"),
        pytest.param(status_of("app", "", 1, since=AFTER), [], id="without an ID"),
        pytest.param(status_of("app", "containerd://c3", 1) | {"state": {"waiting": {}}}, [], id="not running"),
    ],
)
def test_what_is_seen(status: Json | None, expected: list[str]):
    assert seen(status) == expected


@pytest.mark.parametrize(
    ("since", "expected"),
    [(BEFORE, []), (stamp(START), ["containerd://c1"]), (AFTER, ["containerd://c1"])],
    ids=["older", "of the same second", "younger"],
)
def test_without_a_context_the_start_time_decides(since: str, expected: list[str]):
    assert seen(status_of("app", "containerd://c1", since=since), context={}) == expected


def test_between_old_and_new_the_last_one_stands():
    assert seen(None, held=OLD) == ["containerd://c3"]
    assert seen(status_of("app", "containerd://c4", 2, since=AFTER), held=OLD) == ["containerd://c4"]
