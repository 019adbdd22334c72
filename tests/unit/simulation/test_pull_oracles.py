"""The oracles of image pulls: small histories that break a rule, or nearly do."""

from collections.abc import Sequence
from typing import Any

import pytest

from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from tests.simulation.oracles.pulls import Pulls
from tests.unit.simulation.object_history_builder import Json, ObjectHistoryBuilder

ALL_DONE = {"desired": 2, "succeeded": 2, "completionTime": "2026-01-01T00:00:09Z", "message": "job has completed"}


class PullHistoryBuilder(ObjectHistoryBuilder):
    """A history of one job and two nodes, a second between two changes."""

    def __init__(self, parallelism: int = 1) -> None:
        super().__init__(Pulls())
        spec = {"image": "nginx:1", "parallelism": parallelism, "completionPolicy": {"type": "Always"}}
        self._job: Json = {"spec": spec}
        self.status()
        for name in ("one", "two"):
            self.node(name)

    def status(self, **members: Any) -> None:
        """Write the job's status."""
        body = self._job | {"status": {"desired": 2, **members}}
        self.put(IMAGE_PULL_JOB, "pull", body, by="jobs-0", at=self.at + 1)

    def node(
        self, name: str, phase: str = "", *, asked: bool = False, version: int = 0, said: int | None = None
    ) -> None:
        """Write a NodeImage that reports `phase` for the round `said`."""
        spec: Json = {}
        if asked:
            owner = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "name": "pull", "uid": "pull"}
            spec = {"images": {"nginx": {"tags": [{"tag": "1", "version": version, "ownerReferences": [owner]}]}}}
        entry = {"tag": "1", "phase": phase, "version": version if said is None else said}
        status = {"desired": 1, "imageStatuses": {"nginx": {"tags": [entry]}}} if phase else {"desired": 1}
        self.put(NODE_IMAGE, name, {"spec": spec, "status": status}, by="jobs-0", at=self.at + 1)


def test_a_right_life_breaks_nothing() -> None:
    history = PullHistoryBuilder()
    for name in ("one", "two"):
        history.node(name, asked=True)
        history.status(active=1)
        history.node(name, "Pulling", asked=True)
        history.node(name, "Succeeded", asked=True)
    history.status(**ALL_DONE)
    assert history.breaches == []


def test_as_many_nodes_as_may() -> None:
    history = PullHistoryBuilder(parallelism=2)
    history.node("one", asked=True)
    history.node("two", asked=True)
    assert history.breaches == []


def test_too_many_nodes_at_once() -> None:
    history = PullHistoryBuilder()
    history.node("one", "Pulling", asked=True)
    history.node("two", asked=True)
    assert history.breaches == ["has 2 nodes pull at once (one, two), 1 may"]


def test_a_node_of_an_earlier_round_is_still_at_it() -> None:
    history = PullHistoryBuilder()
    history.node("one", "Succeeded", asked=True, version=1, said=0)
    history.node("two", asked=True)
    assert history.breaches == ["has 2 nodes pull at once (one, two), 1 may"]


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        pytest.param("Pulling", ["is over, though two has not pulled"], id="at work"),
        pytest.param("", ["is over, though two has not pulled"], id="not asked"),
        pytest.param("Failed", [], id="failed"),
    ],
)
def test_a_job_that_is_over_too_early(phase: str, expected: Sequence[str]) -> None:
    history = PullHistoryBuilder(parallelism=2)
    history.node("one", "Succeeded", asked=True)
    history.node("two", phase, asked=bool(phase))
    history.status(**ALL_DONE)
    assert history.breaches == expected


def test_a_job_that_is_given_up_leaves_nodes_undone() -> None:
    history = PullHistoryBuilder()
    history.status(
        desired=2, failed=2, completionTime="2026-01-01T00:00:09Z", message="job exceeds activeDeadlineSeconds"
    )
    assert history.breaches == []


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"succeeded": 1, "active": 2}, "counts 1 + 0 + 2 nodes of 2", id="too many"),
        pytest.param({**ALL_DONE, "succeeded": 1}, "is over with 1 of 2 nodes", id="too few at the end"),
    ],
)
def test_counts_that_do_not_add_up(status: Json, expected: str) -> None:
    history = PullHistoryBuilder(parallelism=2)
    for name in ("one", "two"):
        history.node(name, "Succeeded", asked=True)
    history.status(**status)
    assert history.breaches == [expected]


def test_what_is_over_stays() -> None:
    history = PullHistoryBuilder(parallelism=2)
    for name in ("one", "two"):
        history.node(name, "Succeeded", asked=True)
    history.status(**ALL_DONE)
    history.status(**{**ALL_DONE, "succeeded": 1, "failed": 1})
    assert history.breaches == ["changes the status of a job that is over"]


def test_a_final_phase_is_final() -> None:
    history = PullHistoryBuilder()
    history.node("one", "Failed", asked=True)
    history.node("one", "Succeeded", asked=True, version=1)
    history.node("one", "Pulling", asked=True, version=1)
    assert history.breaches == ["says Pulling of nginx:1, which was Succeeded already"]
