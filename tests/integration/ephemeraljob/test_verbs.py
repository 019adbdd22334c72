"""`flotilla get`, `explain`, `history`, `bundle`, `replay` of an EphemeralJob, beside running services."""

import json
from pathlib import Path

from tests.support.ephemeral import NAME, begun, ephemeraljob, reached, runs, started
from tests.support.fleet import Fleet
from tests.support.verbs import Verbs
from tests.support.workspace import Workspace


def test_a_job_under_way(space: Workspace, shared: Fleet, tmp_path: Path):
    flotilla = Verbs(space, shared)
    started(space, "p1", "p2")
    space.apply(ephemeraljob())
    begun(space, "p1")
    runs(space, "p1")
    reached(space, phase="Running", running=1)
    assert "p1" in flotilla.run("get", "ejob", NAME)
    found = json.loads(flotilla.run("explain", "ejob", NAME, "-o", "json"))
    assert {"Running", "WaitingForParallelism"} == {reason["code"] for reason in found["reasons"]}
    assert found["numbers"] == {"match": 2, "running": 1, "succeeded": 0, "failed": 0, "waiting": 0}
    assert "p1" in flotilla.run("history", "ejob", NAME)
    assert "decisions match those of the service" in flotilla.replayed(tmp_path, "ejob", NAME)
