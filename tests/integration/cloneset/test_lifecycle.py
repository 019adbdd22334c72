"""Lifecycle hooks: pods that wait for their users before they go, change, or count (common.md §8)."""

from tests.support.workspace import (
    Workspace,
    available,
    cloneset,
    identity,
    image,
    is_ready,
    restarts,
    state,
    terminating,
)
from tests.testkit.documents import Json

BLOCKER = "example.io/unready-blocker"
IN_SERVICE = "example.io/in-service"
HOOKS: Json = {
    "preNormal": {"labelsHandler": {IN_SERVICE: "true"}},
    "inPlaceUpdate": {"finalizersHandler": [BLOCKER]},
    "preDelete": {"finalizersHandler": [BLOCKER]},
}


def in_state(space: Workspace, wanted: str) -> list[str]:
    return sorted(name for name, pod in space.pods.items() if state(pod) == wanted)


def test_hooks_at_every_turn_of_a_pods_life(space: Workspace):
    """A new pod counts when its label is there; then it is updated in place, and scaled in.

    The update begins when the finalizer is removed, and is complete when the finalizer is back. A deletion waits for
    the finalizer, and can be called off until then. A deletion by hand asks no hook.
    """
    manifest = cloneset(2, lifecycle=HOOKS, strategy={"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1})
    manifest["spec"]["template"]["metadata"]["finalizers"] = [BLOCKER]
    space.apply(manifest)
    space.settled(readyReplicas=2, availableReplicas=0)
    names = in_state(space, "PreparingNormal")
    for name in names:
        space.label(name, f"{IN_SERVICE}=true")
    space.settled(availableReplicas=2)
    assert in_state(space, "Normal") == names

    before, start = {identity(pod) for pod in space.pods.values()}, space.now()
    space.set_image("nginx:mainline")
    for _ in names:
        space.until(lambda: len(in_state(space, "PreparingUpdate")) == 1)
        (name,) = in_state(space, "PreparingUpdate")
        assert (image(space.pod(name)), is_ready(space.pod(name))) == ("nginx:alpine", True)
        space.set_finalizers(name)
        space.until(lambda name=name: state(space.pod(name)) == "Updated" and is_ready(space.pod(name)))
        space.settled(readyReplicas=2, availableReplicas=1)
        space.set_finalizers(name, BLOCKER)
        space.until(lambda name=name: state(space.pod(name)) == "Normal")
        seen = [state(event.object) for event in space.history(start) if event.object["metadata"]["name"] == name]
        assert list(dict.fromkeys(seen))[-4:] == ["PreparingUpdate", "Updating", "Updated", "Normal"]
    space.settled(updatedAvailableReplicas=2)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {restarts(pod) for pod in space.pods.values()} == {1}

    for replicas in (1, 2, 1):
        space.scale(replicas)
        space.until(lambda replicas=replicas: len(in_state(space, "Normal")) == replicas)
        space.settled(replicas=2, readyReplicas=2, availableReplicas=replicas)
    (victim,) = in_state(space, "PreparingDelete")
    space.set_finalizers(victim)
    space.settled(replicas=1, availableReplicas=1)

    (left,) = space.pods
    assert left != victim
    space.kubectl("delete", "pod", left, "--wait=false")
    space.until(lambda: len(space.pods) == 2 and terminating(space.pod(left)))
    assert state(space.pod(left)) == "Normal"
    (new,) = set(space.pods) - {left}
    space.label(new, f"{IN_SERVICE}=true")
    space.until(lambda: available(space.pod(new)))
    space.set_finalizers(left)
    space.until(lambda: left not in space.pods)
