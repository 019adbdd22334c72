"""Pods in the command line: readable objects make causes more precise, missing rights are reported."""

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import EVENT, LEASE, NODE, POD
from flotilla_common.kube.interface import ApiError
from flotilla_insight.pods.findings import CLOSELY, PodContextReader, find
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json, metadata
from tests.unit.causes.build import NOW, ago, around, condition, ended, pod, ready_pod, running, waiting

CRASHED = waiting("CrashLoopBackOff", "back-off 40s", restarts=3, last=ended(1))
MOUNT = 'MountVolume.SetUp failed for volume "tls" : secret "tls" not found'


LEASES = [
    {"metadata": metadata("n1", "kube-node-lease"), "spec": {"renewTime": ago(5), "leaseDurationSeconds": 40}},
    {"metadata": metadata("n2", "kube-node-lease"), "spec": {"renewTime": ago(50), "leaseDurationSeconds": 40}},
]
NODE_N1 = {"metadata": {"name": "n1"}, "status": {"conditions": [condition("Ready")]}}


class Shop(FakeApi):
    """A cluster with these events and this log, which denies what is named."""

    def __init__(self, *events: Json, log: bytes = b"", denies: tuple[str, ...] = ()) -> None:
        super().__init__(
            {EVENT: ({"metadata": {"namespace": "shop"}} | event for event in events), LEASE: LEASES, NODE: [NODE_N1]}
        )
        self.log = log
        self.errors = {what: ApiError(403, "Forbidden", f"{what} is forbidden") for what in denies}
        self.fail_gets = self.errors.get("nodes")

    async def raw(self, method: str, path: str, *_: object, **__: object) -> bytes:
        assert path.startswith(f"{POD.path('shop', 'web-1', 'log')}?container=app&previous=true&")
        if error := self.errors.get("log"):
            raise error
        return self.log


def event(reason: str, message: str, at: float = 10) -> Json:
    return {"reason": reason, "message": message, "lastTimestamp": ago(at)}


async def sentences(api: Shop, *pods: Pod) -> tuple[list[str], list[str], set[str]]:
    """Return the sentences (of pods that do not serve, of pods at risk, of missing rights)."""
    reader = PodContextReader(api.api)
    found = await find(pods, around(), reader)
    return [one.sentence for one in found.groups], [one.sentence for one in found.unstable], reader.denied


def named(name: str, *statuses: Json) -> Pod:
    return pod(*statuses, metadata={"name": name, "namespace": "shop"})


async def test_the_last_line_of_the_log_is_told() -> None:
    told, _, denied = await sentences(Shop(log=b"starting\nno database\n"), pod(CRASHED))
    assert told == ['web-1: container app crashes with exit code 1 (3 restarts, last words: "no database")']
    assert denied == set()


async def test_what_may_not_be_read_is_done_without_and_told() -> None:
    api = Shop(denies=("events", "nodes", "log"))
    told, _, denied = await sentences(api, pod(CRASHED))
    assert told == ["web-1: container app crashes with exit code 1 (3 restarts)"]
    assert denied == {"events", "nodes", "logs"}


async def test_events_name_what_a_pod_does_not_know_of_itself() -> None:
    told, _, _ = await sentences(Shop(event("FailedMount", MOUNT)), pod(waiting("ContainerCreating")))
    assert told == [f"web-1: a volume cannot be mounted: {MOUNT}"]


async def test_only_a_few_pods_of_a_sort_are_looked_at_closely() -> None:
    api = Shop(event("FailedMount", MOUNT))
    told, _, _ = await sentences(api, *(named(f"web-{i}", waiting("ContainerCreating")) for i in range(50)))
    assert told == [f"web-0, web-1, web-2, web-3, web-4 and 45 more: a volume cannot be mounted: {MOUNT}"]
    assert api.lists.count("events") == CLOSELY


async def test_what_is_under_way_is_told_with_its_age() -> None:
    told, _, _ = await sentences(Shop(), pod(running(since=12)))
    assert told == ["web-1: container app runs, and its kubelet has not reported it ready yet (for 12s)"]


async def test_a_pod_that_serves_may_be_unstable() -> None:
    killing = event("Killing", "Container app failed liveness probe, will be restarted", at=32)
    serving = pod(running(ready=True, restarts=2, since=20, last=ended(137)), conditions=[condition("Ready")])
    told, unstable, _ = await sentences(Shop(killing), serving, ready_pod(condition("Ready"), metadata={"name": "b"}))
    assert told == []
    assert unstable[0] == "web-1: container app is restarted, its liveness probe fails (2 restarts)"


@pytest.mark.parametrize(("denies", "silent"), [((), {"n2"}), (("leases",), set[str]())])
async def test_kubelets_that_let_their_lease_run_out(denies: tuple[str, ...], silent: set[str]) -> None:
    reader = PodContextReader(Shop(denies=denies).api)
    assert set(await reader.silent_nodes(NOW)) == silent
    assert bool(reader.denied) == bool(denies)
