"""Objects that act on pods of others: sidecars, spreads, budgets, probes, places and distributions."""

from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION
from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, SIDECAR_SET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_console.model.kinds.fields import conditions, flag, images_of, number, word
from flotilla_console.model.kinds.kind import ConsoleKind
from flotilla_console.model.reading import Numbers, Reading, Verdict


def sidecar_set(spec: Json, status: Json) -> Reading:
    """Read a SidecarSet, which counts the pods that have its sidecars."""
    matched, strategy = number(status, "matchedPods"), member(spec, "updateStrategy")
    updates = text(strategy.get("type"))
    return Reading(
        numbers=Numbers(
            desired=matched,
            total=matched,
            ready=number(status, "readyPods"),
            updated=number(status, "updatedPods"),
            expected=matched,
        ),
        observed=number(status, "observedGeneration"),
        update_revision=text(status.get("latestRevision")),
        partition=word(strategy, "partition"),
        paused=flag(strategy, "paused"),
        on_delete=updates == NOT_UPDATE,
        strategy=updates,
        images=images_of({"spec": spec}),
    )


def spread(spec: Json, status: Json) -> Reading:
    """Read a WorkloadSpread."""
    subsets = mappings(status.get("subsetStatuses"))
    return Reading(
        numbers=Numbers(total=sum(number(one, "replicas") for one in subsets)),
        observed=number(status, "observedGeneration"),
        details=(("Target", target(spec)), *_subsets(subsets)),
    )


def _subsets(subsets: list[Json]) -> tuple[tuple[str, str], ...]:
    return tuple((f"Subset {text(one.get('name'))}", _pods(number(one, "replicas"))) for one in subsets)


def _pods(count: int) -> str:
    return f"{count} {'pod' if count == 1 else 'pods'}"


def target(spec: Json) -> str:
    """Return kind and name of the workload that the object is about."""
    reference = member(spec, "targetRef")
    return f"{text(reference.get('kind'))} {text(reference.get('name'))}".strip()


def budget(spec: Json, status: Json) -> Reading:
    """Read a PodUnavailableBudget."""
    allowed = number(status, "unavailableAllowed")
    return Reading(
        numbers=Numbers(
            desired=number(status, "desiredAvailable"),
            total=number(status, "totalReplicas"),
            ready=number(status, "currentAvailable"),
        ),
        observed=number(status, "observedGeneration"),
        details=tuple(
            (label, value)
            for label, value in (
                ("Target", target(spec)),
                ("maxUnavailable", word(spec, "maxUnavailable")),
                ("minAvailable", word(spec, "minAvailable")),
                ("More may become unavailable", str(allowed)),
            )
            if value
        ),
    )


def marker(spec: Json, status: Json) -> Reading:
    """Read a PodProbeMarker."""
    matched = number(status, "matchedPods")
    names = ", ".join(filter(None, (text(one.get("name")) for one in mappings(spec.get("probes")))))
    return Reading(
        numbers=Numbers(desired=matched, total=matched, ready=matched),
        observed=number(status, "observedGeneration"),
        details=(("Probes", names),),
    )


def pod_state(spec: Json, status: Json) -> Reading:
    """Read a PersistentPodState."""
    places = len(mapping(status.get("podStates")))
    return Reading(
        numbers=Numbers(desired=places, total=places, ready=places),
        observed=number(status, "observedGeneration"),
        details=(("Target", target(spec)),),
    )


def distribution(_: Json, status: Json) -> Reading:
    """Read a ResourceDistribution, which counts namespaces. The bus has only the fact that it changed."""
    failed = number(status, "failed")
    failures = [message or reason for _, value, reason, message in conditions(status) if value == "True"]
    return Reading(
        numbers=Numbers(
            desired=number(status, "desired"),
            total=number(status, "succeeded") + failed,
            ready=number(status, "succeeded"),
            failed=failed,
        ),
        noun="namespace",
        trouble=Verdict(state="blocked", code="Failed", text="; ".join(failures) or f"{failed} namespaces failed")
        if failed
        else None,
    )


KINDS = (
    ConsoleKind(resource=SIDECAR_SET, read=sidecar_set),
    ConsoleKind(resource=WORKLOAD_SPREAD, read=spread, listed=False),
    ConsoleKind(resource=POD_UNAVAILABLE_BUDGET, read=budget, listed=False),
    ConsoleKind(resource=POD_PROBE_MARKER, read=marker, listed=False),
    ConsoleKind(resource=PERSISTENT_POD_STATE, read=pod_state, listed=False),
    ConsoleKind(resource=RESOURCE_DISTRIBUTION, read=distribution, listed=False),
)
