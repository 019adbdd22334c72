"""PodUnavailableBudgets: no budget is exceeded, and each entry is kept for its time (podunavailablebudget.md §7, §8).

The allowance of a budget is computed here from pods and workloads, never from its status.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil

import msgspec

from flotilla_common.api.documents import mappings, member, strings
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, RELATED_BUDGET, UNAVAILABLE
from flotilla_common.api.resources import DEPLOYMENT, POD
from flotilla_common.control.plan import Json
from tests.simulation.oracles.copies import Past, lately
from tests.simulation.oracles.view import Commit, View

TARGETS = (CLONE_SET, DEPLOYMENT)
KEPT_SECONDS: Mapping[str, int] = {"disruptedPods": 20, "unavailablePods": 10}
"""Seconds for which an entry of each map is kept."""

LOST_SECONDS = 5.0
"""Seconds for which a pod that became unavailable by itself counts as available: a controller cannot see it at once."""

ANSWER_SECONDS = 10.0
"""Seconds more that an entry may stay until the apiserver has confirmed that its pod still exists."""


class Budgets:
    """The rule for budgets: their states over time, and those of their workloads and pods."""

    def __init__(self) -> None:
        self._budgets: dict[tuple[str, str], Past] = {}  # by namespace and name
        self._workloads: dict[tuple[str, ...], Past] = {}  # by namespace, kind and name
        self._pods: dict[str, Json] = {}  # by uid
        self._lost: dict[str, float] = {}  # pods that became unavailable by themselves, and when

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        entry = (version.at, version.after)
        if version.resource == POD_UNAVAILABLE_BUDGET:
            self._budgets.setdefault((version.namespace, version.name), []).append(entry)
            if version.writer.startswith("policy-") and version.before is not None and version.after is not None:
                yield from self._counted(view, version.before, version.after)
        elif version.resource in TARGETS:
            place = (version.namespace, version.resource.kind, version.name)
            self._workloads.setdefault(place, []).append(entry)
        elif version.resource == POD:
            yield from self._pod(view, commit)

    def _pod(self, view: View, commit: Commit) -> Iterator[str]:
        before, after = commit.version.before, commit.version.after
        if is_available(before) and not is_available(after):
            if before is not None and (commit.marked_deleted or commit.ours):
                yield from self._taken(view, before)
            else:
                self._lost[commit.version.uid] = view.at
        if after is None:
            self._pods.pop(commit.version.uid, None)
        else:
            self._pods[commit.version.uid] = after

    def _taken(self, view: View, pod: Json) -> Iterator[str]:
        """Check that the budget of a pod that is taken out of service allowed it."""
        meta = pod["metadata"]
        name = strings(meta.get("annotations")).get(RELATED_BUDGET, "")
        known = lately(self._budgets.get((meta["namespace"], name), []), view.since)
        if any(one is None or not one.get("status", {}).get("observedGeneration") for one in known):
            return  # it protects from its first status on
        available = [one for one in self._pods.values() if selects(known[-1], one) and self._counts(view, one)]
        desired = [least for one in known if one is not None for least in self._least(view, one)]
        stored = [one["status"]["desiredAvailable"] for one in known if one is not None]  # what was changed just now
        least = min([*desired, *stored])
        if least > 0 and len(available) <= least:
            yield f"takes {meta['name']}, though {least} of {len(available)} available pods have to stay"

    def _counts(self, view: View, pod: Json) -> bool:
        lost = self._lost.get(pod["metadata"]["uid"], float("-inf"))
        is_lost = view.at - lost < LOST_SECONDS and "deletionTimestamp" not in pod["metadata"]
        return is_available(pod) or is_lost

    def _least(self, view: View, budget: Json) -> Iterator[int]:
        """Return how many pods have to be available, by the lowest number that was wanted recently."""
        for replicas in self._replicas(view, budget):
            yield least_of(budget["spec"], replicas)

    def _replicas(self, view: View, budget: Json) -> list[int]:
        """Return the replicas of the workload `web`, the only one that budgets of scenarios are about."""
        namespace = budget["metadata"]["namespace"]
        pasts = [self._workloads.get((namespace, one.kind, "web"), []) for one in TARGETS]
        states = [state for past in pasts if past for state in lately(past, view.since)]
        return [wanted(state) for state in states] or [0]

    def _counted(self, view: View, before: Json, after: Json) -> Iterator[str]:
        """Check the counts of the controller: no fewer than have to be available, and no entry lost."""
        desired, least = after.get("status", {}).get("desiredAvailable", 0), [*self._least(view, after)]
        if desired < min(least):
            yield f"wants {desired} pods to be available, and {min(least)} have to be"
        for name, seconds in KEPT_SECONDS.items():
            held, kept = (strings(member(one, "status").get(name)) for one in (before, after))
            for pod, at in held.items():
                age = (view.now - datetime.fromisoformat(at)).total_seconds()
                there = next((one for one in self._pods.values() if one["metadata"]["name"] == pod), None)
                if pod not in kept and age < seconds and is_available(there) and is_older(there, at):
                    yield f"forgets after {age:.0f} s that budget was taken for {pod}, which is still there"
                if pod in kept and age > seconds + ANSWER_SECONDS:
                    yield f"keeps what was taken for {pod} for {age:.0f} s"


def is_available(pod: Json | None) -> bool:
    """Report whether the pod serves, as podunavailablebudget.md §6 defines it."""
    if pod is None or "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") != "Running":
        return False
    labels = strings(pod["metadata"].get("labels"))
    ready = any((one["type"], one["status"]) == ("Ready", "True") for one in mappings(pod["status"].get("conditions")))
    return ready and not any(key.startswith(UNAVAILABLE) for key in labels)


def is_older(pod: Json | None, at: str) -> bool:
    """Report whether the pod existed before the second of the entry, so that the entry is about this very pod."""
    made = (pod or {}).get("metadata", {}).get("creationTimestamp", "")
    return bool(made) and datetime.fromisoformat(made) + timedelta(seconds=1) <= datetime.fromisoformat(at)


def selects(budget: Json | None, pod: Json) -> bool:
    """Report whether the budget covers the pod: by label, or by the workload `web`, which owns all pods."""
    if budget is None or budget["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return False
    equal = strings(member(budget, "spec", "selector").get("matchLabels")) or {"app": "web"}
    return equal.items() <= strings(pod["metadata"].get("labels")).items()


def wanted(workload: Json | None) -> int:
    """Return how many pods the workload wants."""
    if workload is None or "deletionTimestamp" in workload["metadata"]:
        return 0
    return int(workload["spec"].get("replicas", 1))


def least_of(spec: Json, replicas: int) -> int:
    """Return how many of these replicas have to be available."""
    if spec.get("maxUnavailable") is not None:
        return max(0, replicas - share(spec["maxUnavailable"], replicas))
    return share(spec["minAvailable"], replicas)


def share(value: int | str, total: int) -> int:
    """Return a number, or a percentage of the total, rounded up."""
    return value if isinstance(value, int) else ceil(Fraction(int(value.rstrip("%")), 100) * total)


def final_problems(budget: Json, pods: list[Json], replicas: int) -> Iterator[str]:
    """Yield what is wrong in the status when nothing has happened for long."""
    available = sum(is_available(pod) for pod in pods if selects(budget, pod))
    least = least_of(budget["spec"], replicas)
    expected: Json = {
        "observedGeneration": budget["metadata"]["generation"],
        "totalReplicas": replicas,
        "desiredAvailable": least,
        "currentAvailable": available,
        "unavailableAllowed": max(0, available - least),
    }
    if (status := msgspec.to_builtins(budget.get("status", {}))) != expected:
        yield f"the status is {status}, not {expected}"
