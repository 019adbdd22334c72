"""Texts of plans, in one form for all kinds, to compare with those that the specification fixes."""

from collections.abc import Iterator

from flotilla_common.control.plan import Action, Event, Patch, Plan

ERROR = "ERR"
"""Placeholder for the error text of a write that was refused."""


def events(plan: Plan) -> set[str]:
    """Return all events that the plan can cause: its own, and those of each write that succeeds or is refused.

    Each in the form `Warning FailedDelete: failed to delete pod web-x: ERR`.
    """
    own = {_row(event) for event in plan.events}
    return own | {row for action in actions(plan) for row in _of_write(action)}


def conditions(plan: Plan, kind: str) -> set[str]:
    """Return the conditions that the plan writes on a kind's objects, as `Progressing False CloneSetPaused: text`."""
    return {
        " ".join(filter(None, (one["type"], one["status"], one.get("reason", "")))) + f": {one.get('message', '')}"
        for action in actions(plan)
        if isinstance(action, Patch) and action.resource.kind == kind
        for one in action.body.get("status", {}).get("conditions") or []
    }


def actions(plan: Plan) -> list[Action]:
    """Return all writes, with that of the status."""
    stages = (*plan.stages, *plan.after_status)
    found = [action for stage in stages for chain in stage.chains for action in chain]
    return [*found, *([plan.status] if plan.status is not None else [])]


def _of_write(action: Action) -> Iterator[str]:
    if action.on_success is not None:
        yield _row(action.on_success)
    yield from (_row(event, ERROR) for event in action.failures)


def _row(event: Event, error: str = "") -> str:
    return f"{'Warning' if event.warning else 'Normal'} {event.reason}: {event.text(error)}"
