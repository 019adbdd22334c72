"""Checks RBAC: each service has the rights that it uses, and no more.

The rights that it uses are those of the manifests of `flotilla install`. Its actual rights follow from all roles bound
to its account, as the apiserver adds them up.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

import msgspec

from flotilla_common.api.documents import Json, mappings, member, sequence, text
from flotilla_insight.doctor.checks.apiserver import APPLY
from flotilla_insight.doctor.expected import services
from flotilla_insight.doctor.facts import Facts, Rights
from flotilla_insight.doctor.finding import Finding, Looked, broken, warning
from flotilla_insight.installation import rbac
from flotilla_insight.installation.manifests import OWN_LEASES
from flotilla_insight.installation.objects import name_of, namespace_of
from flotilla_insight.services import APART

_USERS_OWN = frozenset({"kruise-manager-role", rbac.CRD_PROTECTION, rbac.CONSOLE_IMPERSONATION})
"""Roles that users extend."""

_EVERYBODY = frozenset({"system:authenticated", "system:serviceaccounts"})
ANY = "*"


class Right(msgspec.Struct, frozen=True, order=True):
    """One verb on one resource. `name` and `namespace` are empty for all."""

    namespace: str
    group: str
    resource: str
    name: str
    verb: str

    def __str__(self) -> str:
        what = f"{self.resource}{f'.{self.group}' if self.group else ''}"
        which = f" {self.name}" if self.name else ""
        return f"{self.verb} {what}{which}{f' in {self.namespace}' if self.namespace else ''}"


def check(facts: Facts) -> Looked:
    """Check each service's account."""
    live = facts.rights.get()
    for service in services(facts):
        account = _account(facts, service)
        granted = _granted(live, account, facts.namespace)
        needed = [right for right in _used(facts, service) if right not in _asked_for()]
        lacking = sorted(right for right in needed if not any(_covers(one, right) for one in granted))
        if lacking:
            said = f"it may not {_some(lacking)}"
            advice = f"its role {rbac.account(service)} or its binding was changed: {APPLY}"
            yield broken("RightsLacking", f"ServiceAccount {account}", said, advice)
        yield from _too_many(facts, service, account, granted)
    if facts.policies.found is not None and facts.policies.found and OWN_LEASES not in facts.policies.found:
        said = f"there is no policy {OWN_LEASES}: one service could write another's leases"
        yield warning("LeasePolicyMissing", "leases", said, APPLY)
    rights = sum(len(_used(facts, service)) for service in services(facts))
    return f"{rights} rights of {len(services(facts))} ServiceAccounts"


def _too_many(facts: Facts, service: str, account: str, granted: Collection[Right]) -> Iterator[Finding]:
    """Report rights of roles bound to the account by its name, beyond what the services in it use."""
    shared = [one for one in services(facts) if one not in APART]
    sharing = shared if account == rbac.account(rbac.COMPACT) else (service,)
    used = [right for one in sharing for right in _used(facts, one)]
    named = _granted(facts.rights.get(), account, facts.namespace, by_name=True)
    beyond = sorted(right for right in named if not any(_covers(one, right) for one in used))
    if beyond and service == next(iter(sharing)):
        said = f"it may {_some(beyond)}, which it does not need"
        advice = f"a role was changed, or another one bound to it: {APPLY}; your own rights go to kruise-manager-role"
        yield warning("RightsTooBroad", f"ServiceAccount {account}", said, advice)


def _used(facts: Facts, service: str) -> list[Right]:
    """Return the rights that the roles of an installation grant."""
    moved = {rbac.NAMESPACE: facts.namespace}
    installed = _installed().get(service, ())
    return [msgspec.structs.replace(one, namespace=moved.get(one.namespace, one.namespace)) for one in installed]


@cache
def _installed() -> Mapping[str, Sequence[Right]]:
    """Return the rights of all services in the default namespace."""
    wanted = rbac.objects()
    made = Rights([one for one in wanted if "rules" in one], [one for one in wanted if "roleRef" in one])
    return {one: sorted(_granted(made, rbac.account(one), rbac.NAMESPACE)) for one in rbac.services()}


@cache
def _asked_for() -> frozenset[Right]:
    """Return the rights that an installation may do without: those to distribute Secrets."""
    role = next(one for one in rbac.objects() if "rules" in one and name_of(one) == rbac.DISTRIBUTION)
    return frozenset(_rights(role["rules"], ""))


def _account(facts: Facts, service: str) -> str:
    """Return the account of a service: in the compact profile all share one."""
    if service in APART:
        return rbac.account(service)
    compact = rbac.account(rbac.COMPACT)
    names = {name_of(one) for one in facts.workloads.found or ()}
    return compact if compact in names else rbac.account(service)


def _granted(live: Rights, account: str, namespace: str, *, by_name: bool = False) -> set[Right]:
    """Return the rights that the bindings grant to the account.

    `by_name`: only bindings that name it, without roles that users extend.
    """
    roles = {(text(one.get("kind")), namespace_of(one), name_of(one)): one for one in live.roles}
    found: set[Right] = set()
    for binding in live.bindings:
        where, reference = namespace_of(binding), member(binding, "roleRef")
        kind, name = text(reference.get("kind")), text(reference.get("name"))
        if not _is_bound(binding, account, namespace, by_name=by_name) or (by_name and name in _USERS_OWN):
            continue
        role = roles.get((kind, where if kind == "Role" else "", name), {})
        found |= set(_rights(mappings(role.get("rules")), where))
    return found


def _is_bound(binding: Json, account: str, namespace: str, *, by_name: bool) -> bool:
    for subject in mappings(binding.get("subjects")):
        kind, name = subject.get("kind"), text(subject.get("name"))
        if kind == "ServiceAccount" and (name, text(subject.get("namespace"))) == (account, namespace):
            return True
        if kind == "User" and name == f"system:serviceaccount:{namespace}:{account}":
            return True
        groups = _EVERYBODY | {f"system:serviceaccounts:{namespace}"}
        if kind == "Group" and not by_name and name in groups:
            return True
    return False


def _rights(rules: Sequence[Json], namespace: str) -> Iterator[Right]:
    for rule in rules:
        for group in sequence(rule.get("apiGroups")):
            for resource in sequence(rule.get("resources")):
                for name in sequence(rule.get("resourceNames")) or [""]:
                    for verb in sequence(rule.get("verbs")):
                        yield Right(namespace, group, resource, name, verb)


def _covers(given: Right, wanted: Right) -> bool:
    return (
        given.namespace in ("", wanted.namespace)
        and given.group in (ANY, wanted.group)
        and given.verb in (ANY, wanted.verb)
        and given.name in ("", wanted.name)
        and given.resource in (ANY, wanted.resource)
    )


def _some(rights: Sequence[Right]) -> str:
    """Format rights, the verbs of a resource together."""
    verbs: Mapping[Right, list[str]] = defaultdict(list)
    for right in rights:
        verbs[msgspec.structs.replace(right, verb="")].append(right.verb)
    said = [str(msgspec.structs.replace(right, verb=", ".join(found))) for right, found in verbs.items()]
    return "; ".join(said[:4]) + (f"; and {len(said) - 4} more" if len(said) > 4 else "")
