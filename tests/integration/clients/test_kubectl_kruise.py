"""The verbs of kubectl-kruise, and those of kubectl, on sets of all kinds in both versions."""

import json
import re

import pytest

from tests.support.cron import broadcasts, cronjob, jobs
from tests.support.kubectl_kruise import CAUSE, RESTARTED, KubectlKruise
from tests.support.rest import Refused, Rest
from tests.support.workspace import Workspace, cloneset, identity, is_ready, restarts, terminating
from tests.testkit.documents import Json

OLD, NEW = "nginx:alpine", "nginx:mainline"
NODES = 3
CASES = [
    pytest.param(kind, version, id=f"{kind} {version}")
    for kind, version in (
        ("CloneSet", "v1alpha1"),
        ("CloneSet", "v1beta1"),
        ("StatefulSet", "v1alpha1"),
        ("DaemonSet", "v1beta1"),
    )
]
"""CloneSets differ between the versions; of others it is the same verb on the same fields."""
ONE_STEP: Json = {"maxUnavailable": "100%"}


def manifest(kind: str, version: str) -> Json:
    """Return a set of two containers whose pods are updated in place, all at once."""
    policy = {"rollingUpdateType" if kind == "DaemonSet" else "podUpdatePolicy": "InPlaceIfPossible"}
    old_clone = kind == "CloneSet" and version == "v1alpha1"
    strategy = {"type": "InPlaceIfPossible"} | ONE_STEP if old_clone else {"rollingUpdate": policy | ONE_STEP}
    containers = [{"name": name, "image": OLD, "env": [{"name": "A", "value": "a"}]} for name in ("main", "side")]
    pod: Json = {"terminationGracePeriodSeconds": 1, "containers": containers}
    if kind == "StatefulSet":
        pod["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}]
    numbered = {"serviceName": "web", "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": kind,
        "metadata": {"name": "web", "annotations": {CAUSE: "first"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
            "updateStrategy": strategy,
            **({} if kind == "DaemonSet" else {"replicas": NODES}),
            **numbered,
        },
    }


def images(pod: Json) -> list[str]:
    return [one["image"] for one in pod["spec"]["containers"]]


def rolled_out(space: Workspace, tool: KubectlKruise, kind: str, *wanted: str, since: Json | None = None) -> list[str]:
    """Return the output of `rollout status`; at its end all pods are ready and have the wanted images."""
    lines = tool.follow(kind, "web", since)
    pods = space.read("pods")["items"]
    staying = [pod for pod in pods if not terminating(pod)]
    assert len(staying) == NODES, lines
    assert all(is_ready(pod) for pod in staying), lines
    assert all(images(pod) == list(wanted) for pod in staying), (lines, list(map(images, staying)))
    return lines


@pytest.mark.parametrize(("kind", "version"), CASES)
def test_a_rollout_from_change_to_undo(space: Workspace, rest: Rest, kind: str, version: str):
    tool = KubectlKruise(rest, space.name, version)
    space.kubectl("apply", "-f", "-", stdin=json.dumps(manifest(kind, version)))
    rolled_out(space, tool, kind, OLD, OLD)
    space.catch_up()
    before = {identity(pod) for pod in space.pods.values()}

    changed = tool.set_image(kind, "web", cause="a new image", main=NEW)
    lines = rolled_out(space, tool, kind, NEW, OLD, since=changed)
    assert len(lines) > 1, "the tool saw the rollout"
    seen = [int(count) for line in lines for count in re.findall(r"(\d) out of", line)]
    assert seen == sorted(seen), lines
    assert tool.status(kind, "web") == (lines[-1], True)
    space.catch_up()
    assert {identity(pod) for pod in space.pods.values()} == before
    counts = [[one["restartCount"] for one in pod["status"]["containerStatuses"]] for pod in space.pods.values()]
    assert counts == [[1, 0]] * NODES, "the other container goes on"

    tool.pause(kind, "web")
    tool.set_env(kind, "web", cause="a variable", A="b")
    tool.set_resources(kind, "web", "side", cpu="100m")
    with pytest.raises(Refused) as refusal:
        tool.set_selector(kind, "web", app="other")
    assert refusal.value.status == 422
    generation = tool.read(kind, "web")["metadata"]["generation"]
    space.until(lambda: tool.read(kind, "web")["status"]["observedGeneration"] == generation)
    line, done = tool.status(kind, "web")
    assert not done
    assert f"0 out of {NODES} new pods have been updated" in line
    assert {identity(pod) for pod in space.pods.values()} == before
    tool.resume(kind, "web")
    rolled_out(space, tool, kind, NEW, OLD)
    space.catch_up()
    staying = [pod for pod in space.pods.values() if not terminating(pod)]
    assert all(restarts(pod) == 0 for pod in staying), "new pods"
    side = next(one for one in staying[0]["spec"]["containers"] if one["name"] == "side")
    assert side["env"] == [{"name": "A", "value": "b"}]
    assert side["resources"]["limits"] == {"cpu": "100m"}

    history = tool.history(kind, "web")
    assert [number for number, _ in history] == list(range(1, len(history) + 1))
    assert [cause for _, cause in history][:3] == ["first", "a new image", "a variable"]
    assert [one["image"] for one in tool.template_of(kind, "web", 1)["spec"]["containers"]] == [OLD, OLD]

    first = tool.template_of(kind, "web", 1)
    tool.undo(kind, "web", to_revision=1)
    rolled_out(space, tool, kind, OLD, OLD)
    after = tool.history(kind, "web")
    assert after == [*history[1:], (len(history) + 1, "first")], "the old revision is the newest one, and none is new"
    template = tool.read(kind, "web")["spec"]["template"]
    assert "$patch" not in template
    assert template["spec"]["containers"] == first["spec"]["containers"]

    tool.undo(kind, "web")
    rolled_out(space, tool, kind, NEW, OLD)
    assert len(tool.history(kind, "web")) == len(history)

    tool.set_service_account(kind, "web", "default")
    tool.restart(kind, "web")
    rolled_out(space, tool, kind, NEW, OLD)


def test_scale_scaledown_restart_and_expose(space: Workspace, rest: Rest):
    version = "v1alpha1"
    tool = KubectlKruise(rest, space.name, version)
    space.apply(cloneset(4, version=version))
    space.settled(readyReplicas=4)
    first, second, *kept = sorted(space.pods)
    tool.scaledown("sample", first, second)
    space.until(lambda: set(space.pods) == set(kept))
    space.until(lambda: not tool.read("CloneSet", "sample")["spec"]["scaleStrategy"].get("podsToDelete"))
    assert tool.read("CloneSet", "sample")["spec"]["replicas"] == 2
    space.kubectl("apply", "-f", "-", stdin=json.dumps(manifest("StatefulSet", version)))
    for kind, name in (("CloneSet", "sample"), ("StatefulSet", "web")):
        tool.scale(kind, name, 1)
        assert tool.follow(kind, name)[-1].startswith("partitioned roll out complete: ")
    space.until(lambda: len(space.pods) == 2)
    tool.restart("CloneSet", "sample")

    def restarted() -> bool:
        pods = [pod for name, pod in space.pods.items() if name.startswith("sample")]
        return len(pods) == 1 and RESTARTED in pods[0]["metadata"].get("annotations", {}) and is_ready(pods[0])

    space.until(restarted)
    tool.expose("CloneSet", "sample", 80)
    address = [pod["status"]["podIP"] for pod in space.read("pods", "-l", "app=sample")["items"]]

    def served() -> bool:
        slices = space.read("endpointslices", "-l", "kubernetes.io/service-name=sample")["items"]
        return [one["addresses"] for part in slices for one in part["endpoints"] or ()] == [address]

    space.until(served)


def test_what_is_created_by_hand(space: Workspace, rest: Rest):
    """Runs of a schedule that a user starts are the user's own: the schedule neither counts nor removes them."""
    version = "v1alpha1"
    tool = KubectlKruise(rest, space.name, version)
    limits = {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}
    for name, template in (("sweep", broadcasts(ends=True)), ("single", jobs(ends=True))):
        schedule = cronjob(template, "@yearly", name=name, version=version, **limits)
        space.kubectl("apply", "-f", "-", stdin=json.dumps(schedule))
    tool.create_broadcast_job("now", "sweep")
    tool.create_job("once", "single")
    space.kubectl("wait", "bcj/now", "--for=jsonpath={.status.phase}=completed", "--timeout=30s")
    space.kubectl("wait", "job/once", "--for=condition=Complete", "--timeout=30s")
    for name in ("sweep", "single"):
        assert not space.read("acj", name).get("status", {}).get("active")
    space.apply(cloneset(1))
    space.settled(readyReplicas=1)
    (pod,) = (one for one in space.pods if one.startswith("sample"))
    made = tool.create_recreate_request("restart", pod, "nginx")
    assert made["metadata"]["labels"]["crr.apps.kruise.io/pod-uid"] == space.pod(pod)["metadata"]["uid"]
    assert made["spec"]["strategy"]["unreadyGracePeriodSeconds"] == 3
    with pytest.raises(Refused):
        tool.create_recreate_request("other", "nobody", "nginx")


def test_migration_from_a_deployment(space: Workspace, rest: Rest):
    """The pods of both have the same labels: neither takes the other's."""
    tool = KubectlKruise(rest, space.name, "v1alpha1")
    spec = cloneset(2)["spec"]
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "old"}}
    deployment["spec"] = {field: spec[field] for field in ("replicas", "selector", "template")}
    space.kubectl("apply", "-f", "-", stdin=json.dumps(deployment))
    space.kubectl("rollout", "status", "deployment/old", "--timeout=30s")
    tool.migrate_create("old", "sample")

    def ready(replicas: int) -> None:
        space.until(lambda: tool.read("CloneSet", "sample").get("status", {}).get("readyReplicas") == replicas)

    mark = space.now()
    tool.migrate("old", "sample", ready)
    space.until(lambda: len(space.pods) == 2 and all(name.startswith("sample") for name in space.pods))
    assert all(sum(map(is_ready, pods.values())) >= 2 for pods in space.moments(mark))


REFUSED = [
    (("rollout", "status"), 'no kind "CloneSet" is registered'),
    (("rollout", "history"), 'no kind "CloneSet" is registered'),
    (("expose", "--port=80"), 'no kind "CloneSet" is registered'),
    (("set", "image", "nginx=nginx:1"), 'no kind "CloneSet" is registered'),
    (
        ("patch", "-p", '{"spec":{"replicas":3}}'),
        "accepted media types include: application/json-patch+json, application/merge-patch+json",
    ),
]
"""Operations that kubectl refuses for custom resources, and its words."""


def test_what_kubectl_does_with_sets_and_what_it_refuses(space: Workspace):
    """kubectl has rollouts for a fixed list of kinds; operations over paths work for all."""
    space.apply(cloneset(1))
    space.settled(readyReplicas=1)
    for (verb, *words), reason in REFUSED:
        inner = words[:1] if words[0] in ("status", "history", "image") else []
        assert reason in space.refused(verb, *inner, "clone/sample", *words[len(inner) :])
    space.kubectl("annotate", "clone/sample", f"{CAUSE}=because")
    space.kubectl("label", "clone/sample", "team=a")
    assert space.kubectl("get", "clone", "-l", "team=a", "-o", "name") == "cloneset.apps.kruise.io/sample\n"
    space.kubectl("patch", "clone/sample", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":2}]')
    space.kubectl("autoscale", "clone/sample", "--min=1", "--max=3", "--cpu=50%")
    target = space.read("hpa", "sample")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("CloneSet", "sample")
    space.settled(readyReplicas=2)
    described = space.kubectl("describe", "clone/sample")
    assert "Label Selector" in described
    assert "SuccessfulCreate" in described


@pytest.mark.parametrize(("kind", "version"), CASES)
def test_a_partition_ends_the_rollout_early(space: Workspace, rest: Rest, kind: str, version: str):
    """`rollout status` ends once the partition is reached, and after it is gone with all pods."""
    tool = KubectlKruise(rest, space.name, version)
    document = manifest(kind, version)
    strategy = document["spec"]["updateStrategy"]
    rolling = strategy.get("rollingUpdate", strategy)
    rolling["partition"] = NODES - 1
    space.kubectl("apply", "-f", "-", stdin=json.dumps(document))
    rolled_out(space, tool, kind, OLD, OLD)
    space.catch_up()
    before = {identity(pod) for pod in space.pods.values()}
    changed = tool.set_image(kind, "web", main=NEW)
    tool.follow(kind, "web", changed)
    assert sorted(map(images, space.read("pods")["items"])) == sorted([[NEW, OLD], *[[OLD, OLD]] * (NODES - 1)])
    rolling["partition"] = 0
    patch = {"spec": {"updateStrategy": strategy}}
    line = ("patch", f"{kind.lower()}s.{version}.apps.kruise.io", "web", "--type=merge", "-p", json.dumps(patch))
    changed = json.loads(space.kubectl(*line, "-o", "json"))
    rolled_out(space, tool, kind, NEW, OLD, since=changed)
    space.catch_up()
    assert {identity(pod) for pod in space.pods.values()} == before
