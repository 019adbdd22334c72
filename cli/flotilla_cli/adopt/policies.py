"""Keeps OpenKruise stopped by a policy of the apiserver (docs/adr/0013).

The policy rejects what would start OpenKruise again: another holder of Lease kruise-manager, replicas of its manager,
its daemon on nodes.
"""

from flotilla_cli.adopt.openkruise import DAEMON, HOLDER, LEADER, MANAGER, TAKEN
from flotilla_cli.install.policies import validating
from flotilla_cli.install.rbac import NAMESPACE
from flotilla_common.api.documents import Json, JsonValue, is_object

STANDSTILL = "flotilla-openkruise-stands-still"

_ADVICE = "this cluster was taken over by Flotilla; flotilla adopt --undo restores it"
_NOWHERE = f"'{TAKEN}' in object.spec.template.spec.?nodeSelector.orValue({{}})"
_WHOLE = "request.?subResource.orValue('') == ''"
_OURS = "object.spec.template.spec.?serviceAccountName.orValue('').startsWith('flotilla-')"


def standstill() -> list[Json]:
    """Return the policy that keeps OpenKruise stopped, and its binding."""
    names = ((LEADER, ""), (MANAGER, ""), (MANAGER, "/scale"), (DAEMON, ""))
    rules = [
        {
            "apiGroups": [place.resource.group],
            "apiVersions": ["*"],
            "resources": [f"{place.resource.plural}{subresource}"],
            "resourceNames": [place.name],
            "operations": ["CREATE", "UPDATE"],
        }
        for place, subresource in names
    ]
    here = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
    checks = [
        _only("leases", f"object.spec.?holderIdentity.orValue('') in ['', '{HOLDER}']", "no other holder may take it"),
        _only("deployments", f"object.spec.?replicas.orValue(1) == 0 || {_WHOLE} && {_OURS}", "its manager stays at 0"),
        _only("daemonsets", f"{_NOWHERE} || {_OURS}", "its daemon stays off the nodes"),
    ]
    constraints = {"namespaceSelector": here, "resourceRules": rules}
    return validating(STANDSTILL, {"matchConstraints": constraints, "validations": checks, "failurePolicy": "Fail"})


def covers(live: JsonValue, wanted: JsonValue) -> bool:
    """Report whether the live document contains all of the wanted one; the apiserver adds defaults."""
    if is_object(live) and is_object(wanted):
        return all(key in live and covers(live[key], value) for key, value in wanted.items())
    if isinstance(live, list) and isinstance(wanted, list):
        return len(live) == len(wanted) and all(map(covers, live, wanted))
    return live == wanted


def _only(plural: str, expression: str, message: str) -> Json:
    return {
        "expression": f"request.resource.resource != '{plural}' || {expression}",
        "message": f"{message}: {_ADVICE}",
    }
