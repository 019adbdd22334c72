"""Whole plans of the jobs' planners, down to every cause, precondition, event and word: one small situation each.

They contain what is on the wire and on the bus. `python -m tests.unit.jobs.test_whole_plans` writes them again after an
intended change; the diff is for reading.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.control.plan import Plan
from flotilla_jobs.imagelistpull.plan import plan as plan_list
from flotilla_jobs.imagelistpull.plan import template_hash
from flotilla_jobs.imagelistpull.snapshot import ListJobSnapshot
from flotilla_jobs.imagepull.snapshot import Options
from flotilla_jobs.nodeimage.plan import plan as plan_node_image
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot
from tests.testkit.documents import Json, decoded
from tests.unit.imagepull.build import (
    NOW,
    ago,
    begun,
    copy_of,
    entry,
    failed,
    fresh,
    job,
    list_job,
    node,
    node_image,
    owner,
    planned,
    pulling,
    pushed,
    secret,
    succeeded,
    tag,
)

GOLDEN = Path(__file__).parent / "golden"
DONE = {"startTime": ago(60), "completionTime": ago(10), "desired": 3, "succeeded": 2, "failedNodes": ["n2"]}
OVER = {**DONE, "message": "job has completed"}
TTL = {"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 60}}


# ImagePullJobs


def first_pass() -> Plan:
    policy = {"backoffLimit": 5, "timeoutSeconds": 60}
    one = job(meta={"finalizers": ["mine"]}, parallelism=2, pullSecrets=["s1", "s2", "s1"], pullPolicy=policy, **TTL)
    source = secret(labels={"a": "b"}, annotations={"x": "y"}, immutable=True)
    return planned(one, fresh("n1", "n2", "n3"), sources={"s1": source, "s2": None}, taken={"s1-5f476a"})


def under_way() -> Plan:
    nodes = [succeeded("n1"), pulling("n2"), pushed("n3"), failed("n4", "no such image"), *fresh("n5", "n6")]
    held = node_image("n7", [tag("K", version=2, created=500)], [entry("Succeeded", version=2)])
    completion = {"type": "Always", "activeDeadlineSeconds": 100}
    return planned(job(status=begun(30), parallelism=4, completionPolicy=completion), [*nodes, held])


def many_at_work() -> Plan:
    nodes = [*(pulling(f"n{number}") for number in range(7)), *fresh("x", "y")]
    return planned(job(status=begun(30), parallelism=8), nodes, order={"y": 0, "x": 1})


def many_failed() -> Plan:
    return planned(job(status=begun(30)), [failed(f"n{number}") for number in range(7)])


def one_waits_for_others() -> Plan:
    return planned(job(status=begun(30), parallelism=1), [pulling("n1"), *fresh("n2")])


def too_late() -> Plan:
    completion = {"type": "Always", "activeDeadlineSeconds": 30}
    return planned(job(status=begun(31), completionPolicy=completion), [succeeded("n1"), pulling("n2"), *fresh("n3")])


def never_ends() -> Plan:
    spec = {"completionPolicy": {"type": "Never"}, "imagePullPolicy": "Always", "sandboxConfig": {"labels": {"a": "b"}}}
    done = node_image("n2", [tag(version=1)], [entry("Succeeded", version=1, ended=100_000)])
    return planned(job(status=begun(30), parallelism="3", **spec), [*fresh("n1"), done])


def paused() -> Plan:
    return planned(job(status=begun(30), parallelism=0), fresh("n1"))


def nowhere() -> Plan:
    return planned(job(status=begun(30), completionPolicy={"type": "Never"}))


def secrets_unread() -> Plan:
    return planned(job(status=begun(30), pullSecrets=["s1", "s2"]), fresh("n1"), sources={})


def secrets_missing() -> Plan:
    return planned(job(status=begun(30), pullSecrets=["s1", "s2"]), fresh("n1"), sources={"s1": None, "s2": None})


def secrets_kept_right() -> Plan:
    copies = [copy_of("s1", "ns/A", data="b2xk"), copy_of("s2", "ns/J"), copy_of("gone", "ns/J", "ns/A")]
    changed = decoded({**msgspec.to_builtins(copies[1]), "type": "Opaque"}, type(copies[1]))
    sources = {"s1": secret("s1"), "s2": secret("s2")}
    one = job(status=begun(30), pullSecrets=["s1", "s2"])
    return planned(one, fresh("n1"), sources=sources, copies=[copies[0], changed, copies[2]])


def secrets_of_the_same_namespace() -> Plan:
    return planned(job(pullSecrets=["s1"]), fresh("n1"), options=Options(secrets_namespace="ns", default_ttl=7))


def bad_selector() -> Plan:
    return planned(job(status=begun(30)), problem="spec.selector: operator Like")


def completed() -> Plan:
    return planned(job(status=OVER, **TTL), copies=[copy_of("s1", "ns/J"), copy_of("s2", "ns/J", "ns/K")])


def completed_long_ago() -> Plan:
    return planned(job(status={**OVER, "completionTime": ago(60)}, meta={"finalizers": []}, **TTL))


def completed_for_a_list() -> Plan:
    return planned(job(status={**OVER, "completionTime": ago(60)}, **TTL), of_running_list=True)


def job_deleted() -> Plan:
    meta = {"deletionTimestamp": ago(1), "finalizers": ["mine", "apps.kruise.io/deletion-protection"]}
    return planned(job(meta=meta), copies=[copy_of("s1", "ns/J")])


# ImageListPullJobs


def listed(one: ImageListPullJob, children: list[ImagePullJob] | None = None, **members: Any) -> Plan:
    return plan_list(ListJobSnapshot(job=one, children=children or [], **members), NOW)


def labelled(*images: str, **members: Any) -> ImageListPullJob:
    """Return a list whose label is right already."""
    mark = template_hash(list_job(*images, **members).spec)
    return list_job(*images, meta={"labels": {"controller-revision-hash": mark}}, **members)


def child(image: str, parent: ImageListPullJob, mark: str = "", **status: Any) -> ImagePullJob:
    """Return a job of the list."""
    spec = {key: value for key, value in msgspec.to_builtins(parent.spec).items() if key != "images"}
    metadata = {"name": f"L-{image}", "namespace": "ns", "uid": f"uid-L-{image}"}
    metadata |= {"labels": {"controller-revision-hash": mark or template_hash(parent.spec)}}
    document = {"metadata": metadata, "spec": {"image": image, **spec}, "status": begun() | status}
    return decoded(document, ImagePullJob)


def list_begins() -> Plan:
    one = list_job("a", "b", "a", parallelism="2", pullSecrets=["s"], meta={"name": "L" * 253})
    return listed(one, taken={f"{'L' * 246}-7db918"})


def list_under_way() -> Plan:
    one = labelled("a", "b", "c", "d", "e", "f", "g", status=begun(30))
    done: Json = {"completionTime": ago(5), "desired": 2}
    others = [child(image, one, desired=3, active=1) for image in "cdefg"]
    children = [child("a", one, **done, succeeded=2), child("b", one, **done, succeeded=1, failed=1), *others]
    return listed(one, [*children, child("x", one), child("a", one)])


def list_ends() -> Plan:
    one = labelled("a", "b", status=begun(30), **TTL)
    done: Json = {"completionTime": ago(5), "desired": 1, "succeeded": 1}
    return listed(one, [child("a", one, **done), child("b", one, **done)])


def list_ended() -> Plan:
    return listed(labelled("a", status={**OVER, "desired": 1, "succeeded": 1, "failedNodes": []}, **TTL))


def list_ended_long_ago() -> Plan:
    return listed(labelled("a", status={**OVER, "completionTime": ago(60)}, **TTL))


def list_deleted() -> Plan:
    return listed(list_job("a", meta={"deletionTimestamp": ago(1)}))


# NodeImages


def looked_at(image: NodeImage | None = None, on: Any = "node", **members: Any) -> Plan:
    held = node("n1") if on == "node" else on
    return plan_node_image(NodeImageSnapshot(name="n1", node=held, image=image, **members), NOW)


def node_not_ready_for_long() -> Plan:
    return looked_at(on=node(ready=10))


def node_is_ready() -> Plan:
    return looked_at()


def node_is_gone() -> Plan:
    return looked_at(node_image(), None)


def cleaned() -> Plan:
    tags = [
        tag("J", "K", name="1"),
        tag("K", name="2"),
        tag("J", name="3", ttlSecondsAfterFinished=10),
        tag("M", name="4", ttlSecondsAfterFinished=10),
        tag("J", name="5", ttlSecondsAfterFinished=11),
    ]
    entries = [entry("Succeeded", name=name) for name in "345"]
    secrets = [
        {"namespace": "d", "name": "s", "mode": "batch"},
        {"namespace": "d", "name": "s"},
        {"namespace": "d", "name": "t"},
    ]
    image = node_image("n1", tags, entries, secrets=secrets, labels={"old": "x"})
    lost = {"lost_owners": frozenset({"uid-K"}), "lost_secrets": frozenset({("d", "s")})}
    return looked_at(image, node(labels={"zone": "a"}), running_owners=frozenset({"uid-M"}), **lost)


def reported() -> Plan:
    tags = [tag("J", name=name, version=3) for name in "abcdefg"]
    image = node_image("n1", tags, [entry("Pulling", name="a", version=3), entry("Failed", name="c", version=3)])
    said = [
        entry("Succeeded", name="a", version=3, message="m" * 2000) | {"progress": 120},
        entry("Pulling", name="b", version=3) | {"progress": -1},
        entry("Pulling", name="c", version=3),
        entry("Succeeded", name="d", version=2),
        entry("Waiting", name="e", version=3),
        entry("Failed", name="f", version=3, message="no"),
    ]
    told = decoded({"imageStatuses": {"nginx": {"tags": said}}}, type(image.status))
    return looked_at(image, report=told)


def given_up() -> Plan:
    other: Json = owner("pod", kind="Pod")
    silent = tag("J", "K", name="silent", created=600)
    silent["ownerReferences"].append(other)
    tags = [
        silent,
        tag("J", name="slow", created=700, activeDeadlineSeconds=100),
        tag("J", name="slower", created=699, activeDeadlineSeconds=100),
        tag("J", name="late", created=599),
        tag("J", name="again", version=1, created=600),
    ]
    entries = [entry("Pulling", name=name) for name in ("slow", "slower", "again")]
    return looked_at(node_image("n1", tags, entries))


SITUATIONS: list[Callable[[], Plan]] = [
    first_pass,
    under_way,
    many_at_work,
    many_failed,
    one_waits_for_others,
    too_late,
    never_ends,
    paused,
    nowhere,
    secrets_unread,
    secrets_missing,
    secrets_kept_right,
    secrets_of_the_same_namespace,
    bad_selector,
    completed,
    completed_long_ago,
    completed_for_a_list,
    job_deleted,
    list_begins,
    list_under_way,
    list_ends,
    list_ended,
    list_ended_long_ago,
    list_deleted,
    node_not_ready_for_long,
    node_is_ready,
    node_is_gone,
    cleaned,
    reported,
    given_up,
]


def text(plans: Any) -> str:
    """Return the plans as they are stored."""
    return msgspec.json.format(msgspec.json.encode(plans, order="sorted"), indent=1).decode() + "\n"


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
def test_whole_plan(situation: Callable[[], Plan]) -> None:
    assert text(situation()) == (GOLDEN / f"{situation.__name__}.json").read_text(encoding="utf-8")


def main() -> None:
    """Write all plans again."""
    for situation in SITUATIONS:
        (GOLDEN / f"{situation.__name__}.json").write_text(text(situation()), encoding="utf-8")


if __name__ == "__main__":
    main()
