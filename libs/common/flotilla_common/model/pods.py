"""Models the scheduler and the kubelets: they advance every pod that changes, or end it."""

from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.images import is_reported_as
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.model import agent, ephemeral, kubelet
from flotilla_common.model.kubelet import statuses_of
from flotilla_common.model.store import Objects, Place, place_of
from flotilla_common.workload.causes import Cause, PodContext, cause_of, stuck_terminating
from flotilla_common.workload.placement import node_of

SOON = timedelta(seconds=60)
"""Transitions that began more recently may still complete; older ones are taken to be stuck."""

SLOW = frozenset({"Starting", "InitContainerRunning", "ReadinessProbeFailed", "StartupProbeFailed"})
"""Causes that may pass by themselves: a kubelet is at work, or a probe has not succeeded yet."""

SOMEWHERE = "a-node"
"""The node of new pods if no nodes are loaded."""


class Pods:
    """All kubelets, and the scheduler."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._runs: dict[str, dict[str, str]] = {}  # by uid: the image that each container runs
        self.troubles: dict[str, Cause] = {}
        """The causes by uid of pods that stay as they are until they are changed or deleted."""
        self._lingering: set[str] = set()  # pods whose end no kubelet confirms
        self._debugging: set[tuple[str, str]] = set()  # ephemeral containers that were started here, by the pod's uid
        self._due: dict[Place, None] = {}
        objects.listen(self._see)

    def meet(self) -> None:
        """Record the state of the loaded pods."""
        for pod in self._objects.all(POD):
            uid = pod["metadata"]["uid"]
            self._runs[uid] = _running_images(pod)
            if trouble := self._trouble(pod):
                self.troubles[uid] = trouble
                self._runs[uid] = _wanted_images(pod)  # it does not update them by itself
            if not kubelet.is_ready(pod) or "deletionTimestamp" in pod["metadata"] or is_to_end(pod):
                self._due[place_of(pod)] = None

    def step(self) -> bool:
        """Do everything that is due, one step each. Return False if nothing is."""
        due, self._due = self._due, {}
        moved = False
        for place in due:
            pod = self._objects.get(POD, *place)
            after = None if pod is None else self._next(pod)
            if pod is None or after == pod:
                continue
            moved = True
            if after is None:
                self._remove(pod)
            else:
                self._objects.put(POD, after)
        return moved

    def _see(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        if resource == POD and after is not None:
            self._due[place_of(after)] = None

    def _next(self, pod: Json) -> Json | None:
        """Return the pod after its next transition, the same pod if nothing is due, or None if it is gone."""
        uid, now = pod["metadata"]["uid"], self._objects.clock.now()
        if "deletionTimestamp" in pod["metadata"]:
            return pod if uid in self._lingering or pod["metadata"].get("finalizers") else None
        if kubelet.has_ended(pod):
            return pod
        if not pod["spec"].get("nodeName"):
            if uid in self.troubles:
                return pod
            return kubelet.scheduled(pod, demanded_node(pod) or self._node(), now)
        if not statuses_of(pod):
            self._runs[uid] = _wanted_images(pod)
            return agent.reported(kubelet.started(kubelet.gates_opened(pod, now), now))
        return agent.reported(self._watched_over(pod, now))

    def _watched_over(self, pod: Json, now: datetime) -> Json:
        uid, told, wanted = pod["metadata"]["uid"], statuses_of(pod), _wanted_images(pod)
        runs = self._runs.setdefault(uid, _running_images(pod))
        if changed := {name for name, image in wanted.items() if runs.get(name, image) != image}:
            self._runs[uid] = wanted
            self.troubles.pop(uid, None)
            return kubelet.stopped(pod, dict.fromkeys(changed & told.keys(), 0), now)
        if uid in self.troubles:
            return self._with_debuggers(pod, now)
        unready = {name for name, one in told.items() if not one.get("ready")}
        if down := {name for name in unready if "running" not in member(told[name], "state")}:
            return kubelet.restarted(pod, down, now)
        if unready:
            return kubelet.become_ready(pod, unready, now)
        return kubelet.ended(pod, now) if is_to_end(pod) else self._with_debuggers(pod, now)

    def _with_debuggers(self, pod: Json, now: datetime) -> Json:
        """Return the pod with its ephemeral containers a step further; those running at load time keep running."""
        uid, told = pod["metadata"]["uid"], ephemeral.statuses_of(pod)
        begun = [one for (of, one) in self._debugging if of == uid]
        due = [str(one["name"]) for one in mappings(pod["spec"].get("ephemeralContainers")) if one["name"] not in told]
        self._debugging -= {(uid, name) for name in begun}
        self._debugging |= {(uid, name) for name in due}
        pod = ephemeral.ended(pod, dict.fromkeys(begun, 0), now) if begun else pod
        pod = ephemeral.started(pod, dict.fromkeys(due, ""), now) if due else pod
        return kubelet.observed(pod, now)

    def _trouble(self, document: Json) -> Cause | None:
        """Return what is wrong with a pod now, if it needs intervention or has lasted for too long."""
        pod, now = msgspec.convert(document, Pod), self._objects.clock.now()
        if pod.metadata.deletion_timestamp is not None and stuck_terminating(pod, now):
            self._lingering.add(pod.metadata.uid)
        cause = cause_of(pod, PodContext(now=now))
        if cause is None or cause.stuck:
            return cause
        lasting = cause.code in SLOW and cause.since is not None and now - cause.since > SOON
        return cause if lasting else None

    def _remove(self, pod: Json) -> None:
        self.troubles.pop(pod["metadata"]["uid"], None)
        self._objects.remove(POD, pod)

    def _node(self) -> str:
        """Return the schedulable node that has the fewest pods."""
        free = [node["metadata"]["name"] for node in self._objects.all(NODE) if _takes_pods(node)]
        if not free:
            return SOMEWHERE
        crowd = dict.fromkeys(sorted(free), 0)
        for pod in self._objects.all(POD):
            if (name := pod["spec"].get("nodeName")) in crowd:
                crowd[name] += 1
        return min(crowd, key=lambda name: crowd[name])


def demanded_node(pod: Json) -> str:
    """Return the node that the pod is on, or that it is made for; empty for any."""
    return node_of(msgspec.convert(pod, Pod))


def is_to_end(pod: Json) -> bool:
    """Report whether the pod's containers are not started again once they have succeeded."""
    return member(pod, "spec").get("restartPolicy", "Always") != "Always"


def _takes_pods(node: Json) -> bool:
    spec = member(node, "spec")
    return not spec.get("unschedulable") and not any(
        taint.get("effect") in ("NoSchedule", "NoExecute") for taint in mappings(spec.get("taints"))
    )


def _wanted_images(pod: Json) -> dict[str, str]:
    return {one["name"]: one["image"] for one in mappings(pod["spec"].get("containers"))}


def _running_images(pod: Json) -> dict[str, str]:
    """Return the running images, under the names in the pod's spec where they are the same image.

    Runtimes report other names for the same image. Only while the pod is being updated, another name is another image.
    """
    wanted = _wanted_images(pod)
    statuses = statuses_of(pod)
    if not _is_changing(pod):
        return wanted
    return {
        name: image if name not in statuses or is_reported_as(image, statuses[name]["image"]) else ""
        for name, image in wanted.items()
    }


def _is_changing(pod: Json) -> bool:
    """Report whether the pod's kubelet has not observed its newest spec, or an in-place update is under way."""
    observed = member(pod, "status").get("observedGeneration", 0)
    if 0 < observed < pod["metadata"].get("generation", 0):
        return True
    conditions = mappings(member(pod, "status").get("conditions"))
    return any(one.get("type") == "InPlaceUpdateReady" and one.get("status") == "False" for one in conditions)
