"""Copies of Secrets and ConfigMaps: only in their targets, equal to the source (resourcedistribution.md §3, §5).

Objects of other owners are not touched.
"""

from collections.abc import Iterator

from flotilla_common.api.documents import mapping, mappings, member, strings
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION
from flotilla_common.api.resources import CONFIG_MAP, NAMESPACE, SECRET
from flotilla_common.control.plan import Json
from tests.simulation.oracles.view import Commit, View

NEVER = ("kube-system", "kube-public")

Past = list[tuple[float, Json | None]]
"""The states of one object, each with the time from which it held."""


class Copies:
    """The rule for copies: the states of ResourceDistributions and namespaces over time."""

    def __init__(self) -> None:
        self._distributions: dict[str, Past] = {}  # by uid
        self._namespaces: dict[str, Past] = {}  # by name
        self._names: set[str] = set()  # of what is distributed; what is called otherwise is other controllers' business

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        if version.resource == RESOURCE_DISTRIBUTION:
            self._distributions.setdefault(version.uid, []).append((version.at, version.after))
            self._names.add(member(version.after or {}, "spec", "resource", "metadata").get("name", ""))
        elif version.resource == NAMESPACE:
            self._namespaces.setdefault(version.name, []).append((version.at, version.after))
        elif version.resource in (SECRET, CONFIG_MAP) and commit.ours and version.name in self._names:
            yield from self._checker(view, commit)

    def _checker(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        owner = controller(version.before or version.after or {})
        past = self._distributions.get(owner)
        if past is None:
            yield "touches an object that no ResourceDistribution controls"
            return
        known = [one for one in lately(past, view.since) if one is not None]
        if version.before is None and all("deletionTimestamp" in one["metadata"] for one in known):
            yield "makes a copy for a ResourceDistribution that is gone, or goes"
            return
        yield from self._place(view, commit, known)
        if (
            version.after is not None
            and not commit.marked_deleted
            and not any(equal(version.after, one) for one in known)
        ):
            yield "writes something else than the source says"

    def _place(self, view: View, commit: Commit, known: list[Json]) -> Iterator[str]:
        version = commit.version
        spaces = lately(self._namespaces.get(version.namespace, []), view.since)
        wanted = [targets(one, version.namespace, space) for one in known for space in spaces]
        if version.before is None and not any(wanted):
            yield "makes a copy in a namespace that is no target"
        if commit.marked_deleted and all(wanted):
            yield "deletes the copy of a target"


def controller(document: Json) -> str:
    """Return the uid of the object's controller; empty without one."""
    owners = mappings(member(document, "metadata").get("ownerReferences"))
    return next((str(one["uid"]) for one in owners if one.get("controller")), "")


def lately(past: Past, since: float) -> list[Json | None]:
    """Return all states since a time; None: the object did not exist."""
    found = [state for index, (_, state) in enumerate(past) if index + 1 == len(past) or past[index + 1][0] >= since]
    return found if past and past[0][0] < since else [None, *found]


def equal(copy: Json, distribution: Json) -> bool:
    """Report whether the copy equals the source. Scenarios write sources as the apiserver stores them."""
    source: Json = distribution["spec"]["resource"]
    return all(copy.get(key) == source.get(key) for key in ("data", "binaryData", "type", "immutable"))


def targets(distribution: Json, name: str, namespace: Json | None) -> bool:
    """Report whether the namespace, in this state, is a target."""
    wish: Json = distribution["spec"]["targets"]
    if namespace is None or name in (*NEVER, *_names(wish.get("excludedNamespaces"))):
        return False
    labels = strings(namespace["metadata"].get("labels"))
    query = strings(member(wish, "namespaceSelector").get("matchLabels"))
    selected = bool(query) and query.items() <= labels.items()
    return wish.get("allNamespaces") is True or name in _names(wish.get("includedNamespaces")) or selected


def _names(listed: object) -> list[str]:
    return [str(one.get("name")) for one in mappings(mapping(listed).get("list"))]
