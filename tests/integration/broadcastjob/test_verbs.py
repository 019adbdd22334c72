"""`flotilla get`, `explain`, `history`, `bundle`, `replay` of a BroadcastJob, beside running services."""

import json
from pathlib import Path

from tests.support.broadcast import NAME, begun, broadcastjob, end, reached
from tests.support.fleet import Fleet
from tests.support.verbs import Verbs
from tests.support.workspace import Workspace


def test_a_job_under_way_and_one_that_failed(space: Workspace, shared: Fleet, tmp_path: Path):
    flotilla = Verbs(space, shared)
    space.apply(broadcastjob(parallelism=2))
    first, second = begun(space, 2)
    reached(space, desired=3, active=2)
    names = [pod["metadata"]["name"] for pod in (first, second)]
    shown = flotilla.run("get", "bcj", NAME)
    assert all(name in shown for name in names)
    found = json.loads(flotilla.run("explain", "bcj", NAME, "-o", "json"))
    (reason,) = found["reasons"]
    assert (found["verdict"], reason["code"], reason["objects"]) == ("waiting", "WaitingForParallelism", ["node-2"])
    assert found["numbers"] == {"desired": 3, "active": 2, "succeeded": 0, "failed": 0, "waiting": 1, "parallelism": 2}
    end(space, [first], "Failed")
    reached(space, phase="failed", failed=2)
    said = flotilla.run("explain", "bcj", NAME)
    assert "failed pod is found" in said
    assert f"{names[0]}: it has failed (on node node-0)" in said
    told = flotilla.run("history", "bcj", NAME)
    (made,) = (line for line in told.splitlines() if "new pod for node-0" in line)
    assert all(name in made for name in names)
    assert f"failed pod is found: {names[1]}" in told
    assert "decisions match those of the service" in flotilla.replayed(tmp_path, "bcj", NAME)
