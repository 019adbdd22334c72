"""The oracles of launches and of terminations: histories in which we break a promise, or nearly do."""

from collections.abc import Callable

import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.resources import CONFIG_MAP, POD
from tests.testkit.tables import cases
from tests.unit.simulation.history_builder import US, HistoryBuilder, Json

SIDECAR = {"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "value": "true"}


class PodHistoryBuilder(HistoryBuilder):
    """A pod `p` without an owner, with containers `a` (priority 0) and `b` (10) that wait for keys; or a job's pod."""

    def launch(self, *, a: str = "", b: str = "", uid: str = "u1", after: float = 1.0) -> None:
        """Write the pod with its containers' states as the kubelet reports them: nothing, `made` or `ready`."""
        references = {name: {"name": "p-barrier", "key": key} for name, key in (("a", "p_0"), ("b", "p_10"))}
        barriers = {
            name: {"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": reference}}
            for name, reference in references.items()
        }
        statuses = [
            {"name": name, "containerID": "c" if said else "", "ready": said == "ready"}
            for name, said in (("a", a), ("b", b))
        ]
        containers = [{"name": name, "env": [barrier]} for name, barrier in barriers.items()]
        body: Json = {"spec": {"containers": containers}, "status": {"containerStatuses": statuses}}
        self.put(POD, "p", body, by="kubelet", uid=uid, after=after)

    def keys(self, *keys: str, owner: str = "u1") -> None:
        """Write the pod's ConfigMap as the service."""
        metadata = {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": owner}]}
        self.lease(after=0.1)
        self.put(CONFIG_MAP, "p-barrier", {"metadata": metadata, "data": dict.fromkeys(keys, "true")}, by=US)

    def job(self, main: int | None, phase: str = "Running", by: str = "kubelet") -> None:
        """Write a pod whose main container runs, or ended with this code, and whose sidecar runs."""
        state: Json = {"running": {}} if main is None else {"terminated": {"exitCode": main}}
        containers = [{"name": "main"}, {"name": "log", "env": [SIDECAR]}]
        statuses = [{"name": "main", "state": state}, {"name": "log", "state": {"running": {}}}]
        body: Json = {"spec": {"containers": containers}, "status": {"phase": phase, "containerStatuses": statuses}}
        self.lease(after=0.1)
        self.put(POD, "p", body, by=by, uid="u1")

    def asks(self, uid: str = "u1") -> None:
        """Create a request as the service."""
        self.lease(after=0.1)
        self.put(RECREATE_REQUEST, f"sidecar-termination-{uid}", {"spec": {}}, by=US)


Story = Callable[[PodHistoryBuilder], object]
BROKEN: dict[str, tuple[Story, str]] = {
    "the lower priority first": (lambda t: (t.launch(), t.launch(a="made")), "a starts before b has been ready"),
    "before the higher one is ready": (
        lambda t: (t.launch(b="made"), t.launch(a="made", b="made")),
        "a starts before b has been ready",
    ),
    "a key taken away": (lambda t: (t.keys("p_10", "p_0"), t.keys("p_10")), "takes p_0 away"),
    "ended while it works": (lambda t: (t.job(None), t.asks()), "ends sidecars of p, which still works"),
    "ended a second time": (
        lambda t: (t.job(0), t.asks(), t.remove(RECREATE_REQUEST, "sidecar-termination-u1", by="user"), t.asks()),
        "is a second request for the same pod",
    ),
    "of an earlier namesake": (lambda t: (t.job(0), t.asks("u0")), "ends sidecars of a pod that never was"),
    "a phase that was not earned": (
        lambda t: (t.job(1), t.job(1, "Succeeded", by=US)),
        "says Succeeded of a pod whose main containers ended with [1]",
    ),
    "a phase too early": (
        lambda t: (t.job(None), t.job(None, "Failed", by=US)),
        "says Failed of a pod whose main containers ended with [None]",
    ),
}


@pytest.mark.parametrize(("story", "text"), cases(BROKEN))
def test_what_breaks_a_rule_is_found(story: Story, text: str) -> None:
    history = PodHistoryBuilder()
    story(history)
    (breach,) = history.breaches()
    assert text in breach


KEPT: dict[str, Story] = {
    "in order": lambda t: (t.launch(b="made"), t.launch(b="ready"), t.launch(a="ready", b="ready")),
    "unready again in between": lambda t: (t.launch(b="ready"), t.launch(b="made"), t.launch(a="made", b="made")),
    "keys added": lambda t: (t.keys("p_10"), t.keys("p_10", "p_0")),
    "keys of an earlier pod": lambda t: (t.keys("p_10", "p_0", owner="u0"), t.keys("p_10")),
    "ended when it is done": lambda t: (t.job(0), t.job(0, "Succeeded", by=US), t.asks()),
    "failed, as it has earned": lambda t: (t.job(3), t.job(3, "Failed", by=US)),
    "a phase that the kubelet says": lambda t: (t.job(1), t.job(1, "Succeeded")),
}


@pytest.mark.parametrize("story", KEPT.values(), ids=KEPT)
def test_what_nearly_breaks_one_is_not(story: Story) -> None:
    history = PodHistoryBuilder()
    story(history)
    assert history.breaches() == []
