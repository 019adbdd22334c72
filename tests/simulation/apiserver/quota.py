"""ResourceQuota: creates beyond a namespace's limits are rejected.

Use is counted at the moment of the create. The real quota controller frees room a little later than objects go; tests
of that let the quota's limits lag.
"""

from decimal import Decimal

from flotilla_common.api import quantity
from flotilla_common.api.documents import mappings, member
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.errors import forbidden
from tests.simulation.apiserver.kinds.base import Kind
from tests.simulation.apiserver.kinds.registry import QUOTA
from tests.simulation.apiserver.store import Store


def check(store: Store, kind: Kind, namespace: str, document: Json) -> None:
    """Check that the namespace's quotas have room for the object. Raises ApiError 403."""
    for (space, name), stored in store.table(QUOTA).objects.items():
        if space == namespace:
            _check_one(store, kind, namespace, document, name, member(stored.document, "spec", "hard"))


def _check_one(store: Store, kind: Kind, namespace: str, document: Json, name: str, hard: Json) -> None:
    if missing := _unsaid(kind, document, hard):
        raise forbidden(kind.where, document["metadata"]["name"], f"failed quota: {name}: must specify {missing}")
    asked = {key: value for key, value in _use(kind, document).items() if key in hard}
    if not asked:
        return
    used = dict.fromkeys(asked, Decimal(0))
    for (space, _), stored in store.table(kind.resource).objects.items():
        if space == namespace:
            for key, value in _use(kind, stored.document).items():
                if key in used:
                    used[key] += value
    over = [key for key in sorted(asked) if asked[key] + used[key] > quantity.parse(hard[key])]
    if over:
        told = [
            f"{title}: {','.join(f'{key}={quantity.canonical(str(values[key]))}' for key in over)}"
            for title, values in (("requested", asked), ("used", used), ("limited", hard))
        ]
        raise forbidden(kind.where, document["metadata"]["name"], f"exceeded quota: {name}, {', '.join(told)}")


def _unsaid(kind: Kind, document: Json, hard: Json) -> str:
    """Return what a container has to specify under the quota (`requests.cpu for: main`); empty for nothing."""
    if kind.resource != POD:
        return ""
    found: list[str] = []
    for key in sorted(hard):
        side, _, name = key.partition(".")
        if side in ("requests", "limits") and name in ("cpu", "memory"):
            containers = mappings(document["spec"].get("containers"))
            silent = sorted(one["name"] for one in containers if name not in member(one, "resources", side))
            found += [f"{key} for: {','.join(silent)}"] if silent else []
    return "; ".join(found)


def _use(kind: Kind, document: Json) -> dict[str, Decimal]:
    """Return how much of each limited resource one object uses."""
    resource = kind.resource
    use = {f"count/{kind.where}": Decimal(1)}
    if resource == POD:
        use |= _pod_use(document)
    elif resource == CLAIM:
        use["persistentvolumeclaims"] = Decimal(1)
        storage = member(document, "spec", "resources", "requests").get("storage")
        use["requests.storage"] = quantity.parse(storage or "0")
    elif not resource.group:
        use[resource.plural] = Decimal(1)
    return use


def _pod_use(pod: Json) -> dict[str, Decimal]:
    """Finished pods take nothing."""
    if member(pod, "status").get("phase") in ("Succeeded", "Failed"):
        return {}
    use = {"pods": Decimal(1)}
    for container in mappings(pod["spec"].get("containers")):
        for kind in ("requests", "limits"):
            for name, value in member(container, "resources", kind).items():
                use[f"{kind}.{name}"] = use.get(f"{kind}.{name}", Decimal(0)) + quantity.parse(value)
    return use
