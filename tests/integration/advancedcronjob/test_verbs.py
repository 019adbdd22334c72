"""`flotilla get`, `explain`, `history`, `bundle`, `replay` of an AdvancedCronJob, beside running services."""

import json
from pathlib import Path

from tests.support.cron import NAME, begun, broadcasts, cronjob, ever, stop
from tests.support.fleet import Fleet
from tests.support.verbs import Verbs
from tests.support.workspace import Workspace


def test_a_run_under_way(space: Workspace, shared: Fleet, tmp_path: Path):
    flotilla = Verbs(space, shared)
    space.apply(cronjob(broadcasts(), "@every 2s", concurrencyPolicy="Forbid"))
    begun(space, 1, "BroadcastJob")
    stop(space)
    (run, *_) = ever(space, "BroadcastJob")
    assert run in flotilla.run("get", "acj", NAME)
    found = json.loads(flotilla.run("explain", "acj", NAME, "-o", "json"))
    assert "Waiting" in {reason["code"] for reason in found["reasons"]}, found
    assert run in flotilla.run("explain", "acj", NAME)
    assert run in flotilla.run("history", "acj", NAME)
    assert "decisions match those of the service" in flotilla.replayed(tmp_path, "acj", NAME)
