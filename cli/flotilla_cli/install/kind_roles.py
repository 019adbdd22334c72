"""What users may do with our kinds (install.md §1, §9).

Whoever may view a namespace may view what Flotilla runs in it, but for what Secrets are in. Two roles per kind, for
editors and viewers, are bound to nobody: they are for whoever gives rights to users.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind

VIEW = ("get", "list", "watch")
EDIT = ("create", "delete", "get", "list", "patch", "update", "watch")


def objects() -> list[Json]:
    """All of these roles."""
    return [view_role(), *(role for kind in catalogue.KINDS for role in roles_of(kind))]


def view_role() -> Json:
    """Make the part of the built-in role `view`. That shows no Secrets: so it shows no kind that holds them either."""
    resources = sorted((kind.resource.group, kind.resource.plural) for kind in catalogue.KINDS if not kind.confidential)
    rules = [
        _rule(group, [plural for _, plural in found], VIEW)
        for group, found in groupby(resources, key=lambda resource: resource[0])
    ]
    role = _role("aggregate-kruise-view", rules)
    role["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    return role


def roles_of(kind: Kind) -> Iterator[Json]:
    """The editors' and the viewers' of one kind."""
    group, plural = kind.resource.group, kind.resource.plural
    for who, verbs, scaling in (("editor", EDIT, ("get", "patch", "update")), ("viewer", VIEW, ("get",))):
        rules = [_rule(group, [plural], verbs), _rule(group, [f"{plural}/status"], ("get",))]
        if kind.scale:
            rules.append(_rule(group, [f"{plural}/scale"], scaling))
        yield _role(f"kruise-{kind.singular}-{who}-role", rules)


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _role(name: str, rules: Sequence[Json]) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": list(rules),
    }
