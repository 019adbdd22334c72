"""The webhook's rights at the apiserver: to maintain its registration and certificates, and to read objects."""

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
from flotilla_common.control.spec import EVENTS, OWN_NAMESPACE, READ, read_rules
from flotilla_common.control.watches import AccessRule
from flotilla_common.settings import Settings
from flotilla_webhook.server.registration import GROUPS


def converted() -> tuple[str, ...]:
    """Return the names of the CRDs whose conversion the webhook maintains."""
    return tuple(sorted(kind.definition_name for kind in catalogue.KINDS if kind.rules().convert))


def access() -> tuple[AccessRule, ...]:
    """Return all rights."""
    return (
        # Deletion protection of our own CRDs lists their objects; others are for users to allow (ADR 12). Also, another
        # PersistentPodState may be about the same workload.
        *(AccessRule(Resource(group, "v1", "*", ""), ("list",)) for group in sorted(GROUPS)),
        AccessRule(CLAIM, ("list",)),  # and of namespaces, with their pods
        # The nodes of the containers of a ContainerRecreateRequest, and those that pods of a PersistentPodState have to
        # go back to.
        AccessRule(NODE, ("get", "list")),
        AccessRule(POD, ("get", "list")),  # these containers, pods named for deletion, and as for claims
        AccessRule(POD_TEMPLATE, ("create",)),  # dry runs: validation of templates, and whether pod rules are in use
        AccessRule(STORAGE_CLASS, ("get", "list")),  # may the volumes of a claim template grow?
        AccessRule(PERSISTENT_POD_STATE, READ),  # namespaces that have one, and the former nodes of their pods
        AccessRule(SIDECAR_SET, READ),  # containers to inject into pods
        AccessRule(WORKLOAD_SPREAD, READ),  # subsets of new pods
        AccessRule(WORKLOAD_SPREAD, ("patch",), "status"),  # places of pods
        AccessRule(POD_UNAVAILABLE_BUDGET, READ),  # pods that must not become unavailable
        AccessRule(POD_UNAVAILABLE_BUDGET, ("patch",), "status"),  # units that requests take
        AccessRule(POD_PROBE_MARKER, READ),  # probes of pods for virtual nodes
        EVENTS,  # refusals of budgets
        *(AccessRule(one, ("get",)) for one in SPREAD),  # owners of pods, and their replicas
        AccessRule(NAMESPACE, ("get",)),  # selected by SidecarSets, or being deleted with all their pods
        AccessRule(REVISION, ("get", "list"), namespace=OWN_NAMESPACE),  # earlier ones of SidecarSets
        AccessRule(CONFIG_MAP, READ, names=(CONFIGURATION,), namespace=OWN_NAMESPACE),  # white lists of administrators
        *read_rules((MUTATING, VALIDATING, CRD)),
        AccessRule(MUTATING, ("update",), names=(MUTATING_CONFIGURATION,)),
        AccessRule(VALIDATING, ("update",), names=(VALIDATING_CONFIGURATION,)),
        AccessRule(CRD, ("patch",), names=converted()),
        # The webhook's own Secret (a right to create has no names), and dry runs of distributed objects.
        *(AccessRule(one, ("create",), namespace=OWN_NAMESPACE) for one in DISTRIBUTED),
        AccessRule(SECRET, (*READ, "update"), names=(Settings().webhook_secret,), namespace=OWN_NAMESPACE),
    )
