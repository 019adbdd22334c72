"""Each guard of architecture.md §4, §5 is needed: taken out, the simulation fails; left in, the same runs pass.

Guards overlap: most of what one would let through, another one catches. So some of these runs combine faults that leave
only the one guard in question.
"""

# pyright: reportPrivateUsage=false
# Taking a guard out means reaching into what it guards.

import itertools
from collections.abc import Collection, Iterable, Iterator

import msgspec
import pytest

from flotilla_cloneset.cloneset import create
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Object, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import StreamSpec
from flotilla_common.control.executor import Report
from flotilla_common.control.fence import Fence
from flotilla_common.control.plan import Action, Outcome
from flotilla_common.control.shards import Shards, shard_of
from flotilla_common.gates import Gates
from flotilla_common.mirror import bus_source
from flotilla_common.mirror.bus_source import BusSource
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.table import Table
from flotilla_common.workload.inplace import completion
from flotilla_common.workload.inplace.state import InPlaceState
from flotilla_common.workload.pod_creation import suffix
from flotilla_watcher import app as watcher
from tests.simulation.perturbation.play import run
from tests.simulation.perturbation.removal import Removal, each, passes, shown_to_be_needed
from tests.simulation.scenarios import every_scenario
from tests.testkit.tables import cases


def no_write_through(patch: pytest.MonkeyPatch) -> None:
    """Do not store replies to our writes in the mirror."""

    def written(mirror: Mirror, resource: Resource, body: bytes) -> None:
        del mirror, resource, body

    patch.setattr(Mirror, "written", written)


def no_monotonicity(patch: pytest.MonkeyPatch) -> None:
    """Let tables accept any version, even an older or deleted one."""

    def apply(table: Table[Object], obj: Object, as_of: int = -1) -> bool:
        del as_of
        held = table.get(obj.metadata.namespace, obj.metadata.name)
        if held is not None:
            table._forget(held)
        table._absent.clear()
        table._objects[(obj.metadata.namespace, obj.metadata.name)] = table._by_uid[obj.metadata.uid] = obj
        table._file(obj, table._keys(obj))
        table._notify(held, obj)
        return True

    patch.setattr(Table, "apply", apply)
    patch.setattr(bus_source, "version_of", oldest)
    stream = subjects.kube_stream

    def on_disk(resource: Resource) -> StreamSpec:
        return msgspec.structs.replace(stream(resource), rebuilt=False)

    patch.setattr(subjects, "kube_stream", on_disk)  # what is old is there again after a restart


def oldest(_: Object) -> int:
    """Return a version that is older than all others."""
    return -1


def no_resync(patch: pytest.MonkeyPatch) -> None:
    """Plan an acquired shard with the present state of the mirror, without a resync."""

    async def resync(mirror: Mirror, resources: Iterable[Resource]) -> None:
        del mirror, resources

    patch.setattr(Mirror, "resync", resync)


def no_lease_check(patch: pytest.MonkeyPatch) -> None:
    """Let a former holder of a shard write for it until it is notified."""

    def fence(shards: Shards, namespace: str, name: str) -> Fence:
        index = shard_of(namespace, name, shards.count)
        return Fence(lambda: index in shards._serving, lambda: 60.0)

    patch.setattr(Shards, "fence", fence)


def no_reading_of_unknown_outcomes(patch: pytest.MonkeyPatch) -> None:
    """Count a write without a reply as failed."""
    add = Report.add

    def add_as_failed(report: Report, action: Action, outcome: Outcome) -> None:
        add(report, action, outcome)
        report.unknown = False

    patch.setattr(Report, "add", add_as_failed)


def no_idempotent_names(patch: pytest.MonkeyPatch) -> None:
    """Give new pods new names in each plan."""
    counter = itertools.count()

    def new_instance_ids(owner: ObjectMeta, existing: Iterable[str], taken: Collection[str]) -> Iterator[str]:
        del owner, existing
        return (name for name in (suffix(b"", number) for number in counter) if name not in taken)

    patch.setattr(create, "new_instance_ids", new_instance_ids)


def absence_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Treat objects missing from the marker's epoch as deleted, in spite of later messages."""
    complete = BusSource._complete

    def remove(table: Table[Object], held: Object, version: int) -> None:
        del version
        table.remove(held.metadata.namespace, held.metadata.name, held.metadata.uid)

    def complete_by_epoch(source: BusSource, marker: subjects.Marker) -> None:
        source._versions = {subject: one for subject, one in source._versions.items() if one.epoch == marker.epoch}
        complete(source, marker)

    patch.setattr(Table, "presume_absent", remove)
    patch.setattr(BusSource, "_complete", complete_by_epoch)


def no_end_of_writes(patch: pytest.MonkeyPatch) -> None:
    """Check the lease before a write is sent only, and wait for the reply without a limit."""
    bounded = Shards.fence

    def fence(shards: Shards, namespace: str, name: str) -> Fence:
        return Fence(bounded(shards, namespace, name).may_send, lambda: 60.0)

    patch.setattr(Shards, "fence", fence)


def no_look_at_versions(patch: pytest.MonkeyPatch) -> None:
    """Ignore that versions went back: in leases and on the bus."""
    patch.setattr(Shards, "_expect_no_older", ignore)
    patch.setattr(BusSource, "_follow_line", ignore)


def ignore(*arguments: object) -> None:
    """Do nothing."""
    del arguments


def no_look_at_lists(patch: pytest.MonkeyPatch) -> None:
    """Accept a LIST that is older than the known state."""
    merge = Table[Object].merge

    def merge_unseen(table: Table[Object], objects: Iterable[Object], version: int, *, known: int = 0) -> set[str]:
        del known
        return merge(table, objects, version)

    patch.setattr(Table, "merge", merge_unseen)


def every_report_counts(patch: pytest.MonkeyPatch) -> None:
    """Complete an in-place update by a kubelet's report about any spec."""

    def done(pod: Pod, state: InPlaceState) -> bool:
        old = {name: last.image_id for name, last in (state.last_container_statuses or {}).items()}
        return all(one.image_id != old[one.name] for one in pod.status.container_statuses if one.name in old)

    counted = completion.containers_completed

    def of_any_spec(pod: Pod, state: InPlaceState, gates: Gates) -> bool:
        status = msgspec.structs.replace(pod.status, observed_generation=0)
        return counted(msgspec.structs.replace(pod, status=status), state, gates)

    patch.setattr(completion, "_images_changed", done)
    patch.setattr(completion, "containers_completed", of_any_spec)


GUARDS: dict[str, tuple[Removal, str, list[list[str]]]] = {
    "write-through": (no_write_through, "created", each("held@cloneset-0/pods:{}")),
    "versions move forward": (no_monotonicity, "scaled-in-and-out-again", each("bus-away@:{}", points=3)),
    "resync": (no_resync, "pod-let-go", each("old-view@cloneset-0:{}")),
    "lease check before each write": (no_lease_check, "created", each("paused@cloneset-0:{}")),
    "unknown outcomes are read": (
        no_reading_of_unknown_outcomes,
        "claims-made",
        each("held-from@/pods:0", "reply-lost@cloneset-0:{0}", "throttled@cloneset-0:{1}"),
    ),
    "absence is only inferred": (absence_for_ever, "scaled-out", each("slipped-in@/pods:{}", points=1)),
    "writes end with the lease": (no_end_of_writes, "recreated-with-claims", each("queued@cloneset-0:{}", first=6)),
    "versions that go back are noticed": (
        no_look_at_versions,
        "changed-twice-in-mid-roll",
        each("restored@cloneset-0:{}", points=3),
    ),
    "a report of an older spec completes nothing": (
        every_report_counts,
        "changed-while-kubelets-restart",
        each("kubelet-late@cloneset-0:{}", first=7),
    ),
    "idempotent names": (no_idempotent_names, "created", each("straggler@cloneset-0:{}", points=3)),
}


@pytest.mark.parametrize(("remove", "scenario", "attempts"), cases(GUARDS))
def test_without_the_guard_the_simulation_fails(
    remove: Removal, scenario: str, attempts: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown_to_be_needed(remove, scenario, attempts, monkeypatch)


def _lease_of_one(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group or 'core'}"


def test_without_the_look_at_lists_the_simulation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A LIST may be no older than what was known.

    Where little is written, the versions of leases give a restored etcd away. A lease for each resource stands for all
    that is written in a busy cluster, where versions are soon as high as before.
    """
    monkeypatch.setattr(watcher, "lease_name", _lease_of_one)
    scenario, points = "chosen-in-mid-roll", [[f"restored@cloneset-0:{number}"] for number in (6, 7)]
    guarded = run(every_scenario()[scenario])[0]
    assert all(passes(scenario, faults, guarded) for faults in points)
    no_look_at_lists(monkeypatch)
    unguarded = run(every_scenario()[scenario])[0]
    assert not all(passes(scenario, faults, unguarded) for faults in points)
