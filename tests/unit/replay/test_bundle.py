"""`flotilla bundle`: selection, redaction and order of its contents."""

from typing import Any

import msgspec
import pytest

from flotilla_cli.bundle.capture import NothingPublished
from flotilla_cloneset.cloneset.controller import CONTROLLER as CLONE_SETS
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CLAIM, NODE, POD, REVISION, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_insight.redact import Redactor
from flotilla_insight.services import controllers
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json
from tests.unit.replay.recorder import subject_of
from tests.unit.replay.scripted_bus import PLANNING, ScriptedBus, Timeline, capture, record

OWNERS = [
    {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u-web", "controller": True}
]


def kube(resource: Resource, name: str, operation: str = "ADDED", namespace: str = "shop", **members: Any) -> Message:
    meta = {"name": name, "namespace": namespace, "uid": f"u-{name}", **members.pop("metadata", {})}
    return Message(
        subject=subject_of(resource, "" if resource is NODE else namespace, {"metadata": meta, **members}),
        data=msgspec.json.encode({"metadata": meta, **members}),
        headers={subjects.OP: operation, subjects.RV: "5", subjects.UID: f"u-{name}", "Nats-Stream": "kube"},
    )


def moved(former: Message, to: Message) -> Message:
    """Return the message on the former subject of a pod."""
    return msgspec.structs.replace(
        former,
        data=msgspec.json.encode({"metadata": {"name": "web-a", "namespace": "shop", "uid": "u-web-a"}}),
        headers={**to.headers, subjects.OP: subjects.MOVED, subjects.TO: to.subject},
    )


def act(owner: str, name: str, resource: Resource = POD) -> Message:
    place = {"kind": resource.kind, "namespace": "shop", "name": name}
    about = {"kind": "CloneSet", "namespace": "shop", "name": owner}
    body = {"at": "2026-01-01T00:00:00Z", "owner": about, "trace": "t", **place}
    return Message(subject=subjects.act("cloneset", resource, "shop", name), data=msgspec.json.encode(body))


def why(name: str = "web") -> Message:
    return Message(subject=subjects.why(CLONE_SET, "shop", name), data=b'{"name":"web"}')


CLONE = kube(CLONE_SET, "web")
OWN_POD = kube(POD, "web-a", metadata={"ownerReferences": OWNERS}, spec={"nodeName": "n1"})


def names(messages: tuple[Any, ...]) -> list[str]:
    return [subjects.object_key(message.subject)[1] for message in messages]


async def test_what_the_bus_holds_and_then_what_comes():
    bundle = await record(
        [CLONE, OWN_POD, act("web", "web-a"), why()], {1: kube(CLONE_SET, "web", "MODIFIED"), 2: why()}
    )
    assert [message.subject.partition(".")[0] for message in bundle.known] == ["kube", "kube", "act", "why"]
    assert [message.subject.partition(".")[0] for message in bundle.heard] == ["kube", "why"]
    assert [(message.at - bundle.begin).total_seconds() for message in bundle.heard] == [1, 2]
    assert (bundle.end - bundle.begin).total_seconds() == 3
    assert bundle.header.planning == PLANNING
    assert [replica.version for replica in bundle.header.replicas] == ["1.0"]
    assert "Nats-Stream" not in bundle.known[0].headers


@pytest.mark.parametrize(
    ("message", "picked"),
    [
        pytest.param(OWN_POD, True, id="its pod"),
        pytest.param(kube(CLAIM, "data", metadata={"ownerReferences": OWNERS}), True, id="its claim"),
        pytest.param(kube(POD, "web-stray"), True, id="a pod that has such a name"),
        pytest.param(kube(POD, "other-a"), False, id="somebody else's pod"),
        pytest.param(kube(POD, "x", metadata={"ownerReferences": [{"uid": "u-other"}]}), False, id="another owner"),
        pytest.param(kube(POD, "web-b", operation=""), False, id="an expired tombstone"),
        pytest.param(act("web", "web-a"), True, id="a write on its behalf"),
        pytest.param(act("other", "web-a"), False, id="a write of another set"),
        pytest.param(act("other", "web", CLONE_SET), True, id="what another one wrote of it"),
        pytest.param(act("other", "web", REVISION), False, id="what another one wrote of its namesake"),
        pytest.param(Message(subject=subjects.kube(POD, "shop", "web-c"), data=b"{"), False, id="unreadable"),
    ],
)
async def test_what_is_picked(message: Message, picked: bool):
    bundle = await record([CLONE], {1: message})
    assert bool(bundle.heard) is picked


BARE_POD = kube(POD, "web-a", spec={"nodeName": "n1"})
READINESS = controllers()[POD]


@pytest.mark.parametrize(
    "held",
    [
        pytest.param([OWN_POD], id="on its first subject"),
        pytest.param([moved(BARE_POD, OWN_POD), OWN_POD], id="newer than its move"),
        pytest.param([OWN_POD, moved(BARE_POD, OWN_POD)], id="just moved"),
    ],
)
async def test_a_pod_is_found_on_its_present_subject(held: list[Message]):
    bundle = await record(held, spec=READINESS, key=("shop", "web-a"))
    assert [message.subject for message in bundle.known] == [OWN_POD.subject]


async def test_the_versions_of_a_pod_are_recorded_on_all_its_subjects():
    live = {1: OWN_POD, 2: moved(BARE_POD, OWN_POD), 3: kube(POD, "web-ab")}
    bundle = await record([BARE_POD], live, spec=READINESS, key=("shop", "web-a"))
    assert names(bundle.known) == ["web-a"]
    assert [message.headers[subjects.OP] for message in bundle.heard] == ["ADDED", "MOVED"]


async def test_pods_of_all_shards_are_recorded():
    marker = subjects.Marker(epoch="0.a", state=subjects.SYNCED).of_shards(2)
    first = Message(subject=subjects.kube_marker(POD), data=msgspec.json.encode(marker))
    other = msgspec.structs.replace(OWN_POD, subject=OWN_POD.subject.replace(".pods.", ".pods-1."))
    bundle = await record([first, other], {1: other}, spec=READINESS, key=("shop", "web-a"))
    assert [message.subject for message in (*bundle.known, *bundle.heard)] == [other.subject] * 2
    owned = await record([first, CLONE, other], {1: other})
    assert other.subject in [message.subject for message in owned.known]
    assert [message.subject for message in owned.heard] == [other.subject]


@pytest.mark.parametrize(
    "held",
    [
        pytest.param([kube(POD, "web-a", "DELETED")], id="deleted"),
        pytest.param([moved(BARE_POD, OWN_POD)], id="moved to a subject that holds nothing"),
    ],
)
async def test_a_pod_that_is_not_published(held: list[Message]):
    with pytest.raises(NothingPublished):
        await capture(ScriptedBus(held), FakeClock(), spec=READINESS, key=("shop", "web-a")).run(0)


async def test_a_deletion_is_told_by_the_uid():
    gone = {"metadata": {"name": "x", "namespace": "shop", "uid": "u-x"}}
    pod = kube(POD, "x", metadata={"ownerReferences": OWNERS})
    deleted = msgspec.structs.replace(kube(POD, "x", "DELETED"), data=msgspec.json.encode(gone))
    assert len((await record([CLONE, pod], {1: deleted})).heard) == 1
    assert not (await record([CLONE], {1: deleted})).heard


async def test_an_object_that_is_made_again_keeps_its_dependents():
    again = msgspec.structs.replace(CLONE, headers={**CLONE.headers, subjects.UID: "u-second"})
    pod = kube(POD, "x", metadata={"ownerReferences": [{"uid": "u-second"}]})
    assert len((await record([CLONE], {1: again, 2: pod})).heard) == 2


async def test_nodes_of_its_pods_come_first_and_without_images():
    node = kube(NODE, "n1", metadata={"labels": {"zone": "a"}}, status={"images": [1], "phase": "x"})
    bundle = await record([CLONE, OWN_POD, node, kube(NODE, "n2")])
    assert names(bundle.known) == ["n1", "web", "web-a"]
    assert bundle.known[0].body["status"] == {"phase": "x"}


async def test_what_arrives_while_it_reads_counts_as_known():
    bus, clock = ScriptedBus([CLONE]), Timeline()
    bus.while_reading = lambda: bus.publish(why())
    clock.events[0.0] = lambda: bus.beat(CLONE_SET.plural, PLANNING)
    bundle = await capture(bus, clock).run(1)
    assert len(bundle.known) == 7  # five kinds of dependents and the writes were read meanwhile
    assert not bundle.heard


async def test_a_decision_that_its_stream_stores_again_is_no_new_one():
    again = msgspec.structs.replace(why(), headers={subjects.AGAIN: "true"})
    bundle = await record([CLONE, again], {1: again})
    assert [message.subject.partition(".")[0] for message in bundle.known] == ["kube", "why"]
    assert not bundle.heard


async def test_it_waits_for_the_settings_but_not_for_ever():
    assert (await record([CLONE], seconds=0)).header.planning is not None
    clock = FakeClock()
    bundle = await capture(ScriptedBus([CLONE]), clock).run(0)
    assert bundle.header.planning is None
    assert 6 <= clock.time < 7


@pytest.mark.parametrize("held", [[], [kube(CLONE_SET, "web", "DELETED")]], ids=["never there", "deleted"])
async def test_nothing_published(held: list[Message]):
    with pytest.raises(NothingPublished):
        await capture(ScriptedBus(held), FakeClock()).run(0)


TEMPLATE: Json = {
    "containers": [
        {
            "name": "main",
            "image": "web:1",
            "command": ["sh", "-c"],
            "args": ["--password=secret"],
            "env": [
                {"name": "PASSWORD", "value": "secret"},
                {"name": "EMPTY", "value": ""},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            ],
            "livenessProbe": {"exec": {"command": ["check", "secret"]}},
            "readinessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "secret"}]}},
        }
    ],
    "volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"token": "secret"}}}],
}
LAST = "kubectl.kubernetes.io/last-applied-configuration"


def test_free_text_becomes_tokens():
    redactor = Redactor("key")
    document = redactor.body({"metadata": {"annotations": {LAST: "secret", "a": "b"}}, "data": {"spec": TEMPLATE}})
    text = msgspec.json.encode(document).decode()
    assert "secret" not in text
    container = document["data"]["spec"]["containers"][0]
    assert (container["name"], container["image"]) == ("main", "web:1")
    assert container["env"][1:] == TEMPLATE["containers"][0]["env"][1:]
    assert document["metadata"]["annotations"] != {"a": "b"}
    assert document["metadata"]["annotations"].keys() == {"a"}
    assert redactor.count == 10


def test_annotations_of_users_become_tokens_but_for_those_that_containers_follow():
    kept = {
        "apps.kruise.io/inplace-update-state": "{}",
        "inplace-update-grace": "{}",
        "controller.kubernetes.io/pod-deletion-cost": "5",
        "followed": "red",
    }
    mine = {"token": "secret", "example.com/note": "secret", "kruise.io.example.com/x": "secret"}
    path = {"fieldRef": {"fieldPath": "metadata.annotations['followed']"}}
    spec = {"containers": [{"name": "main", "env": [{"name": "COLOUR", "valueFrom": path}]}]}
    found = Redactor("key").body({"metadata": {"annotations": kept | mine}, "spec": spec})["metadata"]["annotations"]
    assert {key: found[key] for key in kept} == kept
    assert all(found[key].startswith("redacted-") for key in mine)


def test_whose_ephemeral_container_it_is_stays_readable():
    env = [{"name": "KRUISE_EJOB_ID", "value": "u-dump"}, {"name": "PASSWORD", "value": "secret"}]
    found = Redactor("key").body({"spec": {"ephemeralContainers": [{"name": "dump", "env": env}]}})
    ours, theirs = found["spec"]["ephemeralContainers"][0]["env"]
    assert ours == env[0]
    assert theirs["value"].startswith("redacted-")


def test_equal_texts_stay_equal_within_one_bundle_only():
    one, other = Redactor("one"), Redactor("other")
    assert one.body(TEMPLATE) == one.body(TEMPLATE) != other.body(TEMPLATE)
    env = one.body(TEMPLATE)["containers"][0]["env"][0]["value"]
    header = one.body(TEMPLATE)["containers"][0]["readinessProbe"]["httpGet"]["httpHeaders"][0]["value"]
    assert env == header


def test_every_kind_that_a_service_plans_can_be_recorded():
    assert {resource.kind for resource in controllers()} == {
        "AdvancedCronJob",
        "BroadcastJob",
        "CloneSet",
        "ContainerRecreateRequest",
        "EphemeralJob",
        "ImageListPullJob",
        "ImagePullJob",
        "NodeImage",
        "NodePodProbe",
        "PersistentPodState",
        "PodProbeMarker",
        "PodUnavailableBudget",
        "ResourceDistribution",
        "SidecarSet",
        "DaemonSet",
        "StatefulSet",
        "UnitedDeployment",
        "WorkloadSpread",
        "Pod",  # the pod readiness controller
    }
    assert controllers()[CLONE_SET] is CLONE_SETS
    assert all(spec.resource == resource for resource, spec in controllers().items())
