"""Progress lines that differ only in figures: where lines stay, they are printed every ten seconds."""

import io

from rich.console import Console

from flotilla_cli.output import REPEAT_SECONDS, Progress
from tests.support.fake_clock import FakeClock


async def test_a_count_is_said_again_after_a_while_only() -> None:
    clock, output = FakeClock(), io.StringIO()
    with Progress(clock, Console(file=output, width=80)).step("Get programs") as say:
        say("building: 900 of 2,831 packages, about 3 min left")
        say("building: 1,000 of 2,831 packages, about 3 min left")
        await clock.sleep(REPEAT_SECONDS + 1)
        say("building: 1,100 of 2,831 packages, about 2 min left")
    assert output.getvalue().splitlines()[1:-1] == [
        "  building: 900 of 2,831 packages, about 3 min left",
        "  building: 1,100 of 2,831 packages, about 2 min left",
    ]
