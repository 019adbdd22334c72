"""NodePodProbe: the last result of each probe of the node."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.views.kindview import KindView, Related, StepChange, Summary
from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe, ProbeState
from flotilla_common.api.meta import metadata_of, rfc3339
from flotilla_common.control.text import pods_word
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import Around

SHOWN = 60
"""Number of characters of a message that are shown."""


def node_pod_probe(raw: bytes) -> Summary:
    """Describe the probes of the node, with their last results."""
    found = msgspec.json.decode(raw, type=NodePodProbe)
    pods = found.spec.pod_probes
    rows = [
        (f"{pod.namespace}/{pod.name}", probe.name, probe.container_name, *told(probe.name, found.results_of(pod.uid)))
        for pod in pods
        for probe in pod.probes
    ]
    headline = f"{len(rows)} probes in {len(pods)} pods of the node"
    return Summary(headline, ("POD", "PROBE", "CONTAINER", "STATE", "SINCE", "MESSAGE"), rows)


def told(name: str, results: Sequence[ProbeState]) -> tuple[str, str, str]:
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


async def _related(_: Api, raw: bytes, now: datetime) -> Related:
    return Related(nodes=[metadata_of(raw).name], basis=Around(now=now))


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


VIEW = KindView(resource=NODE_POD_PROBE, summary=node_pod_probe, related=_related, step_changes=step_changes)
