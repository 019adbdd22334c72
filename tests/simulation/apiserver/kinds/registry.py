"""The resources that the simulated apiserver serves."""

from flotilla_common.api.resources import (
    BUILT_IN_STATEFUL_SET,
    CLAIM,
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    EVENT,
    JOB,
    LEASE,
    MUTATING,
    NAMESPACE,
    NODE,
    POD,
    POD_TEMPLATE,
    REPLICA_SET,
    REVISION,
    SECRET,
    STORAGE_CLASS,
    VALIDATING,
    Resource,
)
from tests.simulation.apiserver.kinds.apps import AppsKind
from tests.simulation.apiserver.kinds.base import Kind
from tests.simulation.apiserver.kinds.batch import JobKind
from tests.simulation.apiserver.kinds.core import (
    ClaimKind,
    EventKind,
    LeaseKind,
    NamespaceKind,
    NodeKind,
    Plain,
    QuotaKind,
    RevisionKind,
    TemplateKind,
)
from tests.simulation.apiserver.kinds.pods import PodKind

QUOTA = Resource("", "v1", "resourcequotas", "ResourceQuota")
VOLUME = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)


def builtin() -> list[Kind]:
    """Return the built-in kinds that Flotilla or its users touch."""
    return [
        PodKind(POD),
        NodeKind(NODE),
        NamespaceKind(NAMESPACE),
        ClaimKind(CLAIM),
        RevisionKind(REVISION),
        JobKind(JOB),
        *map(AppsKind, (BUILT_IN_STATEFUL_SET, DEPLOYMENT, REPLICA_SET)),
        LeaseKind(LEASE),
        EventKind(EVENT),
        TemplateKind(POD_TEMPLATE),
        QuotaKind(QUOTA),
        Kind(VOLUME),
        Kind(CRD),
        *(Plain(resource) for resource in (SECRET, CONFIG_MAP, STORAGE_CLASS, MUTATING, VALIDATING)),
    ]
