"""What the webhook does at the apiserver: it keeps its registration and certificates right, and looks things up."""

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
    """CRDs whose conversion the webhook keeps right, by name."""
    return tuple(sorted(kind.definition_name for kind in catalogue.KINDS if kind.rules().convert))


def access() -> tuple[Access, ...]:
    """All of it."""
    return (
        # Deletion protection of our own CRDs: is anything left of them? Others are for users to allow (ADR 12). And
        # whether another PersistentPodState is about the same workload.
        *(Access(Resource(group, "v1", "*", ""), ("list",)) for group in sorted(GROUPS)),
        Access(CLAIM, ("list",)),  # and of namespaces, with their pods
        # Where the containers run that a ContainerRecreateRequest means, and whether there are nodes that pods of a
        # PersistentPodState have to go back to.
        Access(NODE, ("get", "list")),
        Access(POD, ("get", "list")),  # these containers, pods that are named for deletion, and as for claims
        Access(POD_TEMPLATE, ("create",)),  # dry runs: validation of templates, and whether pod rules are in use
        Access(STORAGE_CLASS, ("get", "list")),  # whether the volumes of a claim template may grow
        Access(PERSISTENT_POD_STATE, READ),  # which namespaces have one, and where their pods were
        Access(SIDECAR_SET, READ),  # what is injected into pods
        Access(WORKLOAD_SPREAD, READ),  # where pods go
        Access(WORKLOAD_SPREAD, ("patch",), "status"),  # who has which place
        Access(POD_UNAVAILABLE_BUDGET, READ),  # which pods must not become unavailable
        Access(POD_UNAVAILABLE_BUDGET, ("patch",), "status"),  # who takes how much of it
        Access(POD_PROBE_MARKER, READ),  # which probes pods for virtual nodes carry
        EVENTS,  # what a budget refuses
        *(Access(one, ("get",)) for one in SPREAD),  # whose pods these are, and how many there are to be
        Access(NAMESPACE, ("get",)),  # whose labels a SidecarSet may select, or that is being deleted with all its pods
        Access(REVISION, ("get", "list"), namespace=OWN_NAMESPACE),  # earlier ones of SidecarSets
        Access(CONFIG_MAP, READ, names=(CONFIGURATION,), namespace=OWN_NAMESPACE),  # white lists of administrators
        *reading((MUTATING, VALIDATING, CRD)),
        Access(MUTATING, ("update",), names=(MUTATING_CONFIGURATION,)),
        Access(VALIDATING, ("update",), names=(VALIDATING_CONFIGURATION,)),
        Access(CRD, ("patch",), names=converted()),
        # The webhook's own Secret (a right to create knows no names), and dry runs of what is distributed.
        *(Access(one, ("create",), namespace=OWN_NAMESPACE) for one in DISTRIBUTED),
        Access(SECRET, (*READ, "update"), names=(Settings().webhook_secret,), namespace=OWN_NAMESPACE),
    )
