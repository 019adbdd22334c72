"""The webhook's rights at the apiserver: to maintain its registration and certificates, and to read objects."""

from flotilla_common.access import EVENTS, OWN_NAMESPACE, READ, reading
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.resourcedistribution.types import DISTRIBUTED
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.workloadspread.targets import SPREAD
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.resources import (
    CLAIM,
    CONFIG_MAP,
    CRD,
    MUTATING,
    NAMESPACE,
    NODE,
    POD,
    POD_TEMPLATE,
    REVISION,
    SECRET,
    STORAGE_CLASS,
    VALIDATING,
    Resource,
)
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from flotilla_common.control.watches import Access
from flotilla_common.settings import Settings
from flotilla_webhook.registration import GROUPS


def converted() -> tuple[str, ...]:
    """Return the names of the CRDs whose conversion the webhook maintains."""
    return tuple(sorted(kind.definition_name for kind in catalogue.KINDS if kind.rules().convert))


def access() -> tuple[Access, ...]:
    """Return all rights."""
    return (
        # Deletion protection of our own CRDs lists their objects; others are for users to allow (ADR 12). Also, another
        # PersistentPodState may be about the same workload.
        *(Access(Resource(group, "v1", "*", ""), ("list",)) for group in sorted(GROUPS)),
        Access(CLAIM, ("list",)),  # and of namespaces, with their pods
        # The nodes of the containers of a ContainerRecreateRequest, and those that pods of a PersistentPodState have to
        # go back to.
        Access(NODE, ("get", "list")),
        Access(POD, ("get", "list")),  # these containers, pods named for deletion, and as for claims
        Access(POD_TEMPLATE, ("create",)),  # dry runs: validation of templates, and whether pod rules are in use
        Access(STORAGE_CLASS, ("get", "list")),  # may the volumes of a claim template grow?
        Access(PERSISTENT_POD_STATE, READ),  # namespaces that have one, and the former nodes of their pods
        Access(SIDECAR_SET, READ),  # containers to inject into pods
        Access(WORKLOAD_SPREAD, READ),  # subsets of new pods
        Access(WORKLOAD_SPREAD, ("patch",), "status"),  # places of pods
        Access(POD_UNAVAILABLE_BUDGET, READ),  # pods that must not become unavailable
        Access(POD_UNAVAILABLE_BUDGET, ("patch",), "status"),  # units that requests take
        Access(POD_PROBE_MARKER, READ),  # probes of pods for virtual nodes
        EVENTS,  # refusals of budgets
        *(Access(one, ("get",)) for one in SPREAD),  # owners of pods, and their replicas
        Access(NAMESPACE, ("get",)),  # selected by SidecarSets, or being deleted with all their pods
        Access(REVISION, ("get", "list"), namespace=OWN_NAMESPACE),  # earlier ones of SidecarSets
        Access(CONFIG_MAP, READ, names=(CONFIGURATION,), namespace=OWN_NAMESPACE),  # white lists of administrators
        *reading((MUTATING, VALIDATING, CRD)),
        Access(MUTATING, ("update",), names=(MUTATING_CONFIGURATION,)),
        Access(VALIDATING, ("update",), names=(VALIDATING_CONFIGURATION,)),
        Access(CRD, ("patch",), names=converted()),
        # The webhook's own Secret (a right to create has no names), and dry runs of distributed objects.
        *(Access(one, ("create",), namespace=OWN_NAMESPACE) for one in DISTRIBUTED),
        Access(SECRET, (*READ, "update"), names=(Settings().webhook_secret,), namespace=OWN_NAMESPACE),
    )
