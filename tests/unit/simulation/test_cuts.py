"""Cutting a plan to the part that a pass writes."""

import pytest

from flotilla_common.api.resources import CONFIG_MAP, POD, Resource
from flotilla_common.control.plan import Chain, Create, Delete, Intent, Plan, Stage
from tests.simulation.perturbation.passes import CUTS


def made(name: str, resource: Resource = POD) -> Chain:
    return (Create(resource=resource, namespace="shop", name=name, intent=Intent.CREATE, cause="scale up", body={}),)


def gone(name: str) -> Chain:
    return (
        Delete(resource=POD, namespace="shop", name=name, intent=Intent.DELETE, cause="scale down", uid=f"uid-{name}"),
    )


PLAN = Plan(
    stages=(
        Stage(chains=(made("a"), made("b"), made("c"), made("d", CONFIG_MAP), gone("e")), stop_on_failure=False),
        Stage(chains=(gone("f"), gone("g"), made("h"))),
        Stage(chains=(gone("i"),)),
    )
)


@pytest.mark.parametrize(
    ("cut", "left"),
    [
        ("one-pod", ["a d e", "f g"]),
        ("two-pods", ["e d c b", "g f"]),
        ("all-pods", ["a b c d e", "f g h", "i"]),
        ("one-write", ["a", "f"]),
    ],
)
def test_what_is_left(cut: str, left: list[str]) -> None:
    """Nothing follows a stage that is not complete, where a failure would end the pass."""
    stages = CUTS[cut].part_of(PLAN).stages
    assert [" ".join(chain[-1].name for chain in stage.chains) for stage in stages] == left
