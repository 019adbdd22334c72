"""Step 8 of the pod webhook: writes the probes of PodProbeMarkers into a pod's annotations, for virtual nodes.

See podprobemarker.md §7, webhooks.md §7.4. The node of a new pod is not known, so every pod that matches gets the
annotations. Without the gate the step does nothing. The PodProbeMarkers of the namespace are listed at the apiserver
for each such pod: the annotations are written once, so a PodProbeMarker that a stale watch lacks would be missing for
good.
"""

from collections.abc import Iterable, Sequence

import msgspec
import structlog

from flotilla_common.api.admission.review import Request
from flotilla_common.api.documents import Json, ensured, mappings, member, strings, text, without_nulls
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.podprobemarker.types import MARKERS, POD_PROBE_MARKER, PROBES, PodProbeMarker
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.podrules import PodRule, labels_match, quoted
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_webhook.cache import Cache, read_all
from flotilla_webhook.pods.admission import AdmissionStep

GATE = "EnablePodProbeMarkerOnServerless"

_NAMED = f"has(object.metadata.annotations) && {quoted(MARKERS)} in object.metadata.annotations"
"""The condition that a pod names its own PodProbeMarkers."""

_log = structlog.get_logger()


class ServerlessProbes:
    """The step, and the rules that PodProbeMarkers require."""

    def __init__(self, api: Api, gates: Gates) -> None:
        self._api = api
        self._on = gates.on(GATE) and gates.on("PodProbeMarkerGate")
        self._cache = Cache(POD_PROBE_MARKER, _rule_of, lambda rule: rule)

    @property
    def caches(self) -> Sequence[Cache[PodRule]]:
        """Return the caches to watch; none without the gate."""
        return (self._cache,) if self._on else ()

    def step(self) -> AdmissionStep:
        """Return the step; idle without the gate."""
        return AdmissionStep("PodProbeMarker", self.rules, self.change, lambda: self._cache.known or not self._on)

    async def rules(self) -> list[PodRule]:
        """Return the rules of new pods that some PodProbeMarker selects."""
        return self._cache.values() if self._on else []

    async def rules_of(self, document: Json, namespace: str) -> list[PodRule]:
        """Return the rules that a PodProbeMarker about to be stored requires. Raises ValueError if unreadable."""
        if not self._on:
            return []
        marker = msgspec.json.decode(msgspec.json.encode(without_nulls(document)), type=PodProbeMarker)
        rule = rule_for(marker, namespace)
        return [] if rule is None else [rule]

    async def change(self, pod: Json, request: Request) -> None:
        """Set both annotations, if there is anything to probe."""
        if not self._on:
            return
        # If the LIST fails, the pod is created without the annotations.
        try:
            stored = await read_all(self._api, POD_PROBE_MARKER, request.namespace)
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot list PodProbeMarkers", namespace=request.namespace, error=str(failure))
            return
        annotate_probes(pod, [msgspec.json.decode(body, type=Json) for body in stored])


def _rule_of(item: msgspec.Raw) -> PodRule | None:
    try:
        marker = msgspec.json.decode(item, type=PodProbeMarker)
    except msgspec.MsgspecError:
        return None
    return rule_for(marker, marker.metadata.namespace)


def rule_for(marker: PodProbeMarker, namespace: str) -> PodRule | None:
    """Return the rule of the pods that the PodProbeMarker selects, or that name PodProbeMarkers themselves.

    Returns None if its selector selects no pod.
    """
    if marker.query is None:
        return None
    selected = labels_match(marker.spec.selector or LabelSelector())
    return PodRule("PodProbeMarkers", f"({selected}) || ({_NAMED})", namespace)


def annotate_probes(pod: Json, markers: Iterable[Json]) -> None:
    """Write the probes that the pod gets into its annotations.

    Of probes with the same name in a container, or the same condition type, the first is kept.
    """
    containers = _containers(pod)
    taken: list[Json] = []
    names: list[str] = []
    for marker in _of_pod(pod, markers):
        before = len(taken)
        for probe in mappings(member(marker, "spec").get("probes")):
            if probe.get("containerName") in containers and not any(_clashes(probe, one) for one in taken):
                taken += [_without_policy(probe)] if probe.get("podConditionType") else []
        if len(taken) > before:
            names.append(text(member(marker, "metadata").get("name")))
    if taken:
        annotations = ensured(ensured(pod, "metadata"), "annotations")
        annotations[PROBES] = msgspec.json.encode(taken).decode()
        annotations[MARKERS] = ",".join(sorted(names))


def _of_pod(pod: Json, markers: Iterable[Json]) -> list[Json]:
    """Return the PodProbeMarkers that the pod names, or else those that select it, without those being deleted."""
    metadata = member(pod, "metadata")
    named = strings(metadata.get("annotations")).get(MARKERS)
    wanted = None if named is None else {name.strip() for name in named.split(",")}
    labels = strings(metadata.get("labels"))
    return [marker for marker in markers if _is_for(marker, wanted, labels)]


def _is_for(marker: Json, wanted: set[str] | None, labels: dict[str, str]) -> bool:
    metadata = member(marker, "metadata")
    if metadata.get("deletionTimestamp") is not None:
        return False
    if wanted is not None:
        return metadata.get("name") in wanted
    try:
        found = msgspec.json.decode(msgspec.json.encode(without_nulls(marker)), type=PodProbeMarker)
    except msgspec.MsgspecError:
        return False
    return found.selects(labels)


def _containers(pod: Json) -> set[str]:
    """Return the names of the containers that run concurrently: all but init containers that end."""
    spec = member(pod, "spec")
    sidecars = [one for one in mappings(spec.get("initContainers")) if one.get("restartPolicy") == "Always"]
    return {text(one.get("name")) for one in (*mappings(spec.get("containers")), *sidecars)}


def _clashes(probe: Json, other: Json) -> bool:
    same_place = all(probe.get(key) == other.get(key) for key in ("containerName", "name"))
    return same_place or probe.get("podConditionType") == other.get("podConditionType")


def _without_policy(probe: Json) -> Json:
    return {key: probe[key] for key in ("name", "containerName", "probe", "podConditionType") if key in probe}
