"""Each fault in an otherwise healthy installation has its finding, and no other fact has one."""

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from flotilla_common.api.documents import Json
from flotilla_common.control.leases import micro_time
from flotilla_insight.doctor.catalogue import CHECKS
from flotilla_insight.doctor.facts import Certificate, Fact, Facts, Leases, Probe, Sample
from flotilla_insight.doctor.gather.bus import wanted
from flotilla_insight.doctor.gather.cluster import OLD
from flotilla_insight.installation import rbac
from tests.unit.doctor import build
from tests.unit.doctor.build import NOW, codes, found, heard, lease, pod, well, workload
from tests.unit.doctor.faults import FAULTS
from tests.unit.doctor.spoil import (
    AGENTS,
    ALL_RIGHTS,
    CHART,
    OPENKRUISE,
    beside,
    beside_hooks,
    bound_beside,
    foreign_configuration,
    instead,
    others,
    with_check_of_pods,
    with_leases,
)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_and_nothing_else(name: str) -> None:
    facts, wanted = FAULTS[name]
    assert codes(facts) == wanted, "\n".join(map(str, found(facts)))


def test_nothing_is_found_where_all_is_well() -> None:
    outcomes = build.outcomes(well())
    assert [(one.check, one.not_checked) for one in outcomes] == [(check.name, "") for check in CHECKS]
    assert found(well()) == []


def seen(check: str, facts: Facts) -> tuple[str, str]:
    """Return what a check has seen, and why it was not made."""
    one = next(outcome for outcome in build.outcomes(facts) if outcome.check == check)
    return one.seen, one.not_checked


def test_a_check_says_what_it_could_not_read() -> None:
    confined = well(
        node_leases=Fact[Sequence[Json]](why="not allowed: leases"),
        samples=Fact({"core.nodes": Sample(2), "core.pods": Sample(0, denied=True)}),
    )
    clocks, _ = seen("clocks", confined)
    assert clocks.endswith("but of no node: not allowed: leases")
    mirrors, _ = seen("mirrors", confined)
    assert mirrors == "2 objects of 1 resources compared with the bus; not of core.pods, which may not be listed here"
    nothing = well(samples=Fact({"core.pods": Sample(0, denied=True)}))
    assert seen("mirrors", nothing)[1] == "not allowed: no published resource may be listed here"


HEALTHY: dict[str, Facts] = {
    "the chart": well(
        workloads=Fact([*CHART, AGENTS]),
        pods=Fact(
            [pod("flotilla-nodeagent-1", "nodeagent"), *(pod(f"flotilla-{one}-1", one) for one in build.SERVICES)]
        ),
        enrolled=frozenset[str](),
    ),
    "only some services": well(
        heartbeats=Fact([heard(one) for one in ("watcher", "cloneset", "webhook")]),
        leases=Fact(Leases([], [lease("watcher"), lease("cloneset")])),
        enrolled=frozenset[str](),
    ),
    "a node that is not ready": well(
        heartbeats=Fact(others("nodeagent")), nodes=Fact([build.node("worker-1", ready=False)])
    ),
    "taken over": well(
        workloads=Fact(
            [
                workload("Deployment", "kruise-controller-manager", replicas=0),
                workload("DaemonSet", "kruise-daemon", selector={"flotilla.kruise.io/taken-over": "true"}),
            ]
        ),
        leader=Fact(
            OPENKRUISE | {"spec": OPENKRUISE["spec"] | {"renewTime": micro_time(NOW), "holderIdentity": "flotilla"}}
        ),
    ),
    "a standby": well(heartbeats=beside(heard("jobs", "standby"))),
    "shards that went": well(
        leases=with_leases(lease("jobs", number="1"), lease("jobs", "7", number="8", holder="", version="1"))
    ),
    "a lease with long terms": well(leases=with_leases(lease("jobs", version="1", ago=10))),
    "a dead member that will be forgotten": well(
        leases=with_leases(
            lease("jobs", held=20),
            lease("jobs", "member-x", role="member", ago=600),
            first=(lease("jobs", "member-x", role="member", ago=600),),
        )
    ),
    "a lease of a resource that nobody reads": well(
        leases=with_leases(lease("watcher", "daemonsets.apps", holder="", number=""))
    ),
    "a fake node": well(
        heartbeats=Fact(others("nodeagent")),
        nodes=Fact(
            [build.node("worker-1") | {"metadata": {"name": "worker-1", "annotations": {"kwok.x-k8s.io/node": "fake"}}}]
        ),
    ),
    "a mended member": well(leases=with_leases(lease("jobs", "member-x", role="member"))),
    "an upgrade of the chart": well(
        workloads=Fact([*CHART[1:], msgspec.json.decode(msgspec.json.encode(CHART[0] | {"status": {}}))]),
        heartbeats=beside(heard("jobs", "new", version="9.9.9", gates="SidecarTerminator=true")),
        enrolled=frozenset[str]({"worker-1"}),
    ),
    "a budget": well(hooks=with_check_of_pods()),
    "others' webhooks": well(**beside_hooks(foreign_configuration(service="there"))),
    "rights by another role": well(
        rights=bound_beside("view-more", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
    ),
    "users' own rules": well(rights=bound_beside("kruise-manager-role", [ALL_RIGHTS])),
    "short certificates from outside": well(
        heartbeats=instead(
            heard("webhook", gates="EnableExternalCerts=true", certificate_end=NOW + timedelta(hours=20))
        ),
        webhook_certificate=Fact(Certificate(NOW - timedelta(hours=4), NOW + timedelta(hours=20))),
    ),
}


@pytest.mark.parametrize(("shards", "said"), [(1, []), (2, ["ShardWithoutHolder"])])
def test_leases_of_former_shards_of_pods_are_left_alone(shards: int, said: list[str]) -> None:
    streams = dict(well().streams.get()) | {name: build.stream(name) for name in wanted(shards)}
    facts = well(streams=Fact(streams), leases=with_leases(lease("watcher", "pods-1.core", holder="", number="")))
    assert codes(facts) == said


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_meant_so_is_no_fault(name: str) -> None:
    allowed = {"an upgrade of the chart": set[str](), "short certificates from outside": {"GatesDiffer"}}
    assert set(codes(HEALTHY[name])) <= allowed.get(name, set()), "\n".join(map(str, found(HEALTHY[name])))


@pytest.mark.parametrize("budget", [False, True])
def test_what_stops_while_the_webhook_is_away_is_said(budget: bool) -> None:
    hooks = with_check_of_pods() if budget else well().hooks
    (one,) = found(well(hooks=hooks, probes=Fact(build.probes(old=Probe(OLD, 0, "no answer")))))
    assert ("that a PodUnavailableBudget protects can be neither deleted nor evicted" in str(one)) is budget


@pytest.mark.parametrize(
    ("checks", "said"), [(False, "answers all of them"), (True, "answers only the apiserver"), (None, "answered")]
)
def test_whether_the_webhook_can_tell_who_asks_is_said(checks: bool | None, said: str) -> None:
    facts = well(heartbeats=instead(heard("webhook", checks_callers=checks)))
    (outcome,) = (one for one in build.outcomes(facts) if one.check == "webhook")
    assert said in outcome.seen
    assert not outcome.findings


def test_without_the_right_to_distribute_secrets_nothing_is_wrong() -> None:
    """The chart makes it only where its values name the gate."""
    kept = [one for one in rbac.objects() if one["metadata"]["name"] != rbac.DISTRIBUTION]
    assert codes(well(rights=Fact(build.rights(kept)))) == []


def test_a_right_that_is_missing_is_said_and_passes_nothing() -> None:
    facts = well(rights=Fact(why='not allowed: clusterroles is forbidden: User "x" cannot list'))
    outcome = next(one for one in build.outcomes(facts) if one.check == "access")
    assert outcome.not_checked.startswith("not allowed")
    assert codes(facts) == []
