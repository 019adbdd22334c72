"""The kubelets of all nodes: they start, restart, observe and end the containers of the pods bound to them.

The pod's status is the only state of a kubelet. A container whose image changed is stopped and started again, with
another imageID, one more restart, and not ready in between; `Ready` follows the containers and the readiness gates. A
kubelet writes only its own conditions, and only to the pod with the uid that it has.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

import msgspec

from flotilla_common.api.documents import mappings, member
from flotilla_common.api.resources import CONFIG_MAP, NODE, POD
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.model import kubelet
from flotilla_common.model.kubelet import statuses_of
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster import ephemeral
from tests.simulation.cluster.actor import Action, Actor
from tests.simulation.cluster.durations import Durations

STOP_ANNOTATION = "simulation.flotilla.dev/stop-seconds"
"""Seconds that the pod's containers take to stop, at most its grace period."""

COMPLETE_ANNOTATION = "fake.flotilla.dev/complete"
"""Marks a pod that succeeds by itself, as a job's."""

EXITS_ANNOTATION = "simulation.flotilla.dev/exits"
"""Containers that end by themselves, and with which code: JSON, by name. A list has the codes of one run after the
other; the last one holds from then on."""

STOP_CODES_ANNOTATION = "simulation.flotilla.dev/stop-codes"
"""With which code containers end that are stopped; those that are not named, with 0."""

_ALWAYS = ("containerStatuses", "observedGeneration")
NEVER = datetime.min.replace(tzinfo=UTC)


class Kubelets(Actor):
    """All kubelets; those of nodes that are `dead` or not there do nothing."""

    def __init__(self, server: ApiServer, durations: Durations, wire: Wire | None = None) -> None:
        super().__init__(server, "kubelet", POD, wire)
        self.durations = durations
        self.dead: set[str] = set()
        self.broken_images: set[str] = set()
        """Images that cannot be pulled."""
        self.crashed: set[tuple[str, str]] = set()
        """(pod uid, container) that have just died by themselves."""
        self.lag = 0.0
        """Seconds that a report is under way: what it says is of the pod as it was when it left."""
        self._addresses = 0

    def next_step(self, place: ObjectKey, document: Json) -> Action | None:
        metadata, spec, status = document["metadata"], document["spec"], member(document, "status")
        node = spec.get("nodeName")
        if not node or node in self.dead or self.stored(("", node), NODE) is None:
            return None
        if "deletionTimestamp" in metadata:
            return self._end(place, document)
        if kubelet.has_ended(document):
            return self._wind_down(place, document)
        if not status.get("podIP"):
            return Action("start", self.durations.start, lambda: self._report(place, self._started))
        return self._watch_over(place, document)

    def _wind_down(self, place: ObjectKey, pod: Json) -> Action | None:
        """Stop the running containers of a job's pod whose phase is final."""
        job = pod["spec"].get("restartPolicy", "Always") != "Always"
        if job and any(map(_runs, statuses_of(pod).values())):
            return Action("wind down", self.durations.stop, lambda: self._report(place, self._wound_down))
        return None

    def _watch_over(self, place: ObjectKey, pod: Json) -> Action | None:
        told = statuses_of(pod)
        wrong = [one for one in mappings(pod["spec"]["containers"]) if self._runs_wrong(pod, one, told)]
        if any(_runs(told[one["name"]]) for one in wrong):
            return Action("kill", self.durations.kill, lambda: self._report(place, self._killed))
        if any(not self._obstacle(pod, one) for one in wrong):
            return Action("restart", self.durations.restart, lambda: self._report(place, self._restarted))
        if _exits(pod):
            return Action("exit", self.durations.complete, lambda: self._report(place, self._exited))
        if _is_unobserved(pod):
            return Action("observe", self.durations.readiness, lambda: self._report(place, kubelet.observed))
        if due := ephemeral.next_of(pod, self._unpullable):
            pause = self.durations.start if due == ephemeral.START else self.durations.complete
            return Action(due, pause, lambda: self._report(place, self._looked_into))
        if COMPLETE_ANNOTATION in member(pod, "metadata", "annotations"):
            return Action("complete", self.durations.complete, lambda: self._report(place, kubelet.ended))
        return None

    def _runs_wrong(self, pod: Json, container: Json, told: dict[str, Json]) -> bool:
        status = told[container["name"]]
        if kubelet.is_over(pod, status):
            return False
        crashed = (pod["metadata"]["uid"], container["name"]) in self.crashed
        return crashed or not _runs(status) or status["image"] != container["image"]

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

    def see_config_map(self, place: ObjectKey) -> None:
        """Look again at the pods whose containers may wait for a key of it."""
        for (namespace, name), pod in self.all():
            references = (one for container in mappings(pod["spec"]["containers"]) for one in _key_refs(container))
            if any((namespace, reference["name"]) == place for reference in references):
                self.touch((namespace, name))

    def _end(self, place: ObjectKey, pod: Json) -> Action | None:
        metadata = pod["metadata"]
        if not kubelet.has_ended(pod):
            asked = metadata.get("annotations", {}).get(STOP_ANNOTATION)
            grace = metadata.get("deletionGracePeriodSeconds", 0)
            delay = min(float(asked) if asked else self.durations.stop, grace)
            return Action(f"stop within {grace}", delay, lambda: self._report(place, kubelet.ended))
        if metadata.get("deletionGracePeriodSeconds"):
            return Action("remove", 0, lambda: self._remove(place, metadata["uid"]))
        return None  # only finalizers keep it

    async def _remove(self, place: ObjectKey, uid: str) -> None:
        await self.api.delete_with(POD, *place, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    async def _report(self, place: ObjectKey, change: Callable[[Json, datetime], Json]) -> None:
        pod = self.stored(place)
        if pod is None:
            return
        after = change(pod, self.clock.now())
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": _reported(pod, after)}
        if self.lag:
            await self.clock.sleep(self.lag)
        await self.api.patch(POD, *place, msgspec.json.encode(body), PatchType.STRATEGIC, subresource="status")

    def _started(self, pod: Json, now: datetime) -> Json:
        self._addresses += 1
        address = f"10.0.{self._addresses // 250}.{self._addresses % 250 + 1}"
        where = {"hostIP": "10.64.0.1", "podIP": address, "podIPs": [{"ip": address}]}
        begun = kubelet.started(pod, now, partial(self._obstacle, pod))
        return begun | {"status": begun["status"] | where}

    def _killed(self, pod: Json, now: datetime) -> Json:
        told = statuses_of(pod)
        wrong = [one["name"] for one in mappings(pod["spec"]["containers"]) if self._runs_wrong(pod, one, told)]
        self.crashed.difference_update((pod["metadata"]["uid"], name) for name in wrong)
        return kubelet.stopped(pod, _stop_codes(pod, wrong), now)

    def _exited(self, pod: Json, now: datetime) -> Json:
        """In a job's pod: what is not over by that is started again."""
        return kubelet.exited(pod, _exits(pod), now)

    def _looked_into(self, pod: Json, now: datetime) -> Json:
        """Ephemeral containers went on."""
        return ephemeral.gone_on(kubelet.observed(pod, now), self._unpullable, now)

    def _wound_down(self, pod: Json, now: datetime) -> Json:
        running = [name for name, one in statuses_of(pod).items() if _runs(one)]
        return kubelet.stopped(pod, _stop_codes(pod, running), now)

    def _restarted(self, pod: Json, now: datetime) -> Json:
        told = statuses_of(pod)
        wrong = [one for one in mappings(pod["spec"]["containers"]) if self._runs_wrong(pod, one, told)]
        return kubelet.restarted(pod, [one["name"] for one in wrong if not self._obstacle(pod, one)], now)


def _reported(pod: Json, after: Json) -> Json:
    """Return what a kubelet sends of a pod's status: containers always, other members if they change."""
    held, status = member(pod, "status"), after["status"]
    sent = {key: value for key, value in status.items() if held.get(key) != value or key in _ALWAYS}
    stored = mappings(held.get("conditions"))
    clean = {"reason": None, "message": None}  # may be another writer's, about an earlier state
    changed = [clean | one for one in status["conditions"] if one not in stored]
    return sent | {"conditions": changed} if changed else sent


def _is_unobserved(pod: Json) -> bool:
    """Return whether the conditions do not follow from what runs, or the newest spec was not seen."""
    observed = kubelet.observed(pod, NEVER)
    return any(observed["status"].get(key) != pod["status"].get(key) for key in ("conditions", "observedGeneration"))


def _runs(status: Json) -> bool:
    return "running" in status["state"]


def _stop_codes(pod: Json, names: Iterable[str]) -> dict[str, int]:
    """With which codes these containers end when they are stopped."""
    codes = _codes(pod, STOP_CODES_ANNOTATION)
    return {name: codes.get(name, 0) for name in names}


def _codes(pod: Json, annotation: str) -> dict[str, int]:
    """Exit codes by container."""
    return msgspec.json.decode(member(pod, "metadata", "annotations").get(annotation, "{}"))


def _exits(pod: Json) -> dict[str, int]:
    """With which codes containers that run end by themselves this time."""
    text = member(pod, "metadata", "annotations").get(EXITS_ANNOTATION, "{}")
    named: dict[str, int | list[int]] = msgspec.json.decode(text)
    told = statuses_of(pod)
    return {
        name: codes if isinstance(codes, int) else codes[min(told[name]["restartCount"], len(codes) - 1)]
        for name, codes in named.items()
        if _runs(told[name])
    }


def _key_refs(container: Json) -> list[Json]:
    """Return the keys of ConfigMaps without which the container cannot be created."""
    sources = (member(entry, "valueFrom") for entry in mappings(container.get("env")))
    return [member(source, "configMapKeyRef") for source in sources if "configMapKeyRef" in source]
