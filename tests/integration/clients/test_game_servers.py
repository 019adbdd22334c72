"""The operator of OpenKruiseGame works with Advanced StatefulSets: only the chosen servers are deleted."""

import pytest

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.support.game_operator import DELETION, NETWORK, NEW, OLD, OWNER, PRIORITY, STATE, GameOperator, numbers
from tests.support.rest import Rest
from tests.support.workspace import Workspace, condition, is_ready, terminating
from tests.testkit.documents import Json

WORKLOAD = STATEFUL_SET
NAME = "game"


@pytest.fixture
def operator(space: Workspace, rest: Rest) -> GameOperator:
    return GameOperator(rest, space.name, NAME)


def served(space: Workspace, operator: GameOperator, *wanted: int) -> dict[str, str]:
    """Wait until there are exactly these servers, all ready and taken care of; their uids by name."""

    def reached() -> bool:
        pods = space.pods.values()
        return numbers(pods) == sorted(wanted) and not any(map(terminating, pods)) and all(map(is_ready, pods))

    space.until(reached)
    operator.take_care()
    labelled = [pod["metadata"] for pod in operator.servers()]
    assert all(STATE in meta["labels"] for meta in labelled)
    return {meta["name"]: meta["uid"] for meta in labelled}


def images(pod: Json) -> list[str]:
    return [container["image"] for container in pod["spec"]["containers"]]


def restarts(pod: Json) -> dict[str, int]:
    return {one["name"]: one["restartCount"] for one in pod["status"]["containerStatuses"]}


def updated(space: Workspace, count: int) -> list[int]:
    """Wait until this many servers have the new scripts and are ready; return their numbers."""

    def new() -> list[Json]:
        return [pod for pod in space.pods.values() if images(pod)[1] == NEW and is_ready(pod)]

    space.until(lambda: len(new()) == count and space.status(NAME).get("updatedReadyReplicas", 0) == count)
    return numbers(new())


def test_servers_of_a_set_with_a_service_each(space: Workspace, operator: GameOperator):
    operator.create(5)
    made = served(space, operator, 0, 1, 2, 3, 4)
    addresses = {name: [space.pod(name)["status"]["podIP"]] for name in made}

    def found() -> dict[str, list[str]]:
        slices = space.read("endpointslices")["items"]
        return {
            one["metadata"]["labels"]["kubernetes.io/service-name"]: part["addresses"]
            for one in slices
            for part in one["endpoints"] or ()
        }

    space.until(lambda: found() == addresses)
    assert made == served(space, operator, 0, 1, 2, 3, 4)
    status = space.clone(NAME)["status"]
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (5, 5, 5)


def test_the_chosen_server_goes_and_comes_back(space: Workspace, operator: GameOperator):
    """The example of the operator's documentation: 2 by its priority, then 3 by its state, then both again."""
    operator.create(5)
    first = served(space, operator, 0, 1, 2, 3, 4)
    operator.mark("game-2", **{DELETION: "10"})
    operator.scale(4)
    assert served(space, operator, 0, 1, 3, 4).items() <= first.items()
    operator.mark("game-3", **{STATE: "WaitToBeDeleted"})
    operator.scale(3)
    assert served(space, operator, 0, 1, 4).items() <= first.items()
    operator.scale(5)
    last = served(space, operator, 0, 1, 2, 3, 4)
    assert {name for name, uid in last.items() if first[name] == uid} == {"game-0", "game-1", "game-4"}


def test_numbers_that_went_are_kept_free(space: Workspace, operator: GameOperator):
    operator.keeps_numbers = True
    operator.create(4)
    first = served(space, operator, 0, 1, 2, 3)
    operator.mark("game-1", **{STATE: "WaitToBeDeleted"})
    operator.scale(3)
    served(space, operator, 0, 2, 3)
    operator.scale(5)
    last = served(space, operator, 0, 2, 3, 4, 5)
    assert all(last[name] == first[name] for name in ("game-0", "game-2", "game-3"))


def test_a_reserved_number_moves_its_server(space: Workspace, operator: GameOperator):
    """The number of servers stays: the one with the reserved number is deleted, and another one is created."""
    operator.create(3, reserveOrdinals=[0])
    first = served(space, operator, 1, 2, 3)
    operator.reserve(0, 2)
    last = served(space, operator, 1, 3, 4)
    assert all(last[name] == first[name] for name in ("game-1", "game-3"))


def test_scripts_are_updated_while_servers_run(space: Workspace, operator: GameOperator):
    operator.create(3)
    first = served(space, operator, 0, 1, 2)
    operator.mark("game-0", **{STATE: "Allocated"})
    operator.update(scripts=NEW)
    assert updated(space, 3) == [0, 1, 2]
    assert served(space, operator, 0, 1, 2) == first
    assert all(restarts(pod) == {"server": 0, "scripts": 1} for pod in space.pods.values())
    labels = space.pod("game-0")["metadata"]["labels"]
    assert (labels[STATE], labels[PRIORITY]) == ("Allocated", "0"), "an update leaves the operator's labels alone"


def test_a_canary_by_priority_then_the_rest(space: Workspace, operator: GameOperator):
    operator.create(4)
    first = served(space, operator, 0, 1, 2, 3)
    operator.mark("game-1", **{PRIORITY: "10"})
    operator.update(partition=3, scripts=NEW)
    assert updated(space, 1) == [1]
    operator.mark("game-0", **{PRIORITY: "20"})
    operator.update(partition=2)
    assert updated(space, 2) == [0, 1], "a priority that was given in the meantime counts"
    operator.update(partition=0)
    assert updated(space, 4) == [0, 1, 2, 3]
    assert served(space, operator, 0, 1, 2, 3) == first


def test_a_server_that_goes_during_a_canary(space: Workspace, operator: GameOperator):
    """The new number takes the old template, as long as enough others are updated."""
    operator.create(4)
    served(space, operator, 0, 1, 2, 3)
    operator.mark("game-3", **{PRIORITY: "10"})
    operator.update(partition=3, scripts=NEW)
    assert updated(space, 1) == [3]
    operator.mark("game-1", **{STATE: "WaitToBeDeleted"})
    operator.scale(3)
    served(space, operator, 0, 2, 3)
    assert updated(space, 1) == [3]
    operator.scale(4)
    served(space, operator, 0, 1, 2, 3)
    assert images(space.pod("game-0")) == images(space.pod("game-2")) == [OLD, OLD]


def test_servers_are_ready_when_they_can_be_reached(space: Workspace, operator: GameOperator):
    operator.create(2, network=True)
    space.until(
        lambda: len(space.pods) == 2 and all(pod["status"].get("phase") == "Running" for pod in space.pods.values())
    )
    assert not any(map(is_ready, space.pods.values()))
    space.until(lambda: space.status(NAME).get("replicas") == 2)
    assert space.status(NAME).get("readyReplicas", 0) == 0
    for name in ("game-0", "game-1"):
        operator.connect(name)
    first = served(space, operator, 0, 1)
    operator.update(scripts=NEW)
    assert updated(space, 2) == [0, 1]
    assert served(space, operator, 0, 1) == first
    assert all(condition(pod, NETWORK)["status"] == "True" for pod in space.pods.values())


def test_a_hook_keeps_a_server_until_its_players_have_left(space: Workspace, operator: GameOperator):
    finalizer = "game.kruise.io/players"
    operator.create(2, lifecycle={"preDelete": {"finalizersHandler": [finalizer]}})
    served(space, operator, 0, 1)
    space.set_finalizers("game-0", finalizer)
    space.set_finalizers("game-1", finalizer)
    operator.mark("game-0", **{STATE: "WaitToBeDeleted"})
    operator.scale(1)
    state = "lifecycle.apps.kruise.io/state"
    space.until(lambda: space.pod("game-0")["metadata"]["labels"].get(state) == "PreparingDelete")
    assert not any(map(terminating, space.pods.values()))
    space.set_finalizers("game-0")
    space.until(lambda: numbers(space.pods.values()) == [1])


def test_a_probe_for_the_state_of_servers_and_the_end_of_a_set(space: Workspace, operator: GameOperator):
    operator.create(2)
    served(space, operator, 0, 1)
    marker = operator.probe()
    assert marker["spec"]["probes"][0]["markerPolicy"][0]["labels"] == {STATE: "WaitToBeDeleted"}
    operator.delete()
    space.until(lambda: not space.pods)
    space.until(lambda: not space.read("services")["items"])
    assert not space.read("controllerrevisions", "-l", f"{OWNER}={NAME}")["items"]
