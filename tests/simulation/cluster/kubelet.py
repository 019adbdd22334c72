"""The kubelets of all nodes: they start, restart, watch over and end the containers of the pods bound to them.

What runs is what the pod's status says runs: a kubelet has no other memory. A container whose image changed is stopped
and then started anew, with another imageID, one more restart, and not ready in between; `Ready` follows the containers
and the readiness gates. A kubelet writes only its own conditions, and only to the pod that it knows by its uid.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from flotilla_common.api.documents import mappings, member
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import CONFIG_MAP, NODE, POD
from flotilla_common.control.plan import Json, PatchType
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import Place
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster import containers, ephemeral
from tests.simulation.cluster.actor import Actor, Step
from tests.simulation.cluster.pace import Pace

STOP_ANNOTATION = "simulation.flotilla.dev/stop-seconds"
"""How long the pod's containers take to stop, at most its grace period."""

COMPLETE_ANNOTATION = "fake.flotilla.dev/complete"
"""The pod succeeds by itself, as a job's."""

EXITS_ANNOTATION = "simulation.flotilla.dev/exits"
"""Containers that end by themselves, and with which code: JSON, by name. A list has the codes of one run after the
other; the last one holds from then on."""

STOP_CODES_ANNOTATION = "simulation.flotilla.dev/stop-codes"
"""With which code containers end that are stopped; those that are not named, with 0."""


class Kubelets(Actor):
    """All kubelets; those of nodes that are `dead` or not there do nothing."""

    def __init__(self, server: ApiServer, pace: Pace, wire: Wire | None = None) -> None:
        super().__init__(server, "kubelet", POD, wire)
        self.pace = pace
        self.dead: set[str] = set()
        self.broken_images: set[str] = set()
        """Images that cannot be pulled."""
        self.crashed: set[tuple[str, str]] = set()
        """(pod uid, container) that have just died by themselves."""
        self.lag = 0.0
        """Seconds that a report is under way: what it says is of the pod as it was when it left."""
        self._addresses = 0

    def next_step(self, place: Place, document: Json) -> Step | None:
        metadata, spec, status = document["metadata"], document["spec"], member(document, "status")
        node = spec.get("nodeName")
        if not node or node in self.dead or self.stored(("", node), NODE) is None:
            return None
        if "deletionTimestamp" in metadata:
            return self._end(place, document)
        if status.get("phase") in ("Succeeded", "Failed"):
            return self._wind_down(place, document)
        if not status.get("podIP"):
            return Step("start", self.pace.start, lambda: self._report(place, self._started))
        return self._watch_over(place, document)

    def _wind_down(self, place: Place, pod: Json) -> Step | None:
        """A job's pod is over, as somebody has said: what still runs is stopped."""
        job = pod["spec"].get("restartPolicy", "Always") != "Always"
        if job and any("running" in one["state"] for one in containers.statuses(pod).values()):
            return Step("wind down", self.pace.stop, lambda: self._report(place, self._wound_down))
        return None

    def _watch_over(self, place: Place, pod: Json) -> Step | None:
        reported = containers.statuses(pod)
        wrong = [one for one in mappings(pod["spec"]["containers"]) if self._runs_wrong(pod, one, reported)]
        if any("running" in reported[one["name"]]["state"] for one in wrong):
            return Step("kill", self.pace.kill, lambda: self._report(place, self._killed))
        if any(not self._obstacle(pod, one) for one in wrong):
            return Step("restart", self.pace.restart, lambda: self._report(place, self._restarted))
        if any("running" in reported[name]["state"] for name in _exits(pod, reported)):
            return Step("exit", self.pace.complete, lambda: self._report(place, self._exited))
        if containers.conditions(pod, reported.values(), ""):
            return Step("readiness", self.pace.readiness, lambda: self._report(place, self._same))
        if member(pod, "status").get("observedGeneration", 0) < pod["metadata"].get("generation", 0):
            return Step("observe", self.pace.readiness, lambda: self._report(place, self._same))
        if due := ephemeral.next_of(pod, self._unpullable):
            pause = self.pace.start if due == ephemeral.START else self.pace.complete
            return Step(due, pause, lambda: self._report(place, self._looked_into))
        if COMPLETE_ANNOTATION in member(pod, "metadata", "annotations"):
            return Step("complete", self.pace.complete, lambda: self._report(place, self._completed))
        return None

    def _runs_wrong(self, pod: Json, container: Json, reported: dict[str, Json]) -> bool:
        status = reported[container["name"]]
        if containers.is_over(pod, status):
            return False
        crashed = (pod["metadata"]["uid"], container["name"]) in self.crashed
        return crashed or "running" not in status["state"] or status["image"] != container["image"]

    def _unpullable(self, container: Json) -> str:
        """Why an ephemeral container cannot be created: its image cannot be pulled."""
        return "ImagePullBackOff" if container["image"] in self.broken_images else ""

    def _obstacle(self, pod: Json, container: Json) -> str:
        """Why the container cannot be created; empty if it can."""
        if why := self._unpullable(container):
            return why
        return "CreateContainerConfigError" if any(map(partial(self._lacks, pod), _key_refs(container))) else ""

    def _lacks(self, pod: Json, reference: Json) -> bool:
        found = self.stored((pod["metadata"]["namespace"], reference["name"]), CONFIG_MAP)
        return reference["key"] not in member(found or {}, "data")

    def see_config_map(self, place: Place) -> None:
        """Look again at the pods whose containers may wait for a key of it."""
        for (namespace, name), pod in self.all():
            references = (one for container in mappings(pod["spec"]["containers"]) for one in _key_refs(container))
            if any((namespace, reference["name"]) == place for reference in references):
                self.touch((namespace, name))

    def _end(self, place: Place, pod: Json) -> Step | None:
        metadata, status = pod["metadata"], member(pod, "status")
        if status.get("phase") not in ("Succeeded", "Failed"):
            asked = metadata.get("annotations", {}).get(STOP_ANNOTATION)
            grace = metadata.get("deletionGracePeriodSeconds", 0)
            delay = min(float(asked) if asked else self.pace.stop, grace)
            return Step(f"stop within {grace}", delay, lambda: self._report(place, self._stopped))
        if metadata.get("deletionGracePeriodSeconds"):
            return Step("remove", 0, lambda: self._remove(place, metadata["uid"]))
        return None  # only finalizers keep it

    async def _remove(self, place: Place, uid: str) -> None:
        await self.api.delete_with(POD, *place, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    async def _report(self, place: Place, change: Callable[[Json, str], Json]) -> None:
        pod = self.stored(place)
        if pod is None:
            return
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": change(pod, rfc3339(self.clock.now()))}
        if self.lag:
            await self.clock.sleep(self.lag)
        await self.api.patch(POD, *place, msgspec.json.encode(body), PatchType.STRATEGIC, subresource="status")

    def _started(self, pod: Json, now: str) -> Json:
        self._addresses += 1
        address = f"10.0.{self._addresses // 250}.{self._addresses % 250 + 1}"
        found = [self._run(pod, one, 0, now) for one in mappings(pod["spec"]["containers"])]
        begun = {"startTime": now, "hostIP": "10.64.0.1", "podIP": address, "podIPs": [{"ip": address}]}
        phase = "Running" if any("running" in one["state"] for one in found) else "Pending"
        return begun | self._status(pod, found, now) | {"phase": phase}

    def _run(self, pod: Json, container: Json, restarts: int, now: str) -> Json:
        if obstacle := self._obstacle(pod, container):
            return containers.waiting(container, obstacle)
        return containers.running(pod, container, restarts, now)

    def _killed(self, pod: Json, now: str) -> Json:
        reported = containers.statuses(pod)
        for one in mappings(pod["spec"]["containers"]):
            if self._runs_wrong(pod, one, reported):
                self.crashed.discard((pod["metadata"]["uid"], one["name"]))
                reported[one["name"]] = self._ended(pod, reported[one["name"]], now)
        return self._status(pod, list(reported.values()), now)

    def _ended(self, pod: Json, status: Json, now: str) -> Json:
        code = _codes(pod, STOP_CODES_ANNOTATION).get(status["name"], 0)
        over = containers.stopped(status, now, "", for_good=True, code=code)
        return over if containers.is_over(pod, over) else containers.stopped(status, now, "ContainerCreating")

    def _exited(self, pod: Json, now: str) -> Json:
        """In a job's pod: what is not over by that is started again."""
        reported = containers.statuses(pod)
        for name, code in _exits(pod, reported).items():
            if "running" in reported[name]["state"]:
                reported[name] = containers.stopped(reported[name], now, "", for_good=True, code=code)
        return self._status(pod, list(reported.values()), now)

    def _looked_into(self, pod: Json, now: str) -> Json:
        """Ephemeral containers went on."""
        return self._same(pod, now) | {"ephemeralContainerStatuses": ephemeral.gone_on(pod, self._unpullable, now)}

    def _wound_down(self, pod: Json, now: str) -> Json:
        running = (one for one in containers.statuses(pod).values() if "running" in one["state"])
        ended = {one["name"]: self._ended(pod, one, now) for one in running}
        found = [ended.get(name, one) for name, one in containers.statuses(pod).items()]
        return self._status(pod, found, now) | {"phase": pod["status"]["phase"]}

    def _restarted(self, pod: Json, now: str) -> Json:
        reported = containers.statuses(pod)
        for one in mappings(pod["spec"]["containers"]):
            if self._runs_wrong(pod, one, reported) and not self._obstacle(pod, one):
                old = reported[one["name"]]
                restarts = old["restartCount"] + (1 if old["imageID"] else 0)
                reported[one["name"]] = containers.running(pod, one, restarts, now) | {"lastState": old["lastState"]}
        return {"phase": "Running"} | self._status(pod, list(reported.values()), now)

    def _same(self, pod: Json, now: str) -> Json:
        return self._status(pod, list(containers.statuses(pod).values()), now)

    def _completed(self, pod: Json, now: str) -> Json:
        return self._stopped(pod, now) | {"phase": "Succeeded"}

    def _stopped(self, pod: Json, now: str) -> Json:
        found = [containers.stopped(one, now, "", for_good=True) for one in containers.statuses(pod).values()]
        return self._status(pod, found, now, ending=True) | {"phase": "Succeeded" if found else "Failed"}

    def _status(self, pod: Json, found: list[Json], now: str, *, ending: bool = False) -> Json:
        changes = containers.conditions(pod, found, now, ending=ending)
        seen = {"observedGeneration": pod["metadata"].get("generation", 0)}
        over = containers.phase(pod, found)
        more = ({"conditions": changes} if changes else {}) | ({"phase": over} if over else {})
        return {"containerStatuses": found, **seen} | more


def _codes(pod: Json, annotation: str) -> dict[str, int]:
    """Exit codes by container."""
    return msgspec.json.decode(member(pod, "metadata", "annotations").get(annotation, "{}"))


def _exits(pod: Json, reported: dict[str, Json]) -> dict[str, int]:
    """With which code containers end by themselves this time."""
    text = member(pod, "metadata", "annotations").get(EXITS_ANNOTATION, "{}")
    told: dict[str, int | list[int]] = msgspec.json.decode(text)
    return {
        name: codes if isinstance(codes, int) else codes[min(reported[name]["restartCount"], len(codes) - 1)]
        for name, codes in told.items()
    }


def _key_refs(container: Json) -> list[Json]:
    """The keys of ConfigMaps without which the container cannot be created."""
    sources = (member(entry, "valueFrom") for entry in mappings(container.get("env")))
    return [member(source, "configMapKeyRef") for source in sources if "configMapKeyRef" in source]
