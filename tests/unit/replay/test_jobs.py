"""`flotilla bundle` and `flotilla replay` of image pulls and container restarts.

A recording suffices to plan the same again.
"""

from typing import Any

import msgspec
import pytest

from flotilla_cli.bundle.records import Bundle
from flotilla_cli.replay.replayer import Replay, ReplayStep
from flotilla_common.api.documents import merge
from flotilla_common.api.resources import NODE, POD
from flotilla_common.bus import subjects
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import Plan
from flotilla_common.control.replay_controller import Planning
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.settings import Settings
from flotilla_insight.services import controllers
from flotilla_jobs.containerrecreate.controller import CONTROLLER as REQUESTS
from flotilla_jobs.imagelistpull.controller import CONTROLLER as LISTS
from flotilla_jobs.imagepull.controller import CONTROLLER as JOBS
from flotilla_jobs.nodeimage.controller import CONTROLLER as IMAGES
from tests.testkit.documents import Json, decoded
from tests.unit.imagepull import build
from tests.unit.recreate.world import pod_document, request_document
from tests.unit.replay.recorder import Recording
from tests.unit.replay.scripted_bus import record


def document(obj: Any) -> Json:
    return msgspec.json.decode(msgspec.json.encode(obj))


def recording(spec: ControllerSpec[Any, Any], key: Key, **objects: list[Any]) -> Recording:
    """Return the recording of a service with these objects; the first one is recorded."""
    made = Recording(planning_of(spec), spec=spec, key=key)
    made.known += [made.kube(kind, document(one)) for kind, several in objects.items() for one in several]
    made.see(*made.known)
    return made


def planning_of(spec: ControllerSpec[Any, Any]) -> Planning:
    """Return the settings in the heartbeat of the service."""
    options = None if spec.options is None else spec.options.of(Settings(), "v1.36.0")
    return Planning(options=msgspec.to_builtins(options) or {})


def change(made: Recording, kind: str, name: str, patch: Json) -> None:
    """Change an object from outside; the service receives it."""
    made.heard.append(made.kube(kind, merge(made.bodies[kind, name], patch)))
    made.see(made.heard[-1])


def run_pass(made: Recording) -> Plan:
    """Return the service plans and writes, and the bus brings what it wrote."""
    subject, plan = made.plan()
    made.heard += made.say(subject, plan)
    return plan


def settle(made: Recording) -> None:
    """Plan until there is nothing more to write."""
    for _ in range(10):
        plan = run_pass(made)
        if not plan.actions and plan.status is None:
            return
    raise AssertionError("never settles")


async def recorded(made: Recording) -> Bundle:
    """Return the recording that `flotilla bundle` makes while it happens."""
    assert made.planning is not None
    live = {0.01 * (index + 1): message.message() for index, message in enumerate(made.heard)}
    held = [message.message() for message in made.known]
    return await record(held, live, spec=made.spec, key=made.key, planning=made.planning)


async def steps(made: Recording) -> list[ReplayStep]:
    """Return the passes planned again from the recording, which contains all messages."""
    bundle = await recorded(made)
    assert bundle.header.planning == made.planning
    assert [message.subject for message in bundle.heard] == [message.subject for message in made.heard]
    return list(Replay(bundle, made.spec).steps())


def written(step: ReplayStep) -> list[str]:
    return [f"{write.action} {write.kind} {write.name} {write.subresource}".rstrip() for write in step.writes]


LIST = {"kind": "ImageListPullJob", "name": "L", "uid": "uid-L", "apiVersion": "apps.kruise.io/v1beta1"}
DONE: Json = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z", "desired": 1}


async def test_a_list_of_images():
    made = recording(LISTS, ("shop", "L"), ImageListPullJob=[build.list_job("nginx:1", "redis:7")])
    plan = run_pass(made)
    for create in [one for one in plan.actions if one.resource.kind == "ImagePullJob"]:
        change(made, "ImagePullJob", create.name, {"status": DONE | {"succeeded": 1}})
    settle(made)
    told = await steps(made)
    assert {step.differences for step in told} == {()}
    assert sum(line.startswith("create ImagePullJob L-") for line in written(told[0])) == 2
    assert told[1].plan.numbers == {"desired": 2, "active": 0, "completed": 2}


async def test_a_job_of_two_nodes():
    nodes = [build.node_image("n1"), build.node_image("n2")]
    stranger = build.job("other", meta={"namespace": "shop"})
    made = recording(JOBS, ("shop", "J"), ImagePullJob=[build.job(parallelism=1), stranger], NodeImage=nodes)
    run_pass(made)
    assert [one.name for one in made.plan()[1].actions] == []
    change(made, "NodeImage", "n1", {"status": {"imageStatuses": {"nginx": {"tags": [build.entry("Succeeded")]}}}})
    settle(made)
    told = await steps(made)
    assert {step.differences for step in told} == {()}
    assert [written(step) for step in told[:2]] == [
        ["patch NodeImage n1", "patch ImagePullJob J status"],
        ["patch NodeImage n2", "patch ImagePullJob J status"],
    ]


async def test_a_job_that_chooses_nodes_by_pods_is_recorded_with_the_pods_of_its_namespace():
    job, images = build.job(podSelector={"matchLabels": {"app": "web"}}), build.fresh("n1", "n2")
    pods = [build.pod("a", "n2"), build.pod("b", "n1", labels={"app": "db"})]
    made = recording(JOBS, ("shop", "J"), ImagePullJob=[job], NodeImage=images, Pod=pods)
    settle(made)
    told = await steps(made)
    assert {step.differences for step in told} == {()}
    assert written(told[0])[:1] == ["patch NodeImage n2"]


async def test_a_job_of_a_list_stays_while_the_list_runs():
    over = build.job(
        meta={"ownerReferences": [LIST | {"controller": True}]},
        status=DONE | {"message": "job has completed"},
        completionPolicy={"type": "Always", "ttlSecondsAfterFinished": 0},
    )
    made = recording(JOBS, ("shop", "J"), ImagePullJob=[over], ImageListPullJob=[build.list_job("nginx:1.25")])
    run_pass(made)
    change(made, "ImageListPullJob", "L", {"status": {"completionTime": "2026-01-01T00:00:00Z"}})
    run_pass(made)
    told = await steps(made)
    assert [step.differences for step in told] == [(), ()]
    assert ["delete ImagePullJob J" in written(step) for step in told] == [False, True]


def node_image_recording() -> Recording:
    """Return a node that pulls one image for a job, and another node."""
    held = build.node_image("n1", [build.tag("J")])
    nodes = [build.node("n1"), build.node("n2")]
    job = build.job(meta={"namespace": "shop"})
    made = recording(IMAGES, ("", "n1"), NodeImage=[held], Node=nodes, ImagePullJob=[job])
    made.bodies["NodeImage", "n1"]["spec"]["images"]["nginx"]["tags"][0]["ownerReferences"][0]["namespace"] = "shop"
    made.known[0] = made.kube("NodeImage", made.bodies["NodeImage", "n1"])
    made.see(made.known[0])
    return made


def said(phase: str, **members: Any) -> Json:
    """Return the report of the agent of n1 about its NodeImage."""
    entry = build.entry(phase) | members
    return {"uid": "uid-n1", "status": {"imageStatuses": {"nginx": {"tags": [entry]}}}}


async def test_a_node_image_whose_agent_reports():
    made = node_image_recording()
    for phase in ("Pulling", "Succeeded"):
        made.heard.append(made.report("n1", said(phase)))
        run_pass(made)
    told = await steps(made)
    assert [step.differences for step in told] == [(), (), ()]
    assert [written(step) for step in told] == [["patch NodeImage n1 status"], ["patch NodeImage n1 status"], []]


async def test_a_report_that_is_written_does_not_count_for_what_comes_later():
    made = node_image_recording()
    made.heard.append(made.report("n1", said("Succeeded")))
    settle(made)
    tags = made.bodies["NodeImage", "n1"]["spec"]["images"]["nginx"]["tags"]
    more = tags[0] | {"tag": "2", "createdAt": "2026-01-01T00:00:00Z"}
    change(made, "NodeImage", "n1", {"spec": {"images": {"nginx": {"tags": [*tags, more]}}}})
    plan = run_pass(made)
    assert (plan.numbers["desired"], plan.status) == (1, None)  # no report of the agent about it yet
    assert {step.differences for step in await steps(made)} == {()}


async def test_nodes_and_jobs_of_others_are_not_recorded():
    bundle = await recorded(node_image_recording())
    assert sorted(message.subject.partition("kube.v1.")[2] for message in bundle.known) == [
        "apps_kruise_io.imagepulljobs.shop.J",
        "apps_kruise_io.nodeimages._.n1",
        f"{NODE.id}._.n1",
    ]


async def test_without_the_report_the_service_did_what_does_not_follow():
    made = node_image_recording()
    report = made.report("n1", said("Pulling"))
    run_pass(made)
    assert report not in made.heard
    told = await steps(made)
    assert any(line.startswith("the service did patch NodeImage n1 status") for line in told[0].differences)


async def test_a_node_that_speaks_for_another_is_not_listened_to_then_either():
    made = node_image_recording()
    made.heard.append(
        msgspec.structs.replace(made.report("n1", said("Pulling")), subject="report.v1.n2.nodeimages._.n1")
    )
    run_pass(made)
    told = await steps(made)
    assert any(line.startswith("the service did patch NodeImage n1 status") for line in told[0].differences)


async def test_reports_that_cannot_be_read_are_passed_over():
    made = node_image_recording()
    made.heard.append(msgspec.structs.replace(made.report("n1", {}), body={"status": "many"}))
    made.heard.append(made.report("n1", said("Pulling")))
    run_pass(made)
    assert [step.differences for step in await steps(made)] == [(), ()]


async def test_a_report_that_came_before_the_recording_had_begun_counts():
    made = node_image_recording()
    made.known.append(made.report("n1", said("Pulling")))
    run_pass(made)
    assert [step.differences for step in Replay(made.bundle(), IMAGES).steps()] == [(), ()]


async def test_a_job_that_the_recording_lacks_does_not_exist():
    made = recording(IMAGES, ("", "n1"), NodeImage=[build.node_image("n1", [build.tag("J")])], Node=[build.node("n1")])
    settle(made)
    told = await steps(made)
    assert {step.differences for step in told} == {()}
    assert written(told[0]) == ["patch NodeImage n1"]


def request_recording() -> Recording:
    """Return a recording of a request for one container of a pod, with an unrelated pod."""
    stranger = pod_document(uid="p9")
    stranger["metadata"]["name"] = "q"
    return recording(
        REQUESTS, ("ns", "r"), ContainerRecreateRequest=[request_document("app")], Pod=[pod_document(), stranger]
    )


async def test_a_request_whose_containers_are_restarted():
    made = request_recording()
    run_pass(made)
    for phase, state in (("Recreating", "Recreating"), ("Completed", "Succeeded")):
        body = {"uid": "uid-r", "phase": phase, "states": [{"name": "app", "phase": state, "isKilled": True}]}
        made.heard.append(made.report("n", body))
        settle(made)
    told = await steps(made)
    assert {step.differences for step in told} == {()}
    assert any("patch ContainerRecreateRequest r status" in written(step) for step in told)
    assert made.bodies["ContainerRecreateRequest", "r"]["status"]["phase"] == "Completed"


async def test_of_the_pods_that_of_the_request_is_recorded():
    bundle = await recorded(request_recording())
    pods = [message.subject for message in bundle.known if POD.id in message.subject]
    assert [subjects.object_key(subject) for subject in pods] == [("ns", "p")]


async def test_a_request_whose_pod_is_gone():
    made = request_recording()
    gone = made.kube("Pod", pod_document(), "DELETED")
    made.heard.append(gone)
    made.see(gone)
    settle(made)
    told = await steps(made)
    assert {step.differences for step in told} == {()}
    assert "pod has gone" in " ".join(write.cause for write in told[0].writes)


@pytest.mark.parametrize("spec", controllers().values(), ids=lambda spec: spec.name)
def test_settings_that_decide_survive_a_recording(spec: ControllerSpec[Any, Any]):
    if spec.options is None:
        assert planning_of(spec) == Planning()
        return
    options = spec.options.of(Settings(), "v1.36.0")
    sent = decoded(planning_of(spec), Planning)
    assert msgspec.convert(sent.options, spec.options.type) == options
