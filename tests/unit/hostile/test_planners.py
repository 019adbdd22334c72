"""Every stored object can be planned: none makes a gatherer or a planner fail, or delays it.

`OBJECTS` of each controller by default; FLOTILLA_HOSTILE sets the number.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from flotilla_common.control.keystate import Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch
from flotilla_common.installed import installed_components
from flotilla_common.mirror.decoder import ObjectDecoder
from tests.support.controller_context import FakeContext
from tests.support.hostile.amount import amount
from tests.support.hostile.stored import Stored
from tests.support.timing import measured

OBJECTS = 40
MOST_SECONDS = 1.0
"""CPU limit for everything that is done for one object."""

SERVER_VERSION = "v1.36.3"
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
CONTROLLERS = [part for parts in installed_components().values() for part in parts if isinstance(part, ControllerSpec)]


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("controller", [pytest.param(one, id=one.name) for one in CONTROLLERS])
def test_every_stored_object_is_planned_in_time(controller: ControllerSpec[Any, Any]) -> None:
    problems = [f"seed {seed}: {text}" for seed in range(amount(OBJECTS)) for text in problems_of(controller, seed)]
    assert not problems, "\n".join(problems[:20])


def problems_of(controller: ControllerSpec[Any, Any], seed: int) -> Iterator[str]:
    """Take the objects of a seed in, plan, and yield what went wrong."""
    context, stored = FakeContext(), Stored(seed)
    options = None if controller.options is None else controller.options.of(context.settings, SERVER_VERSION)
    gatherer = controller.build(context, options)
    objects = [(controller.primary, stored.primary(controller))]
    for watch in controller.watches:
        objects += [(watch, raw) for raw in stored.dependents(controller, watch)]
    with measured() as seconds:
        for watch, raw in objects:
            yield from _taken(context, watch, raw)
        keys = context.table(controller.primary).keys() if controller.keys is None else controller.keys(gatherer)
        for key in keys:
            snapshot = gatherer.gather(key, Memory())
            if snapshot is not None:
                controller.plan(snapshot, NOW)
        if (spent := seconds()) > MOST_SECONDS:
            yield f"took {spent:.1f} s"


def _taken(context: FakeContext, watch: Watch[Any], raw: bytes) -> Iterator[str]:
    """Take the object in. One that does not fit its type is set aside, as it should be; nothing else may fail."""
    decoder = ObjectDecoder(watch.resource, watch.type, context.table(watch))
    decoder.take(raw)
    failures = (one.error for one in decoder.undecodable.values() if one.error.partition(": ")[0].endswith("Error"))
    yield from (f"taking in a {watch.resource.kind}: {error}" for error in failures)
