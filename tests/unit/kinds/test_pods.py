"""Every part of every service says which pods it needs (docs/adr/0035)."""

import pytest

from flotilla_common.api.resources import POD
from flotilla_common.control.spec import Component
from flotilla_common.control.watches import Pods
from flotilla_common.installed import installed_components

PARTS = [
    pytest.param(part, id=f"{service} {part.name}")
    for service, parts in installed_components().items()
    for part in parts
    if any(watch.resource == POD for watch in part.all_watches)
]


def needs(part: Component) -> list[Pods | None]:
    return [watch.pods for watch in part.all_watches if watch.resource == POD]


def test_there_are_parts_that_need_pods() -> None:
    assert len(PARTS) > 10


@pytest.mark.parametrize("part", PARTS)
def test_no_part_needs_all_pods(part: Component) -> None:
    """Check every part: the service of one that needs all pods would follow all."""
    assert [pods for pods in needs(part) if pods is None or pods == Pods()] == []


@pytest.mark.parametrize("part", PARTS)
def test_what_decides_about_namespaces_is_watched_before_the_pods(part: Component) -> None:
    """Else its table is not there yet, and no namespace would ever be needed."""
    for number, watch in enumerate(part.all_watches):
        for near in () if watch.pods is None else watch.pods.near:
            assert any(near.watch is earlier for earlier in part.all_watches[:number])


@pytest.mark.parametrize("service", installed_components())
def test_only_pods_are_selected(service: str) -> None:
    parts = installed_components()[service]
    watches = [watch for part in parts for watch in part.all_watches if watch.pods is not None]
    assert {watch.resource for watch in watches} <= {POD}
