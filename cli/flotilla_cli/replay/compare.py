"""Compares a decision with the service's record of it.

Not every planned write is made: after a failure the rest of a plan is held back, and a status waits for the next pass
if it only changes counts, or if its own pass writes dependents. Those are no differences. Bodies of writes are not on
the bus, so they are not compared.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from flotilla_cli.replay.recording import Pass
from flotilla_common.api.resources import POD, REVISION, Resource
from flotilla_common.control.plan import Action, Create, Patch, Plan, Reason
from flotilla_common.model.pods import demanded_node
from flotilla_insight.published import Act, Why

WAKE_TOLERANCE = timedelta(seconds=1)
"""Times derived from the moment of planning are no more exact than that."""

STATUS, AFTER_STATUS = "status", "after status"


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One write of a plan with its outcome; none: it was not made, or is not in the bundle."""

    action: str  # create, patch, delete
    kind: str
    namespace: str
    name: str
    subresource: str = ""
    intent: str
    cause: str
    revision: str = ""
    part: str = ""  # STATUS, AFTER_STATUS, or empty for the stages
    outcome: str = ""
    message: str = ""


def place_of(write: Planned | Act) -> tuple[str, ...]:
    """Return the object and the kind of write."""
    return write.action, write.kind, write.namespace, write.name, write.subresource


def _identity(write: Planned | Act, *, exact: bool) -> tuple[str, ...]:
    """Return the identity of a write. Without `exact` for records of an earlier release, which have no intents."""
    return (*place_of(write), write.intent, write.revision) if exact else place_of(write)


class ComparedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A compared plan: its writes, and a sentence for each difference."""

    writes: tuple[Planned, ...]
    differences: tuple[str, ...]


def compare(plan: Plan, done: Pass, said: Why | None) -> ComparedPlan:
    """Compare a plan with a pass. `said`: the last published record, in case the pass published none."""
    renamed = _renamed(plan, done.acts)
    exact = all(act.intent for act in done.acts)
    writes = _with_outcomes([_rename(write, renamed) for write in _writes(plan)], done.acts, exact=exact)
    words = list(_words(plan, done.why or said, renamed))
    if done.why is not None:
        words += _counts(plan, done.why)
        words += _times(plan.wake_at, done.why.wake_at)
    words += [*_unplanned(writes, done.acts, exact=exact), *_undone(writes, plan, done)]
    return ComparedPlan(writes=writes, differences=tuple(words))


def at_rest(plan: Plan, said: Why | None, *, idle: bool) -> ComparedPlan:
    """Compare the plan at the end with the last record. `idle`: the service has certainly seen this state."""
    writes = tuple(_writes(plan))
    if not idle:
        return ComparedPlan(writes=writes, differences=())
    undone = [f"{_title(write)} is planned, but the service does not do it" for write in writes if not write.part]
    return ComparedPlan(writes=writes, differences=(*_words(plan, said, {}), *undone))


def _writes(plan: Plan) -> list[Planned]:
    after = Plan(stages=plan.after_status).actions
    parts = (plan.actions, ""), ([plan.status] if plan.status else [], STATUS), (after, AFTER_STATUS)
    return [planned(action, part) for actions, part in parts for action in actions]


def planned(action: Action, part: str = "") -> Planned:
    """Describe a write of a plan."""
    return Planned(
        action=action.verb,
        kind=action.resource.kind,
        namespace=action.namespace,
        name=action.name,
        subresource=action.subresource if isinstance(action, Patch) else "",
        intent=action.intent,
        cause=action.cause,
        revision=action.revision,
        part=part,
    )


def _renamed(plan: Plan, acts: Iterable[Act]) -> dict[str, str]:
    """Return the names that must differ from the recorded ones.

    The name of a new revision is a hash of its template, whose secrets a bundle lacks; that of a pod for a node depends
    on it, and on a pod that may have gone before the bundle begins.
    """
    made = [act for act in acts if act.action == "create"]
    creates = [action for action in plan.actions if isinstance(action, Create)]
    revisions = [one.name for one in creates if one.resource == REVISION], _names(made, REVISION)
    for_nodes = [one.name for one in creates if one.resource == POD and demanded_node(one.body)], _names(made, POD)
    return dict(pair for planned, real in (revisions, for_nodes) for pair in _pairs(planned, real))


def _names(made: Iterable[Act], resource: Resource) -> list[str]:
    return [act.name for act in made if act.kind == resource.kind]


def _pairs(planned: Sequence[str], made: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pair the names that only one side has, in order."""
    return zip((one for one in planned if one not in made), (one for one in made if one not in planned), strict=False)


def _rename(write: Planned, renamed: dict[str, str]) -> Planned:
    for planned, made in renamed.items():
        name, revision = write.name.replace(planned, made), made if write.revision == planned else write.revision
        write = msgspec.structs.replace(write, name=name, revision=revision)
    return write


def _with_outcomes(writes: Iterable[Planned], acts: Iterable[Act], *, exact: bool) -> tuple[Planned, ...]:
    """Return the writes with their outcomes and recorded causes."""
    done: dict[tuple[str, ...], list[Act]] = {}
    for act in acts:
        done.setdefault(_identity(act, exact=exact), []).append(act)
    found: list[Planned] = []
    for write in writes:
        matching = done.get(_identity(write, exact=exact))
        act = matching.pop(0) if matching else write
        found.append(msgspec.structs.replace(write, cause=act.cause, outcome=act.outcome, message=act.message))
    return tuple(found)


def _unplanned(writes: Iterable[Planned], acts: Iterable[Act], *, exact: bool) -> Iterator[str]:
    planned = Counter(_identity(write, exact=exact) for write in writes)
    for act in acts:
        identity = _identity(act, exact=exact)
        if not planned[identity]:
            yield f"the service did {_title(act)}, which is not planned"
        planned[identity] -= 1


def _undone(writes: Iterable[Planned], plan: Plan, done: Pass) -> Iterator[str]:
    if not done.complete:
        return
    for write in writes:
        later = not plan.urgent_status or bool(plan.stages)  # the next pass writes it, with the results of the stages
        put_off = write.part == AFTER_STATUS or (write.part == STATUS and later)
        if not write.outcome and not put_off:
            yield f"{_title(write)} is planned, but the service did not do it"


def _title(write: Planned | Act) -> str:
    return f"{' '.join(filter(None, (write.action, write.kind, write.name, write.subresource)))} ({write.cause})"


def _words(plan: Plan, said: Why | None, renamed: dict[str, str]) -> Iterator[str]:
    """Compare reasons, numbers and errors. Without any, nothing is published, and an older record stays."""
    if said is None or not (plan.reasons or plan.numbers or plan.errors):
        return
    here, there = [_line(reason, renamed) for reason in plan.reasons], [_line(reason, {}) for reason in said.reasons]
    yield from (f"reason {line!r} is not among those of the service" for line in here if line not in there)
    yield from (f"the service reported {line!r}" for line in there if line not in here)
    for name in sorted(plan.numbers.keys() | said.numbers.keys()):
        mine, theirs = plan.numbers.get(name), said.numbers.get(name)
        if mine != theirs:
            yield f"{name} is {_shown(mine)}, the service reported {_shown(theirs)}"
    failed = [(failure.phase, failure.message) for failure in said.errors]
    if list(plan.errors) != failed:
        yield f"errors {list(plan.errors)}, the service reported {failed}"


def _line(reason: Reason, renamed: dict[str, str]) -> str:
    text = f"{reason.state}: {reason.message} [{reason.code}]"
    for planned, made in renamed.items():
        text = text.replace(planned, made)
    return text


def _shown(number: int | None) -> str:
    return "not reported" if number is None else str(number)


def _counts(plan: Plan, why: Why) -> Iterator[str]:
    """Compare the numbers of planned writes."""
    mine = Counter(write.action for write in _writes(plan) if not write.part)
    for action in ("create", "patch", "delete"):
        theirs = why.actions.get(action, 0)
        if mine[action] != theirs:
            yield f"{mine[action]} {action} planned, the service planned {theirs}"


def _times(mine: datetime | None, theirs: datetime | None) -> Iterator[str]:
    same = mine is theirs if mine is None or theirs is None else abs(mine - theirs) <= WAKE_TOLERANCE
    if not same:
        yield f"it would reconcile again at {mine or 'no fixed time'}, the service at {theirs or 'no fixed time'}"
