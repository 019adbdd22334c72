"""The sentence with which `flotilla explain` begins."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.leases import Lease
from flotilla_common.control.plan import Reason, State
from flotilla_common.workload.causes import Cause, Group
from flotilla_insight.diagnosis.summary import VerdictKind, verdict
from flotilla_insight.planning import Planning, planning_of
from flotilla_insight.pods.findings import Findings
from flotilla_insight.published import Why
from tests.testkit.tables import cases

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
META = ObjectMeta(name="web", namespace="shop", uid="u", generation=7)
ALIVE = Planning(service="cloneset")
DOWN = Planning(
    service="cloneset", nobody="no cloneset service holds the lease kruise-system/flotilla-cloneset-0: gone"
)
BEHIND = Planning(service="cloneset", behind="generation 7 is not planned yet, the last one planned is 6")
BOTH = Planning(service="cloneset", nobody=DOWN.nobody, behind=BEHIND.behind)
STUCK = Group(Cause(code="ErrImagePull", message="no image"), ("web-1",))
MOVING = Group(Cause(code="Starting", message="is being created", stuck=False), ("web-2",))


def why(*reasons: Reason, uid: str = "u") -> Why:
    return Why(uid=uid, generation=7, reasons=reasons)


BUDGET = Reason(State.WAITING, "WaitingForMaxUnavailable", "maxUnavailable 1 is used by web-1")
QUOTA = Reason(State.STUCK, "QuotaExceeded", "creating Pod web-3 is refused: exceeded quota: small")
PAUSED = Reason(State.HELD, "PausedByUser", "paused by the user: 1 of 2 pods updated")
COMPLETE = Reason(State.DONE, "Complete", "2 of 2 pods updated, all available")
EXCLUDED = Reason(State.NOTE, "NodesExcluded", "1 node gets no pod: gpu-1 has the untolerated taint gpu:NoSchedule")
MISSCHEDULED = Reason(State.NOTE, "Misscheduled", "1 node has a pod that would not be made now: n1 is tainted")
HELD_BACK = Reason(State.HELD, "PartitionedScaling", "no pod on 2 nodes yet: partition 2 applies to new pods, too")
NEXT_RUN = Reason(State.WAITING, "Waiting", "the next run is due at 13:00")
NO_AGENT = Reason(State.STUCK, "WaitingForNodeAgent", "no node agent has answered on 1 node: n1", symptom=True)
NO_ROOM = Reason(State.STUCK, "WaitingForMaxUnavailable", "maxUnavailable 0 leaves no room", symptom=True)
CREATING = Reason(State.PROGRESSING, "ScalingUp", "creating 2 of 4 missing pods")
NOBODY_LISTED = Reason(State.STUCK, "CodeOfAnotherRelease", "somebody has to act")
PULL = Reason(State.STUCK, "ErrImagePull", "web-9: no image", symptom=True)
FOUND = Findings([MOVING], codes=frozenset({"ErrImagePull"}))

ROWS = [
    ("pods", why(BUDGET), Findings([STUCK, MOVING]), ALIVE, VerdictKind.STUCK, "web-1: no image"),
    ("refusal", why(BUDGET, QUOTA), Findings([STUCK]), ALIVE, VerdictKind.STUCK, QUOTA.message),
    ("paused and broken", why(PAUSED), Findings([STUCK]), ALIVE, VerdictKind.STUCK, "web-1: no image"),
    ("paused", why(PAUSED), Findings(), ALIVE, VerdictKind.ON_HOLD, PAUSED.message),
    ("under way", why(BUDGET), Findings([MOVING]), ALIVE, VerdictKind.WAITING, "web-2: is being created"),
    ("limit", why(BUDGET), Findings(), ALIVE, VerdictKind.WAITING, "maxUnavailable 1 is used by web-1"),
    ("no room", why(NO_ROOM, CREATING), Findings(), ALIVE, VerdictKind.STUCK, NO_ROOM.message),
    ("no room, and pods", why(NO_ROOM), Findings([STUCK]), ALIVE, VerdictKind.STUCK, "web-1: no image"),
    ("no room, and a refusal", why(NO_ROOM, QUOTA), Findings(), ALIVE, VerdictKind.STUCK, QUOTA.message),
    ("an unknown code", why(BUDGET, NOBODY_LISTED), Findings([STUCK]), ALIVE, VerdictKind.STUCK, NOBODY_LISTED.message),
    ("pods as the service found them", why(PULL, BUDGET), Findings(), ALIVE, VerdictKind.STUCK, PULL.message),
    ("pods found out better", why(PULL, BUDGET), FOUND, ALIVE, VerdictKind.WAITING, "web-2: is being created"),
    ("at work", why(CREATING, BUDGET), Findings(), ALIVE, VerdictKind.PROGRESSING, CREATING.message),
    ("waiting before work", why(BUDGET, CREATING), Findings(), ALIVE, VerdictKind.WAITING, BUDGET.message),
    ("no agent", why(NO_AGENT), Findings(), ALIVE, VerdictKind.STUCK, "no node agent has answered"),
    ("complete", why(COMPLETE), Findings(), ALIVE, VerdictKind.DONE, COMPLETE.message),
    ("nodes aside", why(EXCLUDED, MISSCHEDULED, COMPLETE), Findings(), ALIVE, VerdictKind.DONE, COMPLETE.message),
    (
        "nodes aside, under way",
        why(EXCLUDED, BUDGET),
        Findings(),
        ALIVE,
        VerdictKind.WAITING,
        "maxUnavailable 1 is used",
    ),
    ("nodes held back", why(HELD_BACK, EXCLUDED), Findings(), ALIVE, VerdictKind.ON_HOLD, HELD_BACK.message),
    ("a run to come", why(NEXT_RUN), Findings(), ALIVE, VerdictKind.WAITING, "the next run is due"),
    ("a run that broke", why(NEXT_RUN), Findings([STUCK]), ALIVE, VerdictKind.STUCK, "web-1: no image"),
    ("unstable", why(COMPLETE), Findings((), [STUCK]), ALIVE, VerdictKind.UNSTABLE, "web-1: no image"),
    ("service down", why(COMPLETE), Findings(), DOWN, VerdictKind.STUCK, "no cloneset service holds the lease"),
    ("pods, and service down", why(COMPLETE), Findings([STUCK]), DOWN, VerdictKind.STUCK, "web-1: no image"),
    (
        "not planned, and down",
        why(BUDGET),
        Findings([STUCK]),
        BOTH,
        VerdictKind.STUCK,
        "no cloneset service holds the lease",
    ),
    ("not planned yet", why(COMPLETE), Findings(), BEHIND, VerdictKind.WAITING, "generation 7 is not planned yet"),
    ("an earlier namesake", why(QUOTA, uid="other"), Findings(), ALIVE, VerdictKind.DONE, "nothing to wait for"),
    ("no record", None, Findings(), ALIVE, VerdictKind.DONE, "nothing to wait for"),
]


@pytest.mark.parametrize(("record", "findings", "planning", "word", "sentence"), cases(ROWS))
def test_verdict(record: Why | None, findings: Findings, planning: Planning, word: VerdictKind, sentence: str) -> None:
    found = verdict(META, record, findings, planning)
    assert found.kind is word
    assert found.sentence.startswith(sentence)


def test_a_part_that_is_stuck_says_why_the_whole_is() -> None:
    part = msgspec.structs.replace(why(NO_AGENT, BUDGET), kind="ImagePullJob", name="pull-1")
    found = verdict(META, why(BUDGET, NO_ROOM), Findings(), ALIVE, parts=[part])
    assert found.line == f"stuck: ImagePullJob pull-1: {NO_AGENT.message}"
    waiting = msgspec.structs.replace(part, reasons=(BUDGET,))
    assert verdict(META, why(BUDGET), Findings(), ALIVE, parts=[waiting]).kind is VerdictKind.WAITING


def test_without_a_record_the_object_tells() -> None:
    told = [Reason(State.HELD, "PausedByUser", "unpause the update to continue")]
    found = verdict(META, None, Findings(), ALIVE, told)
    assert (found.kind, found.sentence) == (VerdictKind.ON_HOLD, told[0].message)


def test_an_object_that_is_held_on_its_way_out() -> None:
    leaving = msgspec.structs.replace(META, deletion_timestamp=NOW, finalizers=["example.com/keep"])
    found = verdict(leaving, why(COMPLETE), Findings(), ALIVE)
    assert found.line == "stuck: it is being deleted, held by finalizer example.com/keep"


def lease(holder: str = "a", renewed: float = 3, index: int = 0, shards: str = "1") -> Lease:
    moment = (NOW - timedelta(seconds=renewed)).isoformat().replace("+00:00", "Z")
    document = {
        "metadata": {
            "name": f"flotilla-cloneset-{index}",
            "namespace": "kruise-system",
            "labels": {"flotilla.kruise.io/shards": shards},
        },
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": moment},
    }
    return msgspec.convert(document, Lease)


@pytest.mark.parametrize(
    ("leases", "heard", "nobody"),
    [
        pytest.param([lease()], None, "", id="held"),
        pytest.param([], None, "no cloneset service holds the lease: none was ever started here", id="never"),
        pytest.param([lease(renewed=30)], None, "a has not renewed it since 2026-03-01T11:59:30Z", id="run out"),
        pytest.param([lease(holder="")], None, "the last holder released it", id="given up"),
        pytest.param([lease(shards="2")], None, "flotilla-cloneset-1: it does not exist", id="not this shard"),
        pytest.param(
            [lease()], False, "sends no heartbeat here: it has just stopped, or uses another bus", id="other bus"
        ),
        pytest.param(None, False, "sends no heartbeat: it is down", id="leases may not be read"),
        pytest.param(None, True, "", id="heard"),
    ],
)
def test_who_plans(leases: list[Lease] | None, heard: bool | None, nobody: str) -> None:
    found = planning_of("cloneset", META, why(COMPLETE), leases, heard, NOW)
    assert nobody in found.nobody
    assert bool(found.nobody) == bool(nobody)


@pytest.mark.parametrize(
    ("record", "behind"),
    [
        (why(COMPLETE), ""),
        (None, "generation 7 has not been planned yet, by the records on the bus"),
        (why(COMPLETE, uid="other"), "the last record is about an earlier object of this name"),
        (msgspec.structs.replace(why(COMPLETE), generation=6), BEHIND.behind),
    ],
)
def test_how_far_planning_is_behind(record: Why | None, behind: str) -> None:
    assert planning_of("cloneset", META, record, [lease()], None, NOW).behind == behind
