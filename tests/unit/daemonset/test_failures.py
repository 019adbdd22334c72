"""Failed pods and their back-off, lost pods, hooks, and undecodable objects (daemonset.md §4.5 to §4.7)."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.daemonset.types import DaemonSet
from flotilla_common.control.plan import Delete, Patch
from flotilla_common.mirror.table import Table
from flotilla_common.workload.pernode import Departed
from flotilla_daemonset.daemonset.snapshot import FIRST_DELAY, LONGEST_DELAY, RESET_AFTER, PreviousPod, record_deletion
from tests.support.fake_clock import FakeClock
from tests.testkit.plans import codes, reason
from tests.unit.daemonset.build import NOW, Builder, ds, node, planned, pod, summary, writes


def test_a_failed_pod_is_told_of_and_deleted() -> None:
    plan = planned(ds("A"), "1AF 2A", on=2)
    assert summary(plan) == ["-1A"]
    (event,) = plan.events
    assert (event.reason, event.warning) == ("FailedDaemonPod", True)
    assert event.message == "Found failed daemon pod default/d-1A0 on node n1, will try to kill it"


def test_a_failed_pod_is_told_of_once() -> None:
    """Not again and again while the hook holds it, and not before its turn comes."""
    held = ds("A").hooked()
    assert [event.reason for event in planned(held, "1AFH 2A", on=2).events] == ["FailedDaemonPod"]
    assert planned(held, "1AFHD 2A", on=2).events == ()
    assert len(planned(ds("A").set(burstReplicas=1), "1AF 2AF", on=2).events) == 1


def test_one_that_fails_again_stays_for_a_while() -> None:
    previous_pods = {
        "n1": PreviousPod(name="d-x", failed_at=NOW - timedelta(seconds=1), delay=timedelta(seconds=4), generation=1)
    }
    plan = planned(ds("A"), "1AF 2A", on=2, previous_pods=previous_pods)
    assert summary(plan) == []
    assert plan.wake_at == NOW + timedelta(seconds=3)
    assert "WaitingForBackoff" in codes(plan)
    changed = ds("A").stored(observedGeneration=2)
    assert writes(changed, "1AF 2A", on=2, previous_pods=previous_pods) == "-1A"


class Fleet:
    """Tables in which pods of one node come and go."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.sets, self.pods = Table[DaemonSet](), Table[Pod]()
        self.previous_pods = Departed(self.sets, self.pods, self._after)
        self.sets.apply(ds().build())
        self.count = 0

    def _after(self, daemonset: DaemonSet, pod: Pod, before: PreviousPod | None) -> PreviousPod:
        return record_deletion(daemonset, pod, before, self.clock.now())

    @property
    def known(self) -> Mapping[str, PreviousPod]:
        return self.previous_pods.of("uid-d")

    def goes(self, flags: str = "F") -> PreviousPod:
        self.count += 1
        one = pod("n1", "A", flags, name=f"d-{self.count}")
        self.pods.apply(one)
        self.pods.remove("default", one.metadata.name, one.metadata.uid)
        return self.known["n1"]


def test_the_delay_doubles_while_pods_fail() -> None:
    fleet = Fleet()
    assert fleet.goes("").failed_at is None
    delays = [fleet.goes().delay for _ in range(12)]
    assert delays[:4] == [FIRST_DELAY * factor for factor in (1, 2, 4, 8)]
    assert delays[-1] == LONGEST_DELAY
    fleet.goes("")
    assert fleet.known["n1"].delay == LONGEST_DELAY
    assert fleet.known["n1"].name == f"d-{fleet.count}"
    fleet.clock.time += (RESET_AFTER + LONGEST_DELAY).total_seconds()
    assert fleet.goes().delay == FIRST_DELAY


def test_nothing_is_remembered_of_a_pod_of_another_namespace() -> None:
    """A backup that was restored there keeps its owner references."""
    fleet = Fleet()
    stranger = pod("n1", "A", "F")
    meta = msgspec.structs.replace(stranger.metadata, namespace="restored")
    fleet.pods.apply(msgspec.structs.replace(stranger, metadata=meta))
    fleet.pods.remove("restored", meta.name, meta.uid)
    assert fleet.known == {}


def test_another_generation_begins_anew_and_a_daemonset_that_goes_is_forgotten() -> None:
    fleet = Fleet()
    fleet.goes()
    assert fleet.goes().delay == FIRST_DELAY * 2
    changed = ds().stored(observedGeneration=2)
    changed.metadata["resourceVersion"] = "8"
    fleet.sets.apply(changed.build())
    assert fleet.goes().delay == FIRST_DELAY
    fleet.sets.remove("default", "d", "uid-d")
    assert fleet.known == {}


def test_pods_of_others_are_not_remembered() -> None:
    fleet = Fleet()
    stranger = pod("n1", owners=[])
    fleet.pods.apply(stranger)
    fleet.pods.remove("default", stranger.metadata.name, stranger.metadata.uid)
    assert fleet.known == {}


def test_only_unscheduled_pods_of_a_node_that_is_gone_are_deleted() -> None:
    assert writes(ds("A"), "1A 6AP 7A 8APT", on=1) == "-6A"


def test_what_may_be_serving_is_deleted_only_at_the_version_that_said_it_is_not() -> None:
    def deletes(builder: Builder, pods: str) -> dict[str, str]:
        found = [action for action in planned(builder, pods, on=2).actions if isinstance(action, Delete)]
        return {action.name: action.resource_version for action in found}

    assert deletes(ds().m(2), "1A! 2A") == {"d-1A0": "5", "d-2A1": ""}


@pytest.mark.parametrize("flags", ["", "!"])
def test_a_terminating_pod_is_never_deleted_again(flags: str) -> None:
    assert writes(ds().m("100%"), f"1AT{flags} 2AT{flags}", on=2) == ""


def test_a_hook_that_is_taken_out_of_the_spec_lets_go() -> None:
    assert writes(ds("A"), "1AHD 2A", on=2) == "-1A"


def test_preparing_delete_is_final() -> None:
    plan = planned(ds("A").hooked(), "1AHD 2A", on=2)
    assert summary(plan) == []
    assert "d-1A0" in reason(plan, "WaitingForHook")
    assert writes(ds("A").hooked(), "1AD 2A", on=2) == "-1A"


def test_held_pods_may_be_made_not_ready() -> None:
    plan = planned(ds().hooked(markPodNotReady=True), "1AH", on=1)
    (patch,) = plan.actions
    assert isinstance(patch, Patch)
    conditions = {one["type"]: one["status"] for one in patch.body["status"]["conditions"]}
    assert conditions == {"KruisePodReady": "False", "Ready": "False"}


def test_the_burst_bounds_deletes_and_updates_in_place() -> None:
    assert writes(ds().m("100%").set(burstReplicas=2), "1A 2A 3A", on=3) == "-3A -2A"
    assert writes(ds().m("100%").in_place().set(burstReplicas=2), "1A 2A 3A", on=3) == "~3A ~2A"


def test_after_a_failed_create_only_one_is_tried() -> None:
    assert writes(ds(), "1B 2B 3B", on=9, failures={"create": "quota"}) == "+n4"
    assert writes(ds(), "1B 2B 3B", on=9) == "+n4 +n5 +n6 +n7 +n8 +n9"


@pytest.mark.parametrize(
    ("builder", "code"),
    [
        (ds().set(selector={}), "SelectingAll"),
        (ds().set(selector={"matchLabels": {"a b": "c"}}), "InvalidSelector"),
        (ds().set(template={"spec": {"nodeSelector": 7}}), "InvalidTemplate"),
        (ds().set(template=[]), "InvalidTemplate"),
        (ds().deleting(), "Terminating"),
    ],
)
def test_what_cannot_be_planned(builder: Builder, code: str) -> None:
    plan = planned(builder, "1A", on=2, revisions=[])
    assert codes(plan) == {code}
    assert plan.stages == ()
    assert plan.status is None


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        (ds().m("many"), "-3A"),  # as if it were 1
        (ds().p("some"), ""),  # all stay
        (ds().rolling(selector={"matchLabels": {"a b": "c"}}), ""),
    ],
)
def test_numbers_that_cannot_be_read_are_replaced_by_the_careful_choice(builder: Builder, expected: str) -> None:
    plan = planned(builder, "1A 2A 3A", on=3)
    assert " ".join(summary(plan)) == expected
    assert "InvalidNumber" in codes(plan)


def test_a_surging_update_makes_no_pod_where_none_would_be_scheduled() -> None:
    on = [node("n1", taints=["x:NoSchedule"]), node("n2")]
    assert writes(ds().surge(2), "1A 2A", on=on) == "+n2"


def specified(name: str, flags: str = "", letter: str = "B", *, since: str | None = None) -> Pod:
    labels = {"app": "d", "controller-revision-hash": letter, "apps.kruise.io/specified-delete": "true"}
    return pod(name, letter, flags, since, labels=labels)


@pytest.mark.parametrize(
    ("builder", "found", "expected"),
    [
        (ds(), [specified("n1"), pod("n2"), pod("n3")], "-n1B"),
        (ds().rolling(paused=True), [specified("n1"), pod("n2"), pod("n3")], "-n1B"),
        (ds().on_delete(), [specified("n1"), pod("n2"), pod("n3")], "-n1B"),
        (ds().surge(), [specified("n1"), pod("n2"), pod("n3")], "-n1B"),
        (ds().p(3), [specified("n1", letter="A"), pod("n2", "A"), pod("n3", "A")], "-n1A"),
        (ds(), [specified("n1"), specified("n2"), pod("n3")], "-n2B"),
        (ds(), [specified("n1"), pod("n2", flags="!"), pod("n3")], ""),
        (ds(), [specified("n1", "!"), pod("n2", flags="!"), pod("n3")], "-n1B"),
        (ds(), [specified("n1"), pod("n2", "A"), pod("n3", "A")], "-n1B"),  # which uses maxUnavailable up
        (ds().m(2), [specified("n1"), pod("n2", "A"), pod("n3", "A")], "-n1B -n3A"),
        (ds(), [specified("n1", letter="A"), pod("n2", "A"), pod("n3", "A")], "-n1A"),
        (ds().set(minReadySeconds=300), [specified("n1"), pod("n2", since="9"), pod("n3")], ""),
        (
            ds().set(minReadySeconds=300),
            [specified("n1", since="9"), specified("n2", since="9"), pod("n3", since="9")],
            "-n2B",
        ),
        (ds().hooked(), [specified("n1", "H"), pod("n2"), pod("n3")], "hold:n1B"),
        (ds(), [specified("n1", "T"), pod("n2"), pod("n3")], ""),
    ],
)
def test_specified_pods_are_deleted_within_max_unavailable(builder: Builder, found: list[Pod], expected: str) -> None:
    assert writes(builder, found, on=3) == expected


def test_why_a_specified_pod_is_still_there() -> None:
    plan = planned(ds(), [specified("n1"), pod("n2", flags="!")], on=2)
    assert reason(plan, "WaitingForDeleteBudget") == (
        "waiting: d-n1B (specified for deletion) would be unavailable; maxUnavailable is 1, "
        "1 of 2 nodes have no available pod"
    )
