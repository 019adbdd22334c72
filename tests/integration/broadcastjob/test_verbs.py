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
    assert {pod["metadata"]["name"] for pod in (first, second)} <= set(flotilla.run("get", "bcj", NAME).split())
    found = json.loads(flotilla.run("explain", "bcj", NAME, "-o", "json"))
    codes = {reason["code"] for reason in found["reasons"]}
    assert "WaitingForParallelism" in codes, found
    end(space, [first], "Failed")
    reached(space, phase="failed", failed=2)
    said = flotilla.run("explain", "bcj", NAME)
    assert first["metadata"]["name"] in said
    told = flotilla.run("history", "bcj", NAME)
    assert first["metadata"]["name"] in told
    assert "decisions are those of the service" in flotilla.replayed(tmp_path, "bcj", NAME)
