"""ResourceDistribution: the failures of its copies. The content of the distributed resource is never shown."""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION, ResourceDistribution, Targets
from flotilla_common.api.selectors import Selector
from flotilla_common.control.text import named
from flotilla_insight.views.kindview import KindView, Summary


def resource_distribution(raw: bytes) -> Summary:
    """Describe source, targets, the number of namespaces that have it, and failures."""
    found = msgspec.json.decode(raw, type=ResourceDistribution)
    status = found.status
    rows = [
        (condition.type, named(condition.failed_namespaces), condition.reason)
        for condition in status.conditions
        if condition.status == "True"
    ]
    headline = f"{_source(found)} to {_targets(found.spec.targets)}: {status.succeeded} of {status.desired} have it"
    return Summary(headline, ("FAILURE", "NAMESPACES", "REASON"), rows)


def _source(found: ResourceDistribution) -> str:
    try:
        return f"{found.source.resource.kind} {found.source.name}"
    except ValueError:
        return "nothing that can be distributed"


def _targets(targets: Targets) -> str:
    excluded = targets.excluded_namespaces.names
    but = f" but {named(excluded)}" if excluded else ""
    return (" and ".join(_chosen(targets)) or "no namespaces") + but


def _chosen(targets: Targets) -> Iterator[str]:
    if targets.all_namespaces:
        yield "all namespaces"
        return
    if included := targets.included_namespaces.names:
        yield f"namespaces {named(included)}"
    selector = targets.namespace_selector
    if selector.match_labels or selector.match_expressions:
        yield f"namespaces with {Selector(selector.match_labels, tuple(selector.match_expressions))}"


def _progress(_: Json, status: Json) -> str:
    desired, succeeded = status.get("desired", 0), status.get("succeeded", 0)
    return f"{succeeded} of {desired} namespaces have their copy" if succeeded < desired else ""


VIEWS = (
    KindView(
        resource=RESOURCE_DISTRIBUTION,
        summary=resource_distribution,
        progress=_progress,
        secret_fields=frozenset({"resource"}),
    ),
)
