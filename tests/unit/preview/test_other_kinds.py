"""Plans of kinds that write to others: nodes, copies, jobs of lists, sidecars of pods."""

from copy import deepcopy
from datetime import timedelta
from typing import Any

from flotilla_common.api.documents import Json
from flotilla_insight.preview.report import Report
from flotilla_insight.preview.steps import Step
from tests.unit.cloneset.build import LONG_AGO, NOW
from tests.unit.preview.live import story_of


def named(name: str, namespace: str = "", **members: Any) -> Json:
    place = {"namespace": namespace} if namespace else {}
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "5", "creationTimestamp": LONG_AGO.isoformat()}
    return {"metadata": meta | place, **members}


def steps(story: Report, kind: str) -> list[list[Step]]:
    waves = [[step for step in wave.steps if step.kind == kind] for wave in story.waves]
    return [wave for wave in waves if wave]


def codes(story: Report) -> list[str]:
    return [reason.code for reason in story.reasons]


def images(*answering: bool) -> list[Json]:
    spoken: Json = {"status": {"desired": 0}}
    return [named(f"n{number}", spec={}, **(spoken if heard else {})) for number, heard in enumerate(answering)]


def job(parallelism: int, **spec: Any) -> Json:
    policy = {"completionPolicy": {"type": "Always"}}
    return named("pull", "shop", spec={"image": "nginx:1", "parallelism": parallelism, **policy, **spec})


async def test_nodes_pull_as_many_at_a_time_as_the_job_says():
    story = await story_of("ImagePullJob", job(1), job(2), {"NodeImage": images(*[True] * 5)})
    asked = [[step.name for step in wave] for wave in steps(story, "NodeImage")]
    assert asked == [["n0", "n1"], ["n2", "n3"], ["n4"]]
    assert steps(story, "NodeImage")[0][0].cause == "pull nginx:1"
    assert [wave.answered for wave in story.waves if wave.answered][:2] == [("n0", "n1"), ("n2", "n3")]
    assert {wave.seconds for wave in story.waves} == {0}
    assert codes(story)[0].startswith("Complete")


async def test_a_node_without_an_agent_keeps_a_job_waiting():
    story = await story_of("ImagePullJob", job(1), job(2), {"NodeImage": images(False, True, True)})
    assert [[step.name for step in wave] for wave in steps(story, "NodeImage")] == [["n0", "n1"], ["n2"]]
    assert codes(story)[0] == "WaitingForNodeAgent"


async def test_pull_secrets_are_not_looked_at():
    story = await story_of("ImagePullJob", job(1), job(1, pullSecrets=["mine"]), {"NodeImage": images(True)})
    assert story.notes == ("pull secrets are not read: nodes get the images once the service has copied them",)


async def test_the_jobs_of_a_list_and_their_nodes():
    def pulls(*wanted: str) -> Json:
        policy = {"completionPolicy": {"type": "Always"}}
        return named("pulls", "shop", spec={"images": list(wanted), "parallelism": 5, **policy})

    story = await story_of("ImageListPullJob", pulls("a:1"), pulls("a:1", "b:1"), {"NodeImage": images(True)})
    assert [step.do for wave in steps(story, "ImagePullJob") for step in wave][:2] == ["create", "create"]
    assert {step.cause for wave in steps(story, "NodeImage") for step in wave} == {"pull a:1", "pull b:1"}


async def test_copies_are_made_changed_and_left_where_they_are_right():
    def distribution(value: str, *namespaces: str) -> Json:
        content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a": value}}
        listed = {"includedNamespaces": {"list": [{"name": name} for name in namespaces]}}
        return named("conf", spec={"resource": content, "targets": listed})

    objects = {"Namespace": [named(name) for name in ("one", "two")]}
    story = await story_of("ResourceDistribution", distribution("x", "one"), distribution("x", "one", "two"), objects)
    made = [(step.do, step.namespace, step.elsewhere) for wave in steps(story, "ConfigMap") for step in wave]
    assert made == [("create", "one", True), ("create", "two", True)]
    story = await story_of("ResourceDistribution", distribution("x", "one"), distribution("secret", "one"), objects)
    assert [(change.path, change.hidden) for change in story.changes] == [("spec.resource.data.a", True)]


async def test_containers_are_restarted_by_the_node_and_the_request_ends():
    status = {"name": "main", "image": "docker.io/library/a:1", "containerID": "c-1", "ready": True, "restartCount": 0}
    running = {"state": {"running": {"startedAt": LONG_AGO.isoformat()}}}
    pod = named(
        "web",
        "shop",
        spec={"nodeName": "n0", "containers": [{"name": "main", "image": "a:1"}]},
        status={
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [status | running],
        },
    )
    context = {"containerID": "c-1", "restartCount": 0}
    spec = {"podName": "web", "containers": [{"name": "main", "statusContext": context}]}
    request = named("again", "shop", spec=spec)
    request["metadata"] |= {
        "labels": {"crr.apps.kruise.io/pod-uid": "uid-web"},
        "creationTimestamp": (NOW + timedelta(hours=1)).isoformat(),
    }
    changed = deepcopy(request)
    changed["spec"]["ttlSecondsAfterFinished"] = 60
    story = await story_of("ContainerRecreateRequest", request, changed, {"Pod": [pod], "NodeImage": images(True)})
    ((restart,),) = (wave for wave in steps(story, "Pod") if wave[0].do == "restart")
    assert (restart.name, restart.node, [one.what for one in restart.changes]) == ("web", "n0", ["main"])
    assert [(step.do, step.kind) for step in story.waves[-1].steps] == [("delete", "ContainerRecreateRequest")]
    assert story.waves[-1].seconds == 60
