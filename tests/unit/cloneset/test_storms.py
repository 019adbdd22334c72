"""Random behaviour of users, nodes and hooks: limits hold all the while, and afterwards everything settles.

Each seed is one history: settings and templates change, pods are specified for deletion, vanish, fail, lose their
labels, are held by hooks and released. A failure names its seed.
"""

import random
from typing import Any

import pytest

from tests.testkit.documents import Json
from tests.unit.cloneset.build import CloneSetBuilder, cloneset, template
from tests.unit.cloneset.world import World, is_available

GATES = ("CloneSetPartitionRollback", "PreparingUpdateAsUpdate", "CloneSetShortHash", "InPlaceWorkloadVerticalScaling")
STATE = "lifecycle.apps.kruise.io/state"


class Storm:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.builder = self._settings()
        self._strategy()
        gates = ",".join(f"{gate}=true" for gate in GATES if self.dice.random() < 0.3)
        self.world = World(self.builder.template(template("nginx:1")), gates=gates)

    def _settings(self) -> CloneSetBuilder:
        builder, dice = cloneset().replicas(self.dice.randint(0, 6)), self.dice
        if dice.random() < 0.4:
            builder.claims("data").scale(enablePVCReuse=dice.random() < 0.5)
        for hook in ("preDelete", "inPlaceUpdate"):
            if dice.random() < 0.3:
                builder.hook(hook, not_ready=dice.random() < 0.5)
        if dice.random() < 0.2:
            builder.scale(excludePreparingDelete=True)
        if dice.random() < 0.2:
            builder.scale(maxUnavailable=dice.randint(1, 3))
        return builder

    def _strategy(self) -> None:
        dice = self.dice
        policy = dice.choice(("ReCreate", "InPlaceIfPossible", "InPlaceOnly"))
        surge = 0 if policy == "InPlaceOnly" else dice.choice((0, 0, 1, 2))
        self.builder.max_unavailable(dice.randint(0 if surge else 1, 4)).max_surge(surge)
        self.builder.partition(dice.choice((0, 1, 2, 3, 4, "50%", "30%")))
        self.builder.spec["updateStrategy"]["rollingUpdate"] |= {
            "podUpdatePolicy": policy,
            "inPlaceUpdateStrategy": {"gracePeriodSeconds": dice.choice((0, 0, 0, 2))},
        }

    def disturb(self) -> None:
        """Apply a random event to the CloneSet, or to a pod."""
        if self.dice.random() < 0.5:
            self._change_spec(self.dice.choice(("replicas", "template", "strategy", "paused", "podsToDelete", "", "")))
        elif self.world.pods:
            self._change_pod(
                self.dice.choice(self.world.pods), self.dice.choice(("mark", "hold", "kill", "fail", "label", ""))
            )

    def _change_spec(self, what: str) -> None:
        dice, builder = self.dice, self.builder
        match what:
            case "replicas":
                builder.replicas(dice.randint(0, 6))
            case "template":
                extra: dict[str, Any] = {"hostname": "x"} if dice.random() < 0.2 else {}
                builder.template(template(dice.choice(("nginx:1", "nginx:2", "nginx:3")), **extra))
            case "strategy":
                self._strategy()
            case "paused":
                builder.spec["updateStrategy"]["rollingUpdate"]["paused"] = dice.random() < 0.5
            case "podsToDelete" if self.world.pods:
                builder.scale(podsToDelete=[dice.choice(self.world.pods)["metadata"]["name"]])
            case _:
                return
        self.world.change(builder)
        builder.spec["scaleStrategy"].pop("podsToDelete", None)

    def _change_pod(self, pod: Json, what: str) -> None:
        labels = pod["metadata"]["labels"]
        match what:
            case "mark":
                labels["apps.kruise.io/specified-delete"] = "true"
            case "hold" if "hold" in labels:
                del labels["hold"]
            case "hold":
                labels["hold"] = self.dice.choice(("preDelete", "inPlaceUpdate"))
            case "kill":
                del self.world.objects["Pod"][pod["metadata"]["name"]]
            case "fail":
                pod["status"]["phase"] = "Failed"
            case "label":
                labels["app"] = "other"
            case _:
                return
        self.world.touch(pod)

    def own(self) -> list[Json]:
        """Return the pods that count."""
        return [
            pod
            for pod in self.world.pods
            if pod["status"].get("phase") != "Failed" and pod["metadata"]["labels"].get("app") == "sample"
        ]

    def checked_pass(self) -> None:
        """Run a pass, and check that it takes no more availability and creates no more pods than allowed."""
        available, total = sum(map(is_available, self.own())), len(self.own())
        numbers = self.world.reconcile().numbers
        leaving = 0
        if self.builder.spec["scaleStrategy"].get("excludePreparingDelete"):
            leaving = sum(pod["metadata"]["labels"].get(STATE) == "PreparingDelete" for pod in self.own())
        floor = numbers["replicas"] - numbers["maxUnavailable"]
        assert sum(map(is_available, self.own())) >= min(available, floor), self.world.last.reasons
        assert len(self.own()) <= max(total, numbers["replicas"] + numbers["maxSurge"] + leaving)

    def tick(self, luck: float) -> None:
        """Let time pass for some of the living pods."""
        alive = {pod["metadata"]["name"] for pod in self.world.pods if pod["status"].get("phase") != "Failed"}
        self.world.tick({name for name in sorted(alive) if self.dice.random() < luck})

    def let_go(self) -> None:
        """Release all hooks as users do."""
        for pod in self.world.pods:
            labels = pod["metadata"]["labels"]
            if labels.get(STATE) in ("PreparingDelete", "PreparingUpdate") and labels.pop("hold", None):
                self.world.touch(pod)
            hooks = self.builder.spec.get("lifecycle", {})
            if labels.get(STATE) == "Updated" and "inPlaceUpdate" in hooks and labels.get("hold") != "inPlaceUpdate":
                labels["hold"] = "inPlaceUpdate"
                self.world.touch(pod)

    def calm(self) -> None:
        """Run passes without further events until nothing changes."""
        self.builder.spec["updateStrategy"]["rollingUpdate"]["paused"] = False
        self.world.change(self.builder)
        for _ in range(300):
            before = self.world.version
            self.let_go()
            self.checked_pass()
            self.tick(1.0)
            if self.world.version == before and self.world.last.wake_at is None:
                return
        raise AssertionError(f"never settles: {self.world.last.reasons}")


@pytest.mark.parametrize("seed", range(60))
def test_storm(seed: int) -> None:
    storm = Storm(seed)
    for _ in range(40):
        storm.disturb()
        storm.checked_pass()
        storm.tick(0.6)
    storm.calm()
    world, numbers = storm.world, storm.world.last.numbers
    if world.last.errors or any(reason.code == "PreparedInVain" for reason in world.last.reasons):
        return  # the spec contradicts itself
    assert len(storm.own()) == sum(map(is_available, storm.own())) == numbers["replicas"]
    assert world.status["updatedReplicas"] >= numbers["expectedUpdated"]
    assert_claims_follow_pods(storm)


def assert_claims_follow_pods(storm: Storm) -> None:
    """Check that without reuse the CloneSet owns the claims of its pods and no others."""
    spec, instance = storm.builder.spec, "apps.kruise.io/cloneset-instance-id"
    if "volumeClaimTemplates" not in spec or spec["scaleStrategy"]["enablePVCReuse"]:
        return
    owned = {
        claim["metadata"]["labels"][instance]
        for claim in storm.world.objects["PersistentVolumeClaim"].values()
        if any(owner["kind"] == "CloneSet" for owner in claim["metadata"]["ownerReferences"])
    }
    assert owned == {pod["metadata"]["labels"][instance] for pod in storm.own()}
