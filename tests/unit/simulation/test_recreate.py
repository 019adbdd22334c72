"""Container restarts in the simulated world: once each, through all failures of the service that records them.

At every write of the jobs service something goes wrong: it is killed before or after it, stands still for longer than
its lease, loses the reply, meets a conflict, or the bus forgets everything. The end is always the same: every container
was stopped exactly once, and no pod is left out of service.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import msgspec
import pytest

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.resources import EVENT, LEASE, POD, Resource
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.simulation.apiserver.wire import ONE_WAY, Delivery, Request
from tests.simulation.history import History
from tests.simulation.recreate_agent import Agent
from tests.simulation.scenarios.manifests import cloneset
from tests.simulation.world import World, simulate

T = TypeVar("T")
NODES = ("node-1", "node-2", "node-3")
REPLICAS = {"watcher": 1, "cloneset": 1, "jobs": 1}
FINALIZER = "crr.apps.kruise.io/unready-acquired"
RESTART_SECONDS = 0.5
QUIET_SECONDS = 16.0
"""Longer than an agent needs to see that its delivery is lost with the stream, or waits for a lost answer, longer than
the lease of a dead process, and than a pause."""

PAUSE_SECONDS = 8.0
"""Longer than a lease: the other replica has taken over when the process resumes."""

PHASES = ("", "Pending", "Recreating", "Completed")


def request(name: str, pod: str, *containers: str, **strategy: object) -> Json:
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ContainerRecreateRequest",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"podName": pod, "containers": [{"name": one} for one in containers], "strategy": strategy},
    }


def objects(world: World, resource: Resource) -> list[Json]:
    return [stored.document for stored in world.server.store.table(resource).objects.values()]


class Result(msgspec.Struct):
    """The final state and the history of a run."""

    history: History
    kills: list[tuple[str, str]]
    requests: list[Json]
    pods: list[Json]


async def play(world: World, *, clumsy: bool = False) -> Result:
    """Play restarts in two pods.

    One is held out of service for a second while both containers restart in order, in the other one container
    restarts twice.
    """
    containers = [
        {"name": "app", "image": "registry.test/shop:one"},
        {"name": "side", "image": "registry.test/shop:one"},
    ]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    await world.api.create(CLONE_SET, "shop", msgspec.json.encode(cloneset(2, top={"template": template})))
    agents = [Agent(world, node) for node in NODES]
    await world.settle(quiet=2)
    first, second = sorted(pod["metadata"]["name"] for pod in objects(world, POD))
    for agent in agents:
        agent.forget_after_kill = clumsy
    for document in (
        request("both", first, "app", "side", orderedRecreate=True, unreadyGracePeriodSeconds=1),
        request("one-more", second, "app"),
        request("twice", second, "app", forceRecreate=True, unreadyGracePeriodSeconds=0),
    ):
        await world.api.create(RECREATE_REQUEST, "shop", msgspec.json.encode(document))
    await world.settle(quiet=QUIET_SECONDS)
    kills = sorted(kill for agent in agents for kill in agent.kills)
    return Result(world.history, kills, objects(world, RECREATE_REQUEST), objects(world, POD))


class Trouble:
    """A fault at the nth write of the jobs service, counted over all its restarts."""

    def __init__(self, at: int = 0, fault: str = "") -> None:
        self.at = at
        self.fault = fault
        self.count = 0
        self.world: World | None = None

    def strikes(self, request: Request) -> bool:
        """Report whether this request is the write that goes wrong."""
        if not request.writer.startswith("jobs-") or not request.writes or request.resource in (LEASE, EVENT):
            return False
        self.count += 1
        return self.count == self.at

    def crash(self, writer: str) -> None:
        """Kill the process (`kill -9`) and restart it."""
        assert self.world is not None
        process = self.world.processes[writer]
        process.crash()
        self.world.loop.call_later(RESTART_SECONDS, process.start)

    def disturb(self, writer: str) -> None:
        """Pause the process or wipe the bus; the request itself is left alone."""
        assert self.world is not None
        if self.fault == "pause":
            process = self.world.processes[writer]
            process.pause()
            self.world.loop.call_later(PAUSE_SECONDS, process.resume)
        elif self.fault == "wipe":
            self.world.bus.wipe()


class TroubledWire:
    """A network on which one write of the jobs service fails."""

    def __init__(self, trouble: Trouble) -> None:
        self._trouble = trouble

    async def carry(self, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        strikes = self._trouble.strikes(request)
        if strikes and self._trouble.fault == "crash before":
            self._trouble.crash(request.writer)
            raise Unreachable("the sender is dead", sent=False)
        if strikes:
            self._trouble.disturb(request.writer)
        await asyncio.sleep(ONE_WAY)
        if strikes and self._trouble.fault == "conflict":
            raise ApiError(409, "Conflict", "somebody was faster")
        reply = await serve()
        if strikes and self._trouble.fault == "crash after":
            self._trouble.crash(request.writer)
        if strikes and self._trouble.fault in ("crash after", "lost reply"):
            raise Unreachable("connection reset by peer")
        await asyncio.sleep(ONE_WAY)
        return reply

    async def deliver(self, request: Request, delivery: Delivery) -> bool:
        await asyncio.sleep(max(delivery.at + ONE_WAY - asyncio.get_running_loop().time(), 0))
        return True


def run(trouble: Trouble, *, clumsy: bool = False, seed: int = 0, shuffle: bool = False) -> Result:
    """Run the scenario with this fault."""

    async def body(world: World) -> Result:
        trouble.world = world
        return await play(world, clumsy=clumsy)

    wire = None if shuffle else lambda _: TroubledWire(trouble)
    replicas = REPLICAS | {"jobs": 2 if trouble.fault == "pause" else 1}
    return simulate(body, replicas=replicas, wire=wire, seed=seed, shuffle=shuffle)


def restarts(pods: list[Json]) -> list[list[int]]:
    """Return the restarts of each container of each pod."""
    return [[one["restartCount"] for one in pod["status"]["containerStatuses"]] for pod in pods]


def check(result: Result) -> None:
    """Check the final state that every run must reach, and the invariants of its history."""
    assert result.kills == [("both", "app"), ("both", "side"), ("one-more", "app"), ("twice", "app")]
    assert sorted(restarts(result.pods)) == [[1, 1], [2, 0]]
    for document in result.requests:
        metadata, status = document["metadata"], document["status"]
        assert (status["phase"], status.get("message", "")) == ("Completed", ""), metadata["name"]
        assert {(one["phase"], one["isKilled"]) for one in status["containerRecreateStates"]} == {("Succeeded", True)}
        assert not metadata.get("finalizers")
        assert len(metadata["labels"]) == 2
    for pod in result.pods:
        conditions = {one["type"]: one for one in pod["status"]["conditions"]}
        assert (conditions["KruisePodReady"]["status"], conditions["Ready"]["status"]) == ("True", "True")
    assert list(breaches(result.history)) == []


def breaches(history: History) -> Iterator[str]:
    """Yield the breaches of invariants, checked after every change."""
    held: dict[str, set[str]] = {}  # by request: finalizers
    for version in history.versions:
        if version.resource == RECREATE_REQUEST:
            after = version.after
            held[f"{version.namespace}/{version.name}"] = (
                set(after["metadata"].get("finalizers", ())) if after else set()
            )
            if version.before and after:
                yield from regressions(version.before, after)
        elif version.resource == POD and version.after:
            for key in holders(version.after):
                if FINALIZER not in held.get(key, set()):
                    yield f"{version.at}: {key} keeps {version.name} not ready without a finalizer"


def holders(pod: Json) -> Iterator[str]:
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "KruisePodReady" and condition.get("message"):
            for entry in msgspec.json.decode(condition["message"]):
                if entry["userAgent"] == "ContainerRecreateRequest":
                    yield entry["key"]


def regressions(before: Json, after: Json) -> Iterator[str]:
    """Yield the steps by which a request went backward."""
    old, new = before.get("status", {}), after.get("status", {})
    name = after["metadata"]["name"]
    if PHASES.index(new.get("phase", "")) < PHASES.index(old.get("phase", "")):
        yield f"{name} goes back to {new.get('phase')}"
    if old.get("conditions") and new.get("conditions") != old["conditions"]:
        yield f"{name}: the beginning of the grace period moves"
    context = {one["name"]: one["statusContext"]["containerID"] for one in after["spec"]["containers"]}
    for one in new.get("containerStatusSnapshot", ()):
        if one["containerID"] == context[one["name"]]:
            yield f"{name} takes the old container for the new one"
    was = {one["name"]: one for one in old.get("containerRecreateStates", ())}
    for one in new.get("containerRecreateStates", ()):
        if was.get(one["name"], {}).get("isKilled") and not one.get("isKilled"):
            yield f"{name}: {one['name']} is un-killed"


def test_undisturbed() -> None:
    trouble = Trouble()
    result = run(trouble)
    check(result)
    assert trouble.count == WRITES.stop - 1


FAULTS = ("crash before", "crash after", "pause", "lost reply", "wipe", "conflict")
WRITES = range(4, 32)
"""Writes of an undisturbed run; the first three create NodeImages."""


CASES = [(at, FAULTS[at % len(FAULTS)]) for at in WRITES]
CASES += [(11, "wipe"), (12, "wipe")]  # pods that changed after the watcher's marker were once taken for gone


@pytest.mark.parametrize(("at", "fault"), CASES)
def test_trouble_at_every_write(at: int, fault: str) -> None:
    check(run(Trouble(at, fault)))


@pytest.mark.parametrize("seed", range(3))
def test_messages_of_uneven_speed(seed: int) -> None:
    check(run(Trouble(), seed=seed, shuffle=True))


def test_an_agent_that_dies_after_a_stop_does_not_stop_again() -> None:
    check(run(Trouble(), clumsy=True))
