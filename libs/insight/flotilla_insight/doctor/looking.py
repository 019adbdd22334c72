"""Looks at an installation until two looks in a row agree."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from flotilla_insight.doctor.catalogue import examine
from flotilla_insight.doctor.collect import Sources, collect
from flotilla_insight.doctor.finding import Outcome, confirmed, keys

AGAIN_SECONDS = 2.0
"""Seconds between two looks."""

MOST_LOOKS = 3

Step = Callable[[str], AbstractContextManager[object]]
"""Shows that a step is under way."""


def _silent(_: str) -> AbstractContextManager[object]:
    return nullcontext()


async def examined(places: Sources, step: Step = _silent) -> Sequence[Outcome]:
    """Return the findings that two looks in a row agree on.

    One look is enough if it finds nothing; a third is taken if the second finds something new.
    """
    with step("Look at the installation"):
        looks = [examine(await collect(places))]
    while keys(looks[-1]) and len(looks) < MOST_LOOKS:
        with step("Look again to confirm the findings"):
            await places.clock.sleep(AGAIN_SECONDS)
            looks.append(examine(await collect(places)))
        if keys(looks[-1]) <= keys(looks[-2]):
            break
    return looks[0] if len(looks) == 1 else confirmed(looks[-2], looks[-1])
