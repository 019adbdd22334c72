"""Scaling: order of deletion, specified pods, and creation in steps (cloneset.md §4.4 to §4.7)."""

from datetime import timedelta
from itertools import pairwise

from tests.support.workspace import Workspace, available, cloneset, condition, is_ready, moment

COST = "controller.kubernetes.io/pod-deletion-cost"
SPECIFIED = "apps.kruise.io/specified-delete=true"
GATE = "example.com/warm"
GATED = {"spec": {"readinessGates": [{"conditionType": GATE}], "nodeSelector": {"kubernetes.io/hostname": "node-0"}}}


def test_a_pod_that_is_not_ready_goes_before_cheap_ones(space: Workspace):
    space.apply(cloneset(3, template=GATED))
    space.settled(replicas=3)
    unready, cheap, dear = sorted(space.pods)
    for name in (cheap, dear):
        space.set_condition(name, GATE, "True")
    space.annotate(unready, f"{COST}=1000")
    space.annotate(cheap, f"{COST}=-5")
    space.settled(readyReplicas=2)
    space.scale(2)
    space.settled(replicas=2)
    assert set(space.pods) == {cheap, dear}
    space.scale(1)
    space.settled(replicas=1)
    assert set(space.pods) == {dear}


def test_a_specified_pod_waits_for_its_replacement_when_nothing_may_be_unavailable(space: Workspace):
    space.apply(cloneset(2, strategy={"maxUnavailable": 0, "maxSurge": 1}))
    space.settled(replicas=2, readyReplicas=2)
    victim, start = min(space.pods), space.now()
    space.label(victim, SPECIFIED)
    space.until(lambda: victim not in space.pods and sum(map(is_ready, space.pods.values())) == 2)
    moments = list(space.moments(start))
    assert min(sum(map(available, pods.values())) for pods in moments) == 2
    assert max(map(len, moments)) == 3


def test_creation_streams_in_steps(space: Workspace):
    """Each pod is created two seconds after the one before became Ready, no sooner, without another trigger."""
    space.apply(cloneset(3, scale_strategy={"maxUnavailable": 1}, minReadySeconds=2))
    space.settled(replicas=3, availableReplicas=3)
    pods = sorted(space.pods.values(), key=lambda pod: pod["metadata"]["creationTimestamp"])
    for earlier, later in pairwise(pods):
        ready = moment(condition(earlier, "Ready")["lastTransitionTime"])
        waited = moment(later["metadata"]["creationTimestamp"]) - ready
        assert timedelta(seconds=2) <= waited <= timedelta(seconds=20)
    space.event("ScaleUpLimited", "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 0")
