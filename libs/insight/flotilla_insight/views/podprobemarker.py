"""PodProbeMarker and NodePodProbe: probes of pods, and the last result of each."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.errors import ApiError, found_or_none
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.kinds.nodepodprobe.types import (
    NODE_POD_PROBE,
    NodePodProbe,
    PodProbe,
    ProbeSpec,
    ProbeState,
    split,
)
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER, ContainerProbe, PodProbeMarker
from flotilla_common.api.meta import metadata_of, rfc3339
from flotilla_common.control.text import pods_word
from flotilla_common.kube.interface import Api
from flotilla_insight.views.kindview import KindView, PodQuery, PodQuestion, ReasonSource, StepChange, Summary
from flotilla_insight.views.related import node_itself

MOST_PODS = 20
"""Number of pods whose results `explain` lists."""

SHOWN = 60
"""Number of characters of a message that are shown."""


def pod_probe_marker(raw: bytes) -> Summary:
    """Describe how many pods are probed, and what each probe does with its result."""
    found = msgspec.json.decode(raw, type=PodProbeMarker)
    status = found.status
    current = status.observed_generation == found.metadata.generation
    late = "" if current else ", the latest change is being rolled out"
    headline = f"{pods_word(status.matched_pods)} probed{late}"
    rows = [
        (probe.name, probe.container_name, _how(probe), probe.pod_condition_type or "-", _marks(probe))
        for probe in found.spec.probes
    ]
    return Summary(headline, ("PROBE", "CONTAINER", "BY", "CONDITION", "MARKS"), rows)


def _how(probe: ContainerProbe) -> str:
    try:
        spec = read_json(probe.probe, ProbeSpec)
    except ValueError:
        return "-"
    handlers = {"exec": spec.exec, "http": spec.http_get, "tcp": spec.tcp_socket}
    kind = next((name for name, handler in handlers.items() if handler is not None), "-")
    return f"{kind} every {max(spec.period_seconds, 1)}s"


def _marks(probe: ContainerProbe) -> str:
    return "; ".join(
        f"{policy.state}: {', '.join(f'{key}={value}' for key, value in (policy.labels | policy.annotations).items())}"
        for policy in probe.marker_policy
    )


def _pods(raw: bytes) -> PodQuery | None:
    """Return the query for the pods that it selects, of any owner."""
    found = msgspec.json.decode(raw, type=PodProbeMarker)
    selector = found.spec.selector
    return None if selector is None else PodQuery(selector=selector, keep=lambda pod: pod.active)


async def _remarks(api: Api, raw: bytes) -> Sequence[str]:
    """Return the last result of each probe on each pod."""
    meta = metadata_of(raw)
    lines = [
        f"{pod.name}: {line}"
        for found in await _node_pod_probes(api)
        for pod, line in _lines(found)
        if pod.namespace == meta.namespace and split(line)[0] == meta.name
    ]
    more = [f"and {len(lines) - MOST_PODS} more"] if len(lines) > MOST_PODS else []
    return [*sorted(lines)[:MOST_PODS], *more]


async def _reason_sources(api: Api, raw: bytes) -> Sequence[ReasonSource]:
    """Return the NodePodProbes with its probes: their plans write the results to pods."""
    meta = metadata_of(raw)
    nodes: list[ReasonSource] = []
    for found in await _node_pod_probes(api):
        pods = (pod for pod in found.spec.pod_probes if pod.namespace == meta.namespace)
        mine = frozenset(f"{pod.namespace}/{pod.name}" for pod in pods if _is_probed_by(pod, meta.name))
        nodes += [ReasonSource(resource=NODE_POD_PROBE, name=found.metadata.name, objects=mine)] if mine else []
    return nodes


def _is_probed_by(pod: PodProbe, marker: str) -> bool:
    return any(split(probe.name)[0] == marker for probe in pod.probes)


async def _node_pod_probes(api: Api) -> Sequence[NodePodProbe]:
    """Return all NodePodProbes that can be decoded; empty if the user may not read them."""
    try:
        page = await api.list(NODE_POD_PROBE)
    except ApiError as failure:
        if failure.code not in (401, 403, 404):
            raise
        return ()
    found: list[NodePodProbe] = []
    for item in page.items:
        with contextlib.suppress(msgspec.MsgspecError):  # `explain nodepodprobe` reports that it cannot be decoded
            found.append(msgspec.json.decode(item, type=NodePodProbe))
    return found


def _lines(found: NodePodProbe) -> Iterator[tuple[PodProbe, str]]:
    for pod in found.spec.pod_probes:
        for probe in pod.probes:
            yield pod, _said(probe.name, last_result(probe.name, found.results_of(pod.uid)))


def _said(name: str, result: tuple[str, str, str]) -> str:
    state, since, message = result
    if state == "-":
        return f"{name} has no result yet"
    return f"{name} {state}" + (f" since {since}" if since else "") + (f": {message}" if message else "")


async def _about_pod(about: PodQuestion) -> Sequence[str]:
    """Return the last result of each of the pod's probes, and why the pod does not show it."""
    node, meta = about.pod.spec.node_name, about.pod.metadata
    raw = await found_or_none(about.api.get(NODE_POD_PROBE, "", node)) if node else None
    try:
        found = None if raw is None else msgspec.json.decode(raw, type=NodePodProbe)
    except msgspec.MsgspecError:
        return []
    lines = [f"probe {line}" for pod, line in _lines(found) if pod.uid == meta.uid] if found is not None else []
    why = (await about.whys(NODE_POD_PROBE, [node])).get(node) if lines else None
    place = f"{meta.namespace}/{meta.name}"
    return lines + [one.message for one in (why.reasons if why else ()) if place in one.objects and not one.symptom]


def node_pod_probe(raw: bytes) -> Summary:
    """Describe the probes of the node, with their last results."""
    found = msgspec.json.decode(raw, type=NodePodProbe)
    pods = found.spec.pod_probes
    rows = [
        (
            f"{pod.namespace}/{pod.name}",
            probe.name,
            probe.container_name,
            *last_result(probe.name, found.results_of(pod.uid)),
        )
        for pod in pods
        for probe in pod.probes
    ]
    headline = f"{len(rows)} probes in {len(pods)} pods of the node"
    return Summary(headline, ("POD", "PROBE", "CONTAINER", "STATE", "SINCE", "MESSAGE"), rows)


def last_result(name: str, results: Sequence[ProbeState]) -> tuple[str, str, str]:
    """Return state, time and message of a probe's last result, as they are shown."""
    result = next((one for one in results if one.name == name), None)
    if result is None:
        return "-", "", ""
    since = result.last_transition_time
    return result.state, "" if since is None else rfc3339(since), shown(result.message)


def shown(message: str) -> str:
    """Return the first line of the message, shortened."""
    line = message.strip().partition("\n")[0]
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def step_changes(before: Json, after: Json) -> Sequence[StepChange]:
    """Return the number of pods with each probe, before a write and afterwards."""
    was, now = _pods_of_probes(before), _pods_of_probes(after)
    return [
        _change(name, was.get(name, {}), now.get(name, {})) for name in {**was, **now} if was.get(name) != now.get(name)
    ]


def _change(name: str, was: Mapping[str, Json], now: Mapping[str, Json]) -> StepChange:
    old, new = (pods_word(len(pods)) if pods else None for pods in (was, now))
    same_pods = was.keys() == now.keys()
    return StepChange(f"probe {name}", old, f"{new}, with another spec" if same_pods else new)


def _pods_of_probes(document: Json) -> dict[str, dict[str, Json]]:
    """Return each probe by namespace and name, with its specs by the uid of the pod."""
    found: dict[str, dict[str, Json]] = {}
    for pod in mappings(member(document, "spec").get("podProbes")):
        for probe in mappings(pod.get("probes")):
            name = f"{text(pod.get('namespace'))}/{text(probe.get('name'))}"
            found.setdefault(name, {})[text(pod.get("uid"))] = probe
    return found


VIEWS = (
    KindView(
        resource=POD_PROBE_MARKER,
        summary=pod_probe_marker,
        pods=_pods,
        remarks=_remarks,
        reason_sources=_reason_sources,
        about_pod=_about_pod,
        carried_out_by=(NODE_POD_PROBE,),
    ),
    KindView(resource=NODE_POD_PROBE, summary=node_pod_probe, related=node_itself, step_changes=step_changes),
)
