"""However many objects need the pod webhook, its rules fit into the configuration (ADR 15)."""

from collections.abc import Collection

import msgspec
import pytest

from flotilla_common.api.podrules import LAUNCHES_IN_ORDER, PodRule, encoded, pod_entries
from flotilla_common.api.rulebounds import EVERY_POD, NAMESPACES_AT_MOST, bounded, everywhere, standing_for

LONG = "x" * 50


def pinned(count: int, expression: str = "e", why: str = "PersistentPodStates") -> set[PodRule]:
    """Return the rules of `count` objects, each in a namespace of its own."""
    return {PodRule(why, expression, f"{LONG}-{number}") for number in range(count)}


def tenants(count: int, expression: str = "") -> set[PodRule]:
    """Return the rules of a SidecarSet for each namespace."""
    return {
        PodRule(f"SidecarSet {number}", expression or f"has(object.{LONG}{number})", f"{LONG}-{number}")
        for number in range(count)
    }


def selecting(count: int) -> set[PodRule]:
    """Return the rules of SidecarSets with as many selectors of namespaces."""
    return {
        PodRule(f"SidecarSet {n}", "e", namespace_labels=f'{{"matchLabels":{{"team":"{n}"}}}}') for n in range(count)
    }


def test_a_few_dozen_namespaces_are_told_apart() -> None:
    rules = pinned(NAMESPACES_AT_MOST) | pinned(3, "other") | tenants(40) | selecting(20) | {LAUNCHES_IN_ORDER}
    assert bounded(rules) == rules


def test_more_namespaces_are_not() -> None:
    few = pinned(3, "other")
    assert bounded(pinned(NAMESPACES_AT_MOST + 1) | few) == {everywhere(PodRule("", "e"))} | few
    assert bounded(tenants(1000, "e")) == {everywhere(PodRule("", "e"))}, "the same pods of many SidecarSets"


def test_what_was_widened_takes_single_namespaces_in() -> None:
    wide = bounded(pinned(1000))
    assert bounded(wide | pinned(2)) == bounded(wide) == wide


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(selecting(5000), {everywhere(PodRule("", "e"))}, id="selectors of namespaces"),
        pytest.param(tenants(5000), {EVERY_POD}, id="pods of many kinds"),
        pytest.param(
            tenants(5000) | {LAUNCHES_IN_ORDER}, {EVERY_POD, LAUNCHES_IN_ORDER}, id="beside what is not armed"
        ),
        pytest.param({EVERY_POD, *tenants(3)}, {EVERY_POD}, id="taken in"),
        pytest.param({PodRule("SidecarSet a", "e" * 95_000)}, {EVERY_POD}, id="one long selector"),
    ],
)
def test_what_is_too_much_is_about_more_pods(rules: Collection[PodRule], expected: set[PodRule]) -> None:
    assert bounded(rules) == expected


@pytest.mark.parametrize(
    "rules",
    [
        pinned(10_000),
        pinned(10_000, "a") | pinned(10_000, "b"),
        tenants(10_000),
        tenants(300),
        selecting(10_000),
        selecting(300),
        selecting(100) | tenants(300),
    ],
    ids=["one workload", "two", "tenants", "some tenants", "selectors", "some selectors", "both"],
)
def test_it_fits(rules: set[PodRule]) -> None:
    """The annotations of an object have 256 KiB, an object 1.5 MiB, an expression 100,000 characters."""
    found = bounded(rules)
    entries = pod_entries(found)
    assert len(encoded(found)) < 200 << 10
    assert len(msgspec.json.encode(entries)) < 1 << 20
    assert all(len(entry["matchConditions"][0]["expression"]) < 100_000 for entry in entries)
    assert all(standing_for(rule, found) in found for rule in rules), "whoever waits is told"


def test_nothing_stands_for_a_rule_that_is_new() -> None:
    (rule,) = pinned(1)
    assert standing_for(rule, ()) == rule
