"""A pod that the mirror lacks is read from the apiserver before its request ends."""

from flotilla_common.api.resources import POD
from tests.unit.recreate.world import World, request_document


def test_meanwhile_nothing_is_done():
    world = World(request_document("app"), heard_of_pod=False)
    world.context.gone = False
    assert world.passes(10) == []
    assert world.codes() == ["ReadingPod"]
    world.context.gone = True
    assert world.passes() == ["request Completed: pod has gone", "request release the request"]


def test_a_pod_that_is_held_is_not_left_behind_because_the_mirror_lacks_it():
    world = World(request_document("app", strategy={"unreadyGracePeriodSeconds": 0}))
    world.report(phase="Recreating")
    world.delete_request()
    pod = world.pod
    world.delete_pod()
    world.context.gone = False
    assert world.passes() == []
    world.pods._absent.clear()
    world.put(POD, pod)
    assert world.passes() == ["pod unready grace period is over", "request release the request"]
