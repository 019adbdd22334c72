"""Reads the subsets of UnitedDeployments and WorkloadSpreads: their rules in words, their pods, and what is wrong."""

from collections.abc import Iterator, Sequence

import msgspec

from flotilla_common.api.documents import Json, mappings, member, sequence, text
from flotilla_common.api.kinds.workloadspread.types import ADAPTIVE, SCHEDULABLE
from flotilla_common.control.text import pods_word
from flotilla_console.model.kinds.fields import conditions, number, word

MOST_TERMS = 5
"""Terms of a node selector that are written out."""


class Subset(msgspec.Struct, frozen=True, kw_only=True):
    """A subset, by the spec and status of the object that has it."""

    name: str
    rules: tuple[str, ...]
    replicas: int = 0
    """The pods of a WorkloadSpread's subset; the pods that a UnitedDeployment gives to its subset."""
    ready: int | None = None  # None: the status does not say
    limit: int | None = None  # None: any number
    trouble: str = ""
    is_gone: bool = False  # only the status has it

    @property
    def lacks(self) -> int:
        """Return the pods that are known not to be ready."""
        return 0 if self.ready is None else max(self.replicas - self.ready, 0)


def subsets_of_united(spec: Json, status: Json) -> list[Subset]:
    """Return the subsets of a UnitedDeployment in their order, then those that its spec no longer has."""
    known = {text(one.get("name")): one for one in mappings(status.get("subsetStatuses"))}
    wanted = {text(one.get("name")): one for one in mappings(member(spec, "topology").get("subsets"))}
    adaptive = tuple(_adaptive(member(spec, "topology"), default=30))
    found = [
        _united(name, known.get(name, {}), (*_asked(one), *_placing(one, "nodeSelectorTerm"), *adaptive))
        for name, one in wanted.items()
    ]
    gone = [_united(name, one, ("no longer in the spec",)) for name, one in known.items() if name not in wanted]
    return [*found, *(msgspec.structs.replace(one, is_gone=True) for one in gone)]


def subsets_of_spread(spec: Json, status: Json) -> list[Subset]:
    """Return the subsets of a WorkloadSpread, in the order in which they are filled."""
    known = {text(one.get("name")): one for one in mappings(status.get("subsetStatuses"))}
    adaptive = tuple(_adaptive(spec, default=0))
    return [
        _spread(one, known.get(text(one.get("name")), {}), (*_room(one), *_spread_placing(one), *adaptive))
        for one in mappings(spec.get("subsets"))
    ]


def _united(name: str, status: Json, rules: Sequence[str]) -> Subset:
    kept = number(status, "partition")
    reserved = number(status, "reservedPods")
    more = (f"keeps {pods_word(kept)} on old revisions",) if kept > 0 else ()
    return Subset(
        name=name,
        rules=(*rules, *more, *((f"{pods_word(reserved)} reserved",) if reserved > 0 else ())),
        replicas=number(status, "replicas"),
        ready=number(status, "readyReplicas"),
        trouble=_trouble(status),
    )


def _spread(subset: Json, status: Json, rules: Sequence[str]) -> Subset:
    replicas, missing = number(status, "replicas"), number(status, "missingReplicas", default=-1)
    return Subset(
        name=text(subset.get("name")),
        rules=tuple(rules),
        replicas=replicas,
        limit=replicas + missing if missing >= 0 else None,
        trouble=_trouble(status),
    )


def _trouble(status: Json) -> str:
    """Return why no pods can be placed in the subset; empty if they can."""
    for kind, value, reason, message in conditions(status):
        if (kind, value) == (SCHEDULABLE, "False"):
            return message or reason or "pods find no node there"
    return ""


def _asked(subset: Json) -> Iterator[str]:
    """Yield the share of pods that a subset of a UnitedDeployment asks for."""
    replicas, least, most = (word(subset, name) for name in ("replicas", "minReplicas", "maxReplicas"))
    if replicas:
        yield f"{replicas} of all pods" if replicas.endswith("%") else f"{replicas} pods"
    elif least and most:
        yield f"{least} to {most} pods"
    elif least or most:
        yield f"at least {least} pods" if least else f"at most {most} pods"
    else:
        yield "the rest of the pods"


def _room(subset: Json) -> Iterator[str]:
    most = word(subset, "maxReplicas")
    yield f"at most {most} pods" if most else "any number of pods"


def _placing(subset: Json, term: str) -> Iterator[str]:
    """Yield which nodes the pods need, and what else the subset adds to them."""
    if words := _term(member(subset, term)):
        yield f"on nodes with {words}"
    if count := len(sequence(subset.get("tolerations"))):
        yield f"{count} {'toleration' if count == 1 else 'tolerations'}"
    if member(subset, "patch"):
        yield "with a patch of the pods"


def _spread_placing(subset: Json) -> Iterator[str]:
    yield from _placing(subset, "requiredNodeSelector")
    for preferred in mappings(subset.get("preferredNodeSelector"))[:MOST_TERMS]:
        if words := _term(member(preferred, "preference")):
            yield f"rather on nodes with {words}"


def _term(term: Json) -> str:
    """Return the terms of a node selector in words."""
    terms = [*mappings(term.get("matchExpressions")), *mappings(term.get("matchFields"))]
    words = [_expression(one) for one in terms[:MOST_TERMS]]
    more = [f"{len(terms) - MOST_TERMS} more"] if len(terms) > MOST_TERMS else []
    return " and ".join([*words, *more])


def _expression(one: Json) -> str:
    values = [text(value) for value in sequence(one.get("values"))]
    more = f", {len(values) - MOST_TERMS} more" if len(values) > MOST_TERMS else ""
    listed = f" ({', '.join(values[:MOST_TERMS])}{more})" if values else ""
    return f"{text(one.get('key'))} {text(one.get('operator'))}{listed}"


def _adaptive(above: Json, default: int) -> Iterator[str]:
    """Yield when pods without a node move to another subset."""
    strategy = member(above, "scheduleStrategy")
    seconds = number(strategy, "adaptive", "rescheduleCriticalSeconds", default=default)
    if text(strategy.get("type")) == ADAPTIVE and seconds > 0:
        yield f"pods without a node move after {seconds} s"
