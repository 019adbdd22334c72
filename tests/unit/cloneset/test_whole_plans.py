"""Whole plans, down to every cause, phase, precondition and event: one small situation for each kind of write.

They contain what is on the wire and on the bus. `python -m tests.unit.cloneset.test_whole_plans` writes them again
after an intended change; the diff is for reading.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_cloneset.cloneset.snapshot import Options
from flotilla_common.api.core import PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.control.plan import Plan
from tests.testkit.documents import decoded
from tests.unit.cloneset.build import LONG_AGO, NOW, claim, cloneset, planned, pod, pods, revision, revisions, template

GOLDEN = Path(__file__).parent / "golden"
FRIEND = {"apiVersion": "v1", "kind": "ConfigMap", "name": "friend", "uid": "uid-friend"}
ZONES = [{"topologyKey": "zone", "maxSkew": 1}, {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1}]


def changed(obj: Any, **metadata: Any) -> Any:
    """Return the same object with other metadata."""
    document = msgspec.json.decode(msgspec.json.encode(obj))
    document["metadata"] = {**document["metadata"], **metadata}
    return decoded(document, type(obj))


def befriended(made: Pod | PersistentVolumeClaim, **metadata: Any) -> Any:
    """Return the object with a second, foreign owner."""
    owners = msgspec.to_builtins(made)["metadata"]["ownerReferences"]
    return changed(made, ownerReferences=[FRIEND, *owners], **metadata)


def resources(cpu: str) -> dict[str, Any]:
    content = template()
    content["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    return content


def claimed_template() -> dict[str, Any]:
    content = template(volumes=[{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}])
    content["metadata"] |= {"annotations": {"a": "b"}, "finalizers": ["example.com/hold"]}
    return content


def scale_out_with_claims() -> Plan:
    builder = cloneset().replicas(2).claims("data", "log").template(claimed_template())
    builder.spec["volumeClaimTemplates"][0]["metadata"] |= {"labels": {"tier": "db"}, "ownerReferences": [FRIEND]}
    return planned(builder, [pod("n1")], revisions=revisions(new=claimed_template()))


def scale_in_with_claims() -> Plan:
    return planned(cloneset().replicas(1).claims("data"), "2n", claims=[claim("n1"), claim("n2"), claim("other")])


def scale_in_held() -> Plan:
    return planned(cloneset().replicas(1).hook("preDelete", not_ready=True), held("2n"))


def held(notation: str) -> list[Pod]:
    return [changed(one, labels={**one.metadata.labels, "hold": "preDelete"}) for one in pods(notation)]


def specified() -> Plan:
    return planned(cloneset().replicas(3).scale(podsToDelete=["sample-n2"]).min_ready(30), "3n")


def hand_over() -> Plan:
    leaving = pod("n2", deleting=True)
    claims = [claim("n1"), befriended(claim("n2")), claim("gone"), claim("old", deleting=True)]
    return planned(cloneset().replicas(1).claims("data"), [pod("n1"), leaving], claims=claims)


def release_and_adopt() -> Plan:
    stranger = befriended(pod("n1"), labels={"app": "else"})
    loose = pod("n2")
    references = [{**one, "controller": False} for one in msgspec.to_builtins(loose)["metadata"]["ownerReferences"]]
    return planned(cloneset().replicas(1), [stranger, changed(loose, ownerReferences=[FRIEND, *references])])


def released_for_good() -> Plan:
    return planned(cloneset().replicas(1), [changed(pod("n1"), labels={"app": "else"}), pod("n2")])


def in_place() -> Plan:
    return planned(cloneset().in_place(), "3o")


def in_place_with_grace() -> Plan:
    return planned(cloneset().in_place(grace=10).max_unavailable(2), "2o 1n")


def in_place_held() -> Plan:
    ours = [changed(one, labels={**one.metadata.labels, "hold": "inPlaceUpdate"}) for one in pods("2o")]
    return planned(cloneset().replicas(2).in_place().hook("inPlaceUpdate", not_ready=True), ours)


def in_place_resize() -> Plan:
    stored = revisions(old=resources("1"), new=resources("2"))
    builder = cloneset().replicas(1).in_place().template(resources("2"))
    options = Options(server_version="v1.33.0")
    return planned(builder, "1o", gates="InPlaceWorkloadVerticalScaling=true", revisions=stored, options=options)


def in_place_impossible() -> Plan:
    stored = revisions(new=template(hostNetwork=True))
    builder = cloneset().in_place(only=True).template(template(hostNetwork=True))
    return planned(builder, "3o", revisions=stored)


def preparing_counts_as_updated() -> Plan:
    builder = cloneset().replicas(2).partition(1).in_place()
    return planned(builder, "2o 1o:PreparingUpdate 1n", gates="PreparingUpdateAsUpdate=true")


def a_strays_revision_of_the_same_name_part() -> Plan:
    stray = changed(revision("old", template("nginx:1", hostNetwork=True), 9), name="stray-old", ownerReferences=[])
    return planned(cloneset().replicas(1).in_place(), "1o", revisions=(*revisions(), stray))


def in_grace_of_another_update() -> Plan:
    grace = {"apps.kruise.io/inplace-update-grace": '{"revision":"sample-new"}'}
    ours = [pod("o1", "o", state="Updating", annotations=grace), pod("o2", "o", annotations={"a": "b"})]
    return planned(cloneset().replicas(2).in_place().max_unavailable(2), ours)


def in_an_unknown_state() -> Plan:
    return planned(cloneset().replicas(2).in_place(), [pod("o1", "o", state="Elsewhere"), pod("n1")])


def deletion_first() -> Plan:
    builder = cloneset().replicas(2).max_unavailable(0).hook("preDelete")
    return planned(builder, held("2n 2n*^"))


def going_both_ways() -> Plan:
    return planned(cloneset().replicas(4).max_surge(2).partition(1), "2o 1o!^ 1n^ 1n* 1o*!")


def recreate() -> Plan:
    return planned(cloneset().max_unavailable(2), "3o")


def recreate_with_surge() -> Plan:
    return planned(cloneset().max_surge(1).max_unavailable(0), "3o")


def scattered_and_spread() -> Plan:
    builder = cloneset().replicas(2).template(template(topologySpreadConstraints=ZONES))
    ours = [pod(f"n{number}", node=f"node-{number % 3}") for number in range(5)]
    zones = {"node-0": "a", "node-1": "a", "node-2": "b"}
    labels = {node: {"zone": zone, "kubernetes.io/hostname": node} for node, zone in zones.items()}
    return planned(
        builder, ours, revisions=revisions(new=template(topologySpreadConstraints=ZONES)), node_labels=labels
    )


def rollback() -> Plan:
    return planned(cloneset().template(template("nginx:1")).partition("50%"), "1o 2n")


def first_revision() -> Plan:
    return planned(cloneset().replicas(1).deadline(600), "", revisions=())


def history() -> Plan:
    builder = cloneset().replicas(1)
    builder.spec["revisionHistoryLimit"] = 0
    ancient = [revision(f"a{number}", template(f"nginx:0.{number}"), number - 9) for number in range(2)]
    return planned(builder, "1n", revisions=(*ancient, *revisions()))


def paused() -> Plan:
    return planned(cloneset().in_place().paused(), "2o 1n!")


def stuck() -> Plan:
    since = {"type": "Progressing", "status": "True", "reason": "CloneSetUpdated", "lastUpdateTime": LONG_AGO}
    return planned(cloneset().deadline(60).stored(conditions=[since | {"lastTransitionTime": LONG_AGO}]), "2n 1n!")


def failing() -> Plan:
    return planned(cloneset(), "1n", failures={"scale": "exceeded quota"}, pending_ids=("aaaaa",))


def taken_over_ids() -> Plan:
    builder = cloneset().replicas(2).claims("data").scale(enablePVCReuse=True)
    return planned(builder, [pod("n1")], claims=[claim("n1"), claim("spare")], taken_names={"sample-n1"})


def gated_and_deleting() -> Plan:
    builder = cloneset().replicas(1)
    builder.metadata["deletionTimestamp"] = NOW
    return planned(builder, "2n", gates="KruisePodReadinessGate=true")


def refused() -> Plan:
    return planned(cloneset().replicas(-1))


def rollback_by_partition() -> Plan:
    builder = cloneset().replicas(6).partition(5).max_unavailable(3).in_place()
    return planned(builder, "3n! 2n 1o!", gates="CloneSetPartitionRollback=true")


def scale_out_limited() -> Plan:
    builder = (
        cloneset().replicas(6).scale(maxUnavailable=2, excludePreparingDelete=True).hook("preDelete", not_ready=True)
    )
    return planned(builder, held("2n 1n! 1n^"), gates="CloneSetShortHash=true")


def surge_of_both_sides() -> Plan:
    return planned(cloneset().replicas(5).partition(3).max_unavailable(1).max_surge("20%"), "4o 1o* 1n*")


def names_that_are_gone() -> Plan:
    return planned(cloneset().replicas(2).scale(podsToDelete=["sample-n2", "sample-x"]).hook("preDelete"), "2n")


def becoming_available() -> Plan:
    fresh = [pod(f"n{age}", ready_since=NOW - timedelta(seconds=age)) for age in (5, 10, 40)]
    return planned(cloneset().min_ready(30).deadline(600), fresh)


def reuse_of_claims() -> Plan:
    builder = cloneset().replicas(4).claims("data", "log").scale(enablePVCReuse=True)
    claims = [claim("n1"), claim("n2"), claim("x"), claim("y"), claim("y", "log", deleting=True), claim("", "log")]
    return planned(builder, [pod("n1"), pod("n2", deleting=True)], claims=claims, taken_names={"sample-n2"})


def images_pulled_ahead() -> Plan:
    old, new = template("nginx:1"), template(imagePullSecrets=[{"name": "s"}, {"name": ""}])
    old["spec"]["containers"] += [{"name": "log", "image": "log:1"}, {"name": "same", "image": "same:1"}]
    new["spec"]["containers"] += [{"name": "log", "image": "log:2"}, {"name": "same", "image": "same:1"}]
    new["metadata"]["annotations"] = old["metadata"]["annotations"] = {"a": "b"}
    old["spec"]["imagePullSecrets"] = new["spec"]["imagePullSecrets"]
    builder = cloneset().replicas(5).in_place().template(new)
    builder.spec["selector"]["matchExpressions"] = [{"key": "app", "operator": "Exists"}]
    return planned(builder, "5o", revisions=revisions(old, new), pull_jobs=[])


def images_not_pulled_ahead() -> Plan:
    return planned(cloneset().in_place(), "3o", pull_jobs=[])


def images_were_pulled() -> Plan:
    job = {"metadata": {"name": "old", "namespace": "default", "uid": "uid-old"}}
    return planned(
        cloneset().stored(currentRevision="sample-new"), "3n", pull_jobs=[msgspec.convert(job, ImagePullJob)]
    )


def refused_halfway() -> Plan:
    """Plan with a second pod whose revision cannot become the new one in place."""
    stored = (revision("other", template(hostNetwork=True), 1), *revisions())
    other = {"controller-revision-hash": "other", "pod-template-hash": "other"}
    ours = [pod("o1", "o"), pod("o2", "o", labels=other)]
    return planned(cloneset().replicas(2).max_unavailable(2).in_place(only=True), ours, revisions=stored)


def waiting_for_everybody() -> Plan:
    ours = [
        pod("a", state="PreparingNormal", ready=False, node=""),
        pod("b", state="PreparingNormal", ready=False),
        pod("c", state="Updated"),
        pod("d", state="Normal", labels={"pod-template-hash": ""}),
    ]
    return planned(cloneset().replicas(4).in_place().hook("preNormal").hook("inPlaceUpdate").paused(), ours)


def failed_before() -> Plan:
    failed = {"type": "FailedScale", "status": "False", "lastTransitionTime": LONG_AGO}
    return planned(cloneset().stored(conditions=[failed]), "3n", failures={"scale": "quota", "update": "denied"})


SITUATIONS: list[Callable[[], Plan]] = [
    scale_out_with_claims,
    scale_in_with_claims,
    scale_in_held,
    specified,
    hand_over,
    release_and_adopt,
    released_for_good,
    in_place,
    in_place_with_grace,
    in_place_held,
    in_place_resize,
    in_place_impossible,
    in_grace_of_another_update,
    in_an_unknown_state,
    deletion_first,
    going_both_ways,
    preparing_counts_as_updated,
    a_strays_revision_of_the_same_name_part,
    recreate,
    recreate_with_surge,
    scattered_and_spread,
    rollback,
    first_revision,
    history,
    paused,
    stuck,
    failing,
    taken_over_ids,
    gated_and_deleting,
    refused,
    rollback_by_partition,
    scale_out_limited,
    surge_of_both_sides,
    names_that_are_gone,
    becoming_available,
    reuse_of_claims,
    images_pulled_ahead,
    images_not_pulled_ahead,
    images_were_pulled,
    refused_halfway,
    waiting_for_everybody,
    failed_before,
]


def text(plan: Plan) -> str:
    """Return the plan as it is stored."""
    return msgspec.json.format(msgspec.json.encode(plan, order="sorted"), indent=2).decode() + "\n"


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
def test_whole_plan(situation: Callable[[], Plan]) -> None:
    golden = GOLDEN / f"{situation.__name__}.json"
    assert text(situation()) == golden.read_text(encoding="utf-8")


def main() -> None:
    """Write all plans again."""
    for situation in SITUATIONS:
        (GOLDEN / f"{situation.__name__}.json").write_text(text(situation()), encoding="utf-8")


if __name__ == "__main__":
    main()
