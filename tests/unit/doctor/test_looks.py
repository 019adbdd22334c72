"""The comparison of two surveys, its output, and the senders of heartbeats."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import click
import pytest

from flotilla_cli.commands.doctor import as_json, lines
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.resources import LEASE, NODE, POD, Resource
from flotilla_common.bus.interface import BusError, Follow, Message, OnMessage
from flotilla_common.control.shards import SERVICE_LABEL
from flotilla_common.kube.interface import Page
from flotilla_insight.doctor import collect
from flotilla_insight.doctor.collect import Sources, fact
from flotilla_insight.doctor.facts import Fact
from flotilla_insight.doctor.finding import (
    BROKEN,
    UNWELL,
    WARNED,
    WARNING,
    WELL,
    Finding,
    Outcome,
    confirmed,
    exit_code,
    keys,
)
from flotilla_insight.doctor.gather.bus import PATIENCE_SECONDS, heartbeats, listing
from flotilla_insight.published import LISTEN_SECONDS
from tests.support.fake_bus import FakeBus, FakeFollow
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi


def finding(code: str, about: str = "x", severity: str = BROKEN, text: str = "it does not work") -> Finding:
    return Finding(code=code, about=about, text=text, advice="mend it", severity=severity)


def outcome(*findings: Finding, check: str = "bus", why: str = "") -> Outcome:
    return Outcome(check=check, title="the bus works", seen="1 bus", findings=findings, not_checked=why)


def test_only_what_both_looks_found_is_said_in_the_words_of_the_second() -> None:
    first = [outcome(finding("A"), finding("B", text="for 3 s"))]
    second = [outcome(finding("B", text="for 10 s"), finding("C"))]
    assert confirmed(first, second)[0].findings == [finding("B", text="for 10 s")]


def test_what_could_not_be_looked_at_again_is_not_lost() -> None:
    first, second = [outcome(finding("A"))], [outcome(why="no answer")]
    assert keys(confirmed(first, second)) == {("A", "x")}


def test_a_check_that_was_made_once_only_is_not_believed() -> None:
    assert keys(confirmed([outcome(check="apiserver")], [outcome(finding("A"))])) == set()


@pytest.mark.parametrize(
    ("findings", "code"),
    [((), WELL), ((finding("A", severity=WARNING),), WARNED), ((finding("A", severity=WARNING), finding("B")), UNWELL)],
)
def test_exit_codes(findings: tuple[Finding, ...], code: int) -> None:
    assert exit_code([outcome(), outcome(*findings)]) == code


def test_what_is_printed() -> None:
    outcomes = [outcome(finding("A")), outcome(check="gates", why="no bus"), outcome(check="x", why="no bus")]
    said = click.unstyle("\n".join(lines(outcomes)))
    assert (
        "broken   A  x\n         it does not work\n         → mend it\n1 broken; 2 checks could not be made. Checked:"
        in said
    )
    assert said.endswith("? not checked: gates, x  (no bus)")


def test_nothing_found_is_said() -> None:
    assert next(iter(lines([outcome()]))) == "No problems found. Checked:"


def test_json() -> None:
    report = json.loads(as_json([outcome(finding("A")), outcome(check="gates", why="no bus")]))
    assert [one["code"] for one in report["findings"]] == ["A"]
    assert (report["checked"], report["notChecked"]) == ({"bus": "1 bus"}, {"gates": "no bus"})


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ApiError(403, "Forbidden", "roles is forbidden"), "not allowed: roles is forbidden"),
        (ApiError(500, "InternalError", "broken"), "broken"),
        (Unreachable("refused"), "the apiserver does not answer: refused"),
        (BusError("away"), "the bus does not answer: away"),
        (TimeoutError(), "no answer within 8 s"),
    ],
)
async def test_why_a_fact_is_missing(error: Exception, why: str) -> None:
    async def asking() -> int:
        raise error

    assert (await fact(asking())).why == why


async def test_a_namespace_that_comes_late_costs_only_the_facts_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    missed = asyncio.Event()

    async def namespace(places: Sources) -> str:
        del places
        await missed.wait()
        return "elsewhere"

    async def noted(asking: Coroutine[Any, Any, object], seconds: float) -> Fact[object]:
        found = await fact(asking, seconds)
        if found.why.startswith("no answer"):
            missed.set()
        return found

    monkeypatch.setattr(collect, "SECONDS", 0.05)
    monkeypatch.setattr(collect, "_namespace", namespace)
    monkeypatch.setattr(collect, "fact", noted)
    facts = await collect.collect(Sources(api=FakeApi().api, clock=FakeClock()))
    assert (facts.namespace, facts.nodes.why) == ("elsewhere", "")
    assert "no answer within 0.05 s" in (facts.home.why, facts.rights.why)


class Confined(FakeApi):
    """An apiserver that lists leases in the namespace `home` only, and no pods."""

    async def list(self, resource: Resource, namespace: str = "", **options: Any) -> Page:
        if resource == POD or (resource == LEASE and namespace != "home"):
            raise ApiError(403, "Forbidden", f"{resource.plural} are forbidden")
        return await super().list(resource, namespace, **options)


async def test_without_the_right_to_list_all_leases_those_of_the_own_namespace_count() -> None:
    confined = Confined()
    for namespace in ("home", "elsewhere"):
        labels = {SERVICE_LABEL: "cloneset"}
        confined.put(LEASE, {"metadata": {"namespace": namespace, "name": "cloneset-0", "labels": labels}})
    facts = await collect.collect(Sources(api=confined.api, clock=FakeClock(), namespace="home"))
    found = facts.leases.get()
    assert [[one["metadata"]["namespace"] for one in part] for part in (found.first, found.last)] == [["home"]] * 2


async def test_what_may_not_be_listed_is_not_compared() -> None:
    found = await listing(Confined().api, [POD, NODE])
    assert [(resource.kind, one.denied) for resource, one in found.items()] == [("Pod", True), ("Node", False)]


class Speakers(FakeBus):
    """A bus on which some replicas send heartbeats as soon as a client subscribes."""

    def __init__(self, *said: tuple[str, bytes]) -> None:
        super().__init__()
        self._said = said

    async def subscribe(self, subject_filter: str, on_message: OnMessage) -> Follow:
        for subject, data in self._said:
            on_message(Message(subject=subject, data=data))
        return FakeFollow("", (subject_filter,), on_message, lambda: None)


async def test_a_heartbeat_is_from_whom_its_subject_names() -> None:
    bus = Speakers(
        ("heartbeat.v1.nodeagent.n1_example", b'{"service":"webhook","replica":"w1","version":"1"}'),
        ("heartbeat.v1.jobs.j1", b'{"service":"jobs","replica":"j1","later":{"unknown":1}}'),
        ("heartbeat.v1.jobs.j2", b"nonsense"),
    )
    found = await heartbeats(bus, FakeClock(), lambda _: True)
    assert [(one.beat.service, one.beat.replica) for one in found] == [("nodeagent", "n1.example"), ("jobs", "j1")]


async def test_who_is_expected_is_waited_for() -> None:
    clock = FakeClock()
    await heartbeats(Speakers(), clock, lambda _: False)
    patient = clock.monotonic()
    await heartbeats(Speakers(), clock, lambda _: True)
    assert LISTEN_SECONDS <= clock.monotonic() - patient < PATIENCE_SECONDS <= patient
