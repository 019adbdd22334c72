"""What follows from the kinds about who may do what: users' access, and the CRDs that the webhook looks after.

Users' own roles for single kinds (editor, viewer) are theirs to make; what comes with an installation is the access of
whoever may view a namespace (install.md §1, §9).
"""

from itertools import groupby

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue

_LEFT_BY_OTHERS = frozenset(
    {
        "daemonsets.apps.kruise.io",
        "persistentpodstates.apps.kruise.io",
        "podunavailablebudgets.policy.kruise.io",
        "resourcedistributions.apps.kruise.io",
        "sidecarsets.apps.kruise.io",
        "statefulsets.apps.kruise.io",
        "uniteddeployments.apps.kruise.io",
        "workloadspreads.apps.kruise.io",
    }
)
"""CRDs with conversion by webhook that an earlier installation may have left, and that we have no kind for yet
(install.md §2). An entry ends when its kind comes."""


def converted() -> list[str]:
    """CRDs whose conversion the webhook keeps right, by name."""
    ours = {kind.definition_name for kind in catalogue.KINDS if kind.rules().convert}
    return sorted(ours | _LEFT_BY_OTHERS)


def view_role() -> Json:
    """Whoever may view a namespace may view what Flotilla runs in it."""
    resources = sorted((kind.resource.group, kind.resource.plural) for kind in catalogue.KINDS)
    rules = [
        {"apiGroups": [group], "resources": [plural for _, plural in found], "verbs": ["get", "list", "watch"]}
        for group, found in groupby(resources, key=lambda resource: resource[0])
    ]
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "aggregate-kruise-view", "labels": labels},
        "rules": rules,
    }
