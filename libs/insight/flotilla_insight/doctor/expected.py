"""Works out which services an installation must have, without I/O.

A local set lists them, and so does the chart. Otherwise a service is expected once it has run (its leases stay), and
the webhook as soon as it is registered at the apiserver: `flotilla run watcher cloneset` alone is no reason for a
finding.
"""

from collections.abc import Mapping, Sequence

from flotilla_common.api.documents import Json, member, strings, text
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from flotilla_common.control.shards import SERVICE_LABEL
from flotilla_insight.doctor.facts import Facts
from flotilla_insight.services import APART, installed, usual

COMPONENT = "app.kubernetes.io/component"
COMPACT = "compact"
BUS, AGENT = "bus", "nodeagent"
ALL = tuple(installed())
"""The services installed with this command, without the agent."""


def services(facts: Facts) -> Mapping[str, str]:
    """Return each expected service, with the evidence for it. Raises NotKnown."""
    if facts.local:
        return dict.fromkeys(facts.local, "it is part of the local cluster")
    deployed = _deployed(facts.workloads.get())
    if deployed:
        return deployed
    found: dict[str, str] = {}
    for lease in facts.leases.get().last:
        meta = member(lease, "metadata")
        service = strings(meta.get("labels")).get(SERVICE_LABEL, "")
        if text(meta.get("namespace")) == facts.namespace and service in ALL:
            found[service] = f"its lease {text(meta.get('name'))} exists"
    if any(map(is_ours, facts.hooks.get())):
        found["webhook"] = "the webhook configurations exist"
    return found


def named(local: Sequence[str] | None, workloads: Sequence[Json], hooks: Sequence[Json]) -> set[str]:
    """Return the services that are certainly expected, without the leases."""
    if local is not None:
        return set(local)
    return set(_deployed(workloads)) | ({"webhook"} if any(map(is_ours, hooks)) else set())


def agents_by_chart(facts: Facts) -> Json | None:
    """Return the chart's DaemonSet, or None."""
    found = facts.workloads.found or ()
    return next((one for one in found if one["kind"] == "DaemonSet" and component(one) == AGENT), None)


def component(workload: Json) -> str:
    """Return the component of the chart that the workload runs."""
    return strings(member(workload, "metadata").get("labels")).get(COMPONENT, "")


def _deployed(workloads: Sequence[Json]) -> dict[str, str]:
    deployments = [one for one in workloads if one["kind"] == "Deployment"]
    found = {component(one): text(member(one, "metadata").get("name")) for one in deployments}
    if COMPACT in found:
        together = dict.fromkeys(usual(), found[COMPACT])
        found = {**together, **{service: name for service, name in found.items() if service in APART}}
    return {service: f"Deployment {name} exists" for service, name in found.items() if service in ALL}


def is_ours(configuration: Json) -> bool:
    """Report whether a webhook configuration is one of Flotilla's, by its name."""
    return text(member(configuration, "metadata").get("name")) in (MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION)
