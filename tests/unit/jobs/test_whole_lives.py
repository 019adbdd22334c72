"""All plans of short lives of ContainerRecreateRequests, down to every cause, precondition and word.

`python -m tests.unit.jobs.test_whole_lives` writes them again after an intended change; the diff is for reading.
"""

from collections.abc import Callable
from typing import Any

import pytest

from flotilla_common.api.documents import merge
from flotilla_common.control.plan import Plan
from tests.unit.jobs.test_whole_plans import GOLDEN, text
from tests.unit.recreate.world import World, pod_document, request_document, state


class Recorded(World):
    """A world that records every plan with an action or a reason."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "last" and value != Plan():
            self.__dict__.setdefault("plans", []).append(value)
        super().__setattr__(name, value)

    def recreated(self) -> None:
        """Stop both containers as the agent, and restart them as the kubelet."""
        self.report(phase="Recreating")
        self.report(state("app", "Pending"), state("side", "Pending", "preStop"), phase="Recreating")
        self.report(state("app", "Recreating", killed=True), state("side", "Pending"), phase="Recreating")
        self.stop("app")
        self.passes(1)
        self.restart("app", "containerd://c3", ready=False)
        self.passes(1)
        self.restart("app", "containerd://c3")
        self.passes(1)
        self.report(state("app", "Succeeded", killed=True), state("side", "Failed", "stuck"), phase="Completed")


def life_with_grace() -> Recorded:
    strategy = {"unreadyGracePeriodSeconds": 3, "minStartedSeconds": 8}
    world = Recorded(
        request_document("app", "side", strategy=strategy, activeDeadlineSeconds=600, ttlSecondsAfterFinished=30)
    )
    world.passes()
    world.recreated()
    world.passes(30)
    return world


def life_without_the_gate() -> Recorded:
    strategy = {"unreadyGracePeriodSeconds": 3}
    world = Recorded(request_document("app", "side", strategy=strategy), pod=pod_document(gated=False))
    world.recreated()
    return world


def behind_another() -> Recorded:
    world = Recorded(request_document("app"), request_document("app", name="r2"))
    world.report(phase="Recreating")
    world.report(phase="Pending", name="r2")
    world.delete_request()
    world.passes(1)
    return world


def unknown_pod() -> Recorded:
    world = Recorded(request_document("app"), heard_of_pod=False)
    world.context.gone = False
    world.passes()
    world.context.gone = True
    world.passes()
    return world


def nobody_answers() -> Recorded:
    world = Recorded(request_document("app", activeDeadlineSeconds=90))
    world.passes(59)
    world.passes(1)
    return world


def deadline() -> Recorded:
    world = Recorded(request_document("app", "side", activeDeadlineSeconds=90))
    world.report(state("app", "Recreating", killed=True), state("side", "Pending"), phase="Recreating")
    world.passes(90)
    return world


def deleted_while_it_holds_the_pod() -> Recorded:
    kept = merge(
        request_document("app", strategy={"unreadyGracePeriodSeconds": 30}), {"metadata": {"finalizers": ["m"]}}
    )
    world = Recorded(kept)
    world.report(phase="Recreating")
    world.delete_request()
    world.passes(1)
    return world


LIVES: list[Callable[[], Recorded]] = [
    life_with_grace,
    life_without_the_gate,
    behind_another,
    unknown_pod,
    nobody_answers,
    deadline,
    deleted_while_it_holds_the_pod,
]


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_all_plans_of_a_life(life: Callable[[], Recorded]) -> None:
    assert text(life().plans) == (GOLDEN / f"{life.__name__}.json").read_text(encoding="utf-8")


def main() -> None:
    """Write all plans again."""
    for life in LIVES:
        (GOLDEN / f"{life.__name__}.json").write_text(text(life().plans), encoding="utf-8")


if __name__ == "__main__":
    main()
