"""The first KruisePodReady condition: the pods that get it, its content, and the cost of all other pods."""

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.bus import affiliation
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Patch, Plan
from flotilla_common.gates import Gates
from flotilla_common.settings import Settings
from flotilla_sidecar.app import PARTS
from flotilla_sidecar.podreadiness.controller import MERGING, PODS, Gatherer, pod_readiness
from flotilla_sidecar.podreadiness.plan import PodSnapshot, plan
from tests.support.controller_context import FakeContext
from tests.testkit import pods as pods_of
from tests.testkit.documents import conditions, decoded
from tests.testkit.documents import owner as owner_of
from tests.unit.control.fakes import START


def pod(
    *, gated: bool = True, condition: str = "", owner: str = "", terminating: bool = False, version: int = 1
) -> Pod:
    api_version, _, kind = owner.rpartition("/")
    document = pods_of.pod(
        uid="u1",
        version=version,
        ownerReferences=[owner_of(kind, "o", "", api_version)] if owner else [],
        deleted="2026-01-01T00:00:00Z" if terminating else None,
        gates=["KruisePodReady"] if gated else [],
        conditions=conditions({"KruisePodReady": condition} if condition else {}),
    )
    return decoded(document, Pod)


def gatherer_over(context: FakeContext) -> Gatherer:
    """Return the gatherer as the service builds it."""
    gatherer = context.build(PARTS[0])
    assert isinstance(gatherer, Gatherer)
    return gatherer


CASES = [
    pytest.param(pod(), True, id="bare pod"),
    pytest.param(pod(owner="apps/v1/ReplicaSet"), True, id="of a Deployment"),
    pytest.param(pod(owner="apps/v1/CloneSet"), True, id="of a namesake in another group"),
    pytest.param(pod(owner="apps.kruise.io/v1beta1/CloneSet"), False, id="of a CloneSet"),
    pytest.param(pod(owner="apps.kruise.io/v1alpha1/CloneSet"), False, id="of a CloneSet of the older version"),
    pytest.param(pod(owner="apps/v1/StatefulSet"), True, id="of a built-in StatefulSet"),
    pytest.param(pod(owner="apps.kruise.io/v1beta1/StatefulSet"), False, id="of a StatefulSet of ours"),
    pytest.param(pod(owner="apps/v1/DaemonSet"), True, id="of a built-in DaemonSet"),
    pytest.param(pod(owner="apps.kruise.io/v1beta1/DaemonSet"), False, id="of a DaemonSet of ours"),
    pytest.param(pod(gated=False), False, id="without the gate"),
    pytest.param(pod(condition="True"), False, id="with a true condition"),
    pytest.param(pod(condition="False"), False, id="with a false condition: somebody's decision"),
    pytest.param(pod(terminating=True), False, id="terminating"),
]


@pytest.mark.parametrize(("candidate", "wanted"), CASES)
def test_who_is_waiting(candidate: Pod, wanted: bool) -> None:
    context = FakeContext()
    gatherer = gatherer_over(context)
    context.put(PODS, candidate)
    assert context.woken == gatherer.keys()
    assert gatherer.concerns(candidate) is wanted
    assert gatherer.keys() == ([("default", "web-1")] if wanted else [])
    assert gatherer.gather(("default", "web-1"), Memory()) == (PodSnapshot(candidate) if wanted else None)


@pytest.mark.parametrize("kind", ["CloneSet", "DaemonSet", "StatefulSet"])
def test_where_a_kind_is_not_served_its_pods_are_ours(kind: str) -> None:
    owned = pod(owner=f"apps.kruise.io/v1beta1/{kind}")
    assert Gatherer(FakeContext(), merging=()).concerns(owned)
    context = FakeContext()
    context.settings = Settings(custom_resource_enable="NodeImage")
    gatherer = gatherer_over(context)
    context.put(PODS, owned)
    assert gatherer.keys() == [("default", "web-1")]


def test_the_controller_runs_whatever_kinds_are_served() -> None:
    spec = pod_readiness(CLONE_SET)
    assert spec.why_off(Settings(custom_resource_enable="NodeImage"), Gates.parse("")) == ""
    assert (spec.name, spec.wakes_itself, spec.workers) == ("pod-readiness-controller", False, 3)


def test_one_status_patch_adds_the_condition() -> None:
    planned = plan(PodSnapshot(pod()), START)
    (stage,) = planned.stages
    ((patch,),) = stage.chains
    assert isinstance(patch, Patch)
    assert (patch.subresource, patch.uid, patch.resource_version) == ("status", "u1", "")
    assert (patch.cause, patch.phase, patch.on_success, patch.on_failure) == ("first readiness", "", None, None)
    condition = {"type": "KruisePodReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    assert patch.body == {"status": {"conditions": [condition]}}


@pytest.mark.parametrize("there", [pod(condition="False"), pod(terminating=True), pod(gated=False)])
def test_everything_else_is_left_alone(there: Pod) -> None:
    assert plan(PodSnapshot(there), START) == Plan()


def test_a_pod_that_got_its_condition_leaves_the_index() -> None:
    context = FakeContext()
    gatherer = gatherer_over(context)
    context.put(PODS, pod())
    context.put(PODS, pod(condition="True", version=2))
    assert context.woken == [("default", "web-1")]
    assert gatherer.keys() == []
    assert gatherer.gather(("default", "web-1"), Memory()) is None


def test_the_bus_brings_the_pods_of_all_other_kinds() -> None:
    """Hold the kinds that the subjects of pods leave out against those that need no help."""
    assert {kind.kind for kind in MERGING} == affiliation._MERGING
    assert {kind.group for kind in MERGING} == {"apps.kruise.io"}
