"""What of ClusterRole kruise-manager-role users have put there.

The role of OpenKruise's manager holds all its rights, and Flotilla binds the role to its services because users extend
it with their own kinds (install.md §1). Services declare what they need themselves; so of the rules only what
OpenKruise does not bring (install.md §9) stays.
"""

from flotilla_common.api.documents import Json, sequence

_KNOWN = {
    "": (
        "pods events configmaps persistentvolumeclaims pods/status pods/resize pods/ephemeralcontainers pods/eviction "
        "secrets namespaces nodes services endpoints persistentvolumes serviceaccounts"
    ),
    "apps": "deployments statefulsets controllerrevisions replicasets daemonsets",
    "batch": "jobs",
    "apps.kruise.io": "*",
    "policy.kruise.io": "*",
    "admissionregistration.k8s.io": "mutatingwebhookconfigurations validatingwebhookconfigurations",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "storage.k8s.io": "storageclasses",
    "coordination.k8s.io": "leases",
    "*": "* */scale",
}


def of_users(rules: list[Json]) -> list[Json]:
    """The rules that OpenKruise does not bring, group by group, each without the resources that it knows."""
    found: list[Json] = []
    for rule in rules:
        for group in sequence(rule.get("apiGroups")):
            resources = [one for one in sequence(rule.get("resources")) if not _is_known(group, one)]
            if resources:
                found.append(rule | {"apiGroups": [group], "resources": resources})
        if "nonResourceURLs" in rule:
            found.append(rule)
    return found


def _is_known(group: str, resource: str) -> bool:
    known = _KNOWN.get(group, "").split()
    main = resource.removesuffix("/status").removesuffix("/finalizers").removesuffix("/scale")
    return known == ["*"] or resource in known or main in known
