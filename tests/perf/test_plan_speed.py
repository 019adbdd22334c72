"""How long planning takes: one CloneSet of 10,000 pods in the middle of an in-place rollout.

Each measured pass sees 128 pods at a new version, as after a full wave of writes; the others are known already.
"""

import statistics
import time
import tomllib
from pathlib import Path

import msgspec

from flotilla_cloneset.cloneset.plan import plan
from flotilla_common.api.core import Pod
from tests.unit.cloneset.build import NOW, cloneset, pod, snapshot

THRESHOLDS = tomllib.loads((Path(__file__).parent / "thresholds.toml").read_text())
STATE = (
    '{"revision":"sample-new","updateTimestamp":"2026-03-01T11:59:00Z",'
    '"lastContainerStatuses":{"nginx":{"imageID":"id"}},"updateImages":true}'
)
WAVE = 128
PASSES = 15


def test_plan_of_ten_thousand_pods() -> None:
    updating = {"apps.kruise.io/inplace-update-state": STATE}
    pods = [pod(f"o{i:05}", "o") for i in range(4500)]
    pods += [pod(f"n{i:05}", "n") for i in range(4500)]
    pods += [pod(f"u{i:05}", "n", state="Updating", ready=False, annotations=updating) for i in range(1000)]
    builder = cloneset().replicas(10_000).max_unavailable("15%").in_place()
    took: list[float] = []
    for round_ in range(PASSES + 1):
        view = snapshot(builder, pods)
        started = time.perf_counter()
        result = plan(view, NOW)
        took.append((time.perf_counter() - started) * 1000)
        assert result.stages
        for index in range(round_ * WAVE, (round_ + 1) * WAVE):
            place = index * 7 % len(pods)
            pods[place] = msgspec.json.decode(msgspec.json.encode(pods[place]), type=Pod)
    first, *later = took
    best, median = min(later), statistics.median(later)
    print(f"\nplan of 10,000 pods: first {first:.1f} ms, then best {best:.1f} ms, median {median:.1f} ms")
    assert best <= THRESHOLDS["plan_10k_ms"], "the best of several passes, since other processes only make it slower"
