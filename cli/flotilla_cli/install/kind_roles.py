"""What users may do with our kinds.

Users' own roles for single kinds (editor, viewer) are theirs to make; what comes with an installation is the access of
whoever may view a namespace (install.md §1, §9).
"""

from itertools import groupby

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue


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
