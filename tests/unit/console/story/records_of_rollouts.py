"""Made-up records of rollouts of the CloneSet `shop/web`."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from flotilla_common.control.plan import Intent, Reason, State
from flotilla_insight.published import Act, Owner, Why
from tests.support.fake_clock import START

OWNER = Owner("CloneSet", "shop", "web")


def at(seconds: float) -> datetime:
    """Return a moment before the clock of tests, which stands at 1000."""
    return START - timedelta(seconds=1000) + timedelta(seconds=seconds)


def change(seconds: float, generation: int = 2, action: str = "update", **more: Any) -> Act:
    """Return a user's change."""
    made: dict[str, Any] = {
        "service": "webhook",
        "replica": "hook",
        "action": action,
        "kind": "CloneSet",
        "namespace": "shop",
        "name": "web",
        "uid": "uid-web",
        "user": "jane",
        "generation": generation,
        "changes": ({"path": "spec.template.spec.containers[main].image", "from": "nginx:1", "to": "nginx:2"},),
        "outcome": "Ok",
    }
    return Act(at=at(seconds), **made | more)


def write(seconds: float, name: str, action: str = "create", **more: Any) -> Act:
    """Return a write to a pod."""
    made: dict[str, Any] = {
        "service": "cloneset",
        "replica": "r1",
        "trace": "t",
        "kind": "Pod",
        "namespace": "shop",
        "owner": OWNER,
        "intent": Intent.CREATE,
        "cause": "scale up",
        "outcome": "Ok",
        "revision": "web-2",
        "resource_version": f"{name}-{seconds}",
    }
    return Act(at=at(seconds), name=name, action=action, **made | more)


def in_place(
    seconds: float, name: str, takes: float | None = 1.0, revision: str = "web-2", **more: Any
) -> Iterator[Act]:
    """Yield the writes of an update in place, which is not done without `takes`."""
    begun = {"intent": Intent.IN_PLACE_UPDATE, "cause": f"in-place update to {revision}", "revision": revision} | more
    yield write(seconds, name, "patch", subresource="status", **begun)
    yield write(seconds + 0.01, name, "patch", **begun)
    if takes is not None:
        done = {"intent": Intent.REFRESH, "cause": "refresh", "revision": ""} | more
        yield write(seconds + takes, name, "patch", subresource="status", **done)


def decision(seconds: float, generation: int = 2, replica: str = "r1", reason: str = "", **numbers: int) -> Why:
    """Return a decision with numbers."""
    given = (Reason(State.WAITING, "WaitingForMaxUnavailable", reason),) if reason else ()
    return Why(
        kind="CloneSet",
        namespace="shop",
        name="web",
        uid="uid-web",
        generation=generation,
        at=at(seconds),
        service="cloneset",
        replica=replica,
        resource_version=str(seconds),
        reasons=given,
        numbers=numbers,
    )
