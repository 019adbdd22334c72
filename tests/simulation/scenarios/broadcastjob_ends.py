"""BroadcastJobs that come to an end: all done, a few at a time, failed, paused, too late (broadcastjob.md §4.2, §5)."""

from tests.simulation.scenarios.broadcastjob import (
    GONE,
    LASTING,
    RemoveEndedPod,
    WaitRunning,
    broadcasting,
    broadcastjob,
    created,
    end_pod,
    end_pods,
    on,
    told,
)
from tests.simulation.scenarios.manifests import spec, tainted
from tests.simulation.scenarios.node_steps import AddNode
from tests.simulation.scenarios.steps import Create, Remove, RemovePod, Sleep, WaitGone

FAIL_FAST = "failure policy is FailurePolicyTypeFailFast and failed pod is found"
LATE = "Job shop/web was active longer than specified deadline"

SCENARIOS = (
    broadcasting(
        name="broadcast-to-all-nodes",
        given=(tainted("node-3", "NoSchedule"),),
        when=(Create(document=broadcastjob()), told(succeeded=2)),
        then=on(succeeded="12"),
    ),
    broadcasting(
        name="broadcast-a-few-at-a-time",
        given=(AddNode(name="node-4"), AddNode(name="node-5")),
        when=(
            *(Create(document=broadcastjob(parallelism=1)), told(succeeded=1), spec(parallelism="40%")),
            *(told(succeeded=3), spec(parallelism=1), told(succeeded=5)),
        ),
        then=on(succeeded="12345"),
    ),
    broadcasting(
        name="broadcast-failed-at-once",
        given=created(),
        when=(end_pod("node-1"), told(succeeded=1), end_pod("node-2", 3)),
        then=on("failed", verdict=FAIL_FAST, desired=3, succeeded="1", failed="2", killed=1),
        uncertain=("failed",),
    ),
    broadcasting(
        name="broadcast-however-pods-end",
        given=created(failurePolicy={"type": "Continue"}),
        when=(
            *(end_pod("node-1", 3), told(failed=1), RemovePod(node="node-2"), Sleep(seconds=0.5)),
            *(WaitRunning(pods=2), *end_pods("node-2", "node-3"), told(succeeded=2)),
        ),
        then=on(succeeded="23", failed="1"),
    ),
    broadcasting(
        name="broadcast-paused-by-a-failure",
        given=created(failurePolicy={"type": "Pause"}),
        when=(
            *(end_pod("node-1", 3), told(failed=1), RemovePod(node="node-2"), Sleep(seconds=1)),
            *(RemoveEndedPod(node="node-1"), WaitRunning(pods=3), *end_pods("node-1", "node-2", "node-3")),
        ),
        then=on(succeeded="123"),
    ),
    broadcasting(
        name="broadcast-paused-by-the-user",
        given=(Create(document=broadcastjob(exits=LASTING, paused=True)), told(desired=3)),
        when=(
            *(spec(paused=False), told(active=3), spec(paused=True), RemovePod(node="node-1"), Sleep(seconds=1)),
            *(*end_pods("node-2", "node-3"), told(succeeded=2), spec(paused=False)),
            *(WaitRunning(pods=1), end_pod("node-1")),
        ),
        then=on(succeeded="123"),
    ),
    broadcasting(
        name="broadcast-past-its-deadline",
        when=(Create(document=broadcastjob(exits=LASTING, completionPolicy={"activeDeadlineSeconds": 6})),),
        then=on("failed", verdict=LATE, desired=3, killed=3),
        uncertain=("failed",),
        timed=True,
        quiet=8,
    ),
    broadcasting(
        name="broadcast-gone-after-a-while",
        when=(
            Create(document=broadcastjob(completionPolicy={"ttlSecondsAfterFinished": 3})),
            *(told(succeeded=3), WaitGone()),
        ),
        then=GONE,
        timed=True,
    ),
    broadcasting(
        name="broadcast-followed-by-a-namesake",
        given=created(),
        when=(Remove(), Create(document=broadcastjob())),
        then=on(succeeded="123"),
    ),
    broadcasting(
        name="broadcast-deleted-with-its-pods-first",
        given=created(parallelism=3),
        when=(AddNode(name="node-4"), Remove(propagation="Foreground"), WaitGone()),
        then=GONE,
    ),
    broadcasting(
        name="broadcast-that-is-started-again",
        when=(
            Create(
                document=broadcastjob(
                    exits=[1, 1, 0], policy="OnFailure", failurePolicy={"type": "Continue", "restartLimit": 1}
                )
            ),
        ),
        then=on(succeeded="123"),
        quiet=5,
    ),
)
