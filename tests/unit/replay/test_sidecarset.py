"""`flotilla bundle` and `flotilla replay` of SidecarSets: they have no namespace, but their pods and revisions do."""

from typing import Any

from flotilla_cli.bundle.capture import Interest
from flotilla_cli.replay.replayer import Replay
from flotilla_common.api.resources import NAMESPACE, POD, REVISION
from flotilla_common.bus import subjects
from flotilla_sidecar.sidecarset.controller import CONTROLLER
from tests.unit.replay.test_jobs import recorded, recording, run_pass, settle, written
from tests.unit.sidecarset.build import INJECTED, namespace, pod, side

KEY = ("", "side")
PROXY: dict[str, Any] = {"containers": [{"name": "proxy", "image": "proxy:A"}]}
STATUSES: dict[str, Any] = {
    "containerStatuses": [{"name": "proxy", "image": "proxy:A", "imageID": "id", "ready": True}]
}


async def test_a_rollout() -> None:
    pods = [pod(name, "A", spec=PROXY, status=STATUSES) for name in ("p1", "p2")]
    other = pod("other", annotations={INJECTED: "another"})
    spaces = [namespace("shop"), namespace("elsewhere")]
    selecting = side("B").m(2).set(namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "shop"}})
    sidecar_set = selecting.document() | {"kind": "SidecarSet"}
    made = recording(CONTROLLER, KEY, SidecarSet=[sidecar_set], Pod=[*pods, other], Namespace=spaces)
    run_pass(made)
    settle(made)
    bundle = await recorded(made)
    told = list(Replay(bundle, made.spec).steps())
    assert {step.differences for step in told} == {()}
    first = written(told[0])
    assert [line.split()[1] for line in first] == ["ControllerRevision", "Pod", "Pod", "Pod", "Pod"]
    held = {subjects.object_part(message.subject) for message in bundle.known}
    assert subjects.kube(POD, "shop", "p1") in held
    assert subjects.kube(POD, "shop", "other") not in held
    assert subjects.kube(NAMESPACE, "", "elsewhere") in held


def test_revisions_are_recorded_where_somebody_publishes_them() -> None:
    """The service reads them by itself, of one namespace."""
    interest = Interest(CONTROLLER, *KEY)
    assert interest.others[f"kube.v1.{REVISION.id}.>"] == REVISION


def test_writes_are_heard_of_wherever_they_are() -> None:
    assert Interest(CONTROLLER, *KEY).act_filters == [
        "act.v1.*.*._.*",
        "act.v1.*.pods.*.*",
        "act.v1.*.controllerrevisions.*.*",
        "act.v1.*.podunavailablebudgets.*.*",
    ]
