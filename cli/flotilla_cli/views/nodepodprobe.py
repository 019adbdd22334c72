"""NodePodProbe: what each probe of the node said last."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_cli.views.kindview import KindView, Related, Summary
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe, ProbeState
from flotilla_common.api.meta import metadata_of, rfc3339
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import Around

SHOWN = 60
"""Characters of a message that are shown."""


def node_pod_probe(raw: bytes) -> Summary:
    """Tell which probes the node runs, and what each of them said last."""
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
    """Return state, since when, and message of a probe, as they are shown."""
    result = next((one for one in results if one.name == name), None)
    if result is None:
        return "-", "", ""
    since = result.last_transition_time
    return result.state, "" if since is None else rfc3339(since), shown(result.message)


def shown(message: str) -> str:
    """Return the first line of the message, and not too much of it."""
    line = message.strip().partition("\n")[0]
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


async def _related(_: Api, raw: bytes, now: datetime) -> Related:
    return Related(nodes=[metadata_of(raw).name], basis=Around(now=now))


VIEW = KindView(resource=NODE_POD_PROBE, summary=node_pod_probe, related=_related)
