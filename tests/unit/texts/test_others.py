"""Texts of several kinds that the specification fixes word for word.

SidecarSet, the sidecar terminator, ResourceDistribution, ContainerRecreateRequest, pods' conditions and deletion
protection. A text that is changed in the code fails here. sidecarset.md §7.11, §8; container-extras.md §A4, §A5;
resourcedistribution.md §6; containerrecreaterequest.md §6, §9; common.md §6, §9.5; deletionprotection.md §4.
"""

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Intent
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.readiness import Blocker, add_blocker, remove_blocker
from flotilla_jobs.containerrecreate.plan import DEADLINE, NO_ANSWER, POD_GONE
from flotilla_nodeagent.recreate_states import NOT_FOUND
from tests.unit.cloneset import build as cs
from tests.unit.recreate import world as crr
from tests.unit.resourcedistribution import world as rd
from tests.unit.sidecarset import build as side
from tests.unit.terminator.test_terminator import IGNORED, IMAGE, RUNNING, SIDE, VIRTUAL, decided
from tests.unit.terminator.test_terminator import pod as finished
from tests.unit.texts.told import conditions, events
from tests.unit.webhook.test_protection import Case
from tests.unit.webhook.test_protection import pod as living


def test_sidecar_set_says_which_pods_it_cannot_update() -> None:
    plan = side.planned(side.side("B"), "A? A")
    text = "SidecarSet in-place update found 1 not upgradable pod(s) in this round, will skip them"
    assert events(plan) == {f"Normal NotUpgradablePods: {text}"}
    assert conditions(plan, "Pod") == {
        'SidecarSetUpgradable False UpdateImmutableField: {"side":false}',
        'SidecarSetUpgradable True AllSidecarsetUpgradable: {"side":true}',
    }


def test_sidecar_set_says_which_containers_idle() -> None:
    pod = side.hot_pod("proxy:A", "proxy:B", "mesh-2", hash_of="B", versions="1/2 0/1")
    assert events(side.planned(side.hot_side("B"), [pod])) == {
        "Normal ResetContainerSucceed: reset of the sidecar container image to empty succeeded",
        "Warning ResetContainerFailed: reset of the sidecar container image to empty failed: ERR",
    }


def test_the_terminator_says_how_sidecars_end() -> None:
    two = finished("Never", {"m": 0, "s": RUNNING, "t": RUNNING}, {"s": SIDE, "t": SIDE})
    assert events(decided(two)) == {"Normal SidecarTerminator: Try to terminate sidecar [s t] using crr"}
    in_place = {"Normal SidecarTerminator: Try to terminate sidecar [s] using in-place update"}
    for image in ("e", "s:1"):  # another one, and the present one
        virtual = finished("Never", {"m": 0, "s": RUNNING}, {"s": {IMAGE: image}})
        assert events(decided(virtual, VIRTUAL)) == in_place
    ignored = decided(finished("Never", {"m": 0, "s": RUNNING}, {"s": IGNORED}))
    assert conditions(ignored, "Pod") == {"SidecarTerminated True: Terminated by Sidecar Terminator"}


def test_conditions_of_a_resource_distribution() -> None:
    world = rd.World()
    world.distribute(includedNamespaces=rd.names("a", "x"))
    world.settle()
    reasons = {one.type: (one.status, one.reason) for one in world.status.conditions}
    assert list(reasons) == [
        "GetResourceFailed",
        "CreateResourceFailed",
        "UpdateResourceFailed",
        "DeleteResourceFailed",
        "ConflictOccurred",
        "NamespaceNotExists",
    ]
    assert reasons.pop("NamespaceNotExists") == ("True", "namespace x not found or is terminating")
    assert set(reasons.values()) == {("False", "Succeeded")}


def test_conditions_of_pods() -> None:
    starting = conditions(cs.planned(cs.cloneset().in_place(), "3o"), "Pod")
    assert starting == {
        "InPlaceUpdateReady False StartInPlaceUpdate: ",
        (
            "Ready False ReadinessGatesNotReady: "
            'the status of pod readiness gate "InPlaceUpdateReady" is not "True", but False'
        ),
    }
    hooked = cs.cloneset().replicas(1).hook("preDelete", not_ready=True)
    held = cs.planned(hooked, [cs.pod("n1"), cs.pod("n2", labels={"hold": "preDelete"}), cs.pod("n3")])
    said = conditions(held, "Pod")
    assert 'KruisePodReady False: [{"userAgent":"Lifecycle","key":"preDeleteHook"}]' in said


def test_the_last_holder_leaves_an_empty_list() -> None:
    document = msgspec.to_builtins(cs.pod("n1"))
    edit = PodEdit(msgspec.convert(document, Pod), Intent.REFRESH, "test")
    holder = Blocker("ContainerRecreateRequest", "ns/crr")
    add_blocker(edit, holder, cs.NOW)
    condition = edit.condition("KruisePodReady")
    assert condition is not None
    assert (condition.status, condition.message) == (
        "False",
        '[{"userAgent":"ContainerRecreateRequest","key":"ns/crr"}]',
    )
    remove_blocker(edit, holder, cs.NOW)
    condition = edit.condition("KruisePodReady")
    assert condition is not None
    assert (condition.status, condition.message) == ("True", "[]")


def test_messages_of_recreate_requests() -> None:
    assert (POD_GONE, DEADLINE) == ("pod has gone", "recreating has exceeded the activeDeadlineSeconds")
    assert (NO_ANSWER, NOT_FOUND) == ("daemon has not responded for a long time", "not found container on Node")
    silent = crr.World(crr.request_document("app"))
    silent.passes(61)
    assert silent.status()["message"] == "daemon has not responded for a long time"
    draining = crr.request_document("app", strategy={"unreadyGracePeriodSeconds": 3})
    draining["status"] = {"phase": "Recreating"}
    world = crr.World(draining)
    world.passes()
    (condition,) = world.status()["conditions"]
    assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
        "PreRecreateGrace",
        "True",
        "PreRecreateGrace",
        "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
    )


PREFIX = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection="


@pytest.mark.parametrize(
    ("kind", "label", "message"),
    [
        ("Deployment", "Always", f"{PREFIX}Always"),
        ("Deployment", "Cascading", f"{PREFIX}Cascading and replicas 3>0"),
        ("Namespace", "Cascading", f"{PREFIX}Cascading and active pods 1>0"),
        ("CustomResourceDefinition", "Cascading", "feature-gate DeletionProtectionForCRDCascadingGate is not enabled"),
    ],
)
async def test_refused_deletions(kind: str, label: str, message: str) -> None:
    """Cases that need a busier cluster are in test_protection.py."""
    case = Case("")
    case.cluster.put(POD, living("p", "Running"))
    assert await case.delete(kind, label, {"replicas": 3}) == message
