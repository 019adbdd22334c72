"""AdvancedCronJobs: runs by the minute, concurrent or not, late ones, and missed ones (advancedcronjob.md §4, §8)."""

from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.resources import JOB
from tests.simulation.oracles.crons import Crons
from tests.simulation.scenarios.broadcastjob import LASTING, job_template
from tests.simulation.scenarios.cron_manifests import (
    PAUSED,
    RESUMED,
    SERVICE,
    Ran,
    Until,
    WaitRun,
    broadcasts,
    cron,
    ended,
    given,
    jobs,
    pulls,
    removed,
    run_of,
    scheduled,
)
from tests.simulation.scenarios.manifests import spec
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Create, Downtime, Remove, WaitGone
from tests.testkit.documents import typed

SUCCESS = "successful"
FIRST_TWO = (WaitRun(at="1:00"), WaitRun(at="2:00"), PAUSED)
FOREIGN = typed(JOB, run_of("1:00"), NAMESPACE_NAME, spec={"template": job_template(LASTING)})

SCENARIOS = (
    scheduled(
        name="scheduled-each-minute",
        given=given(cron(jobs())),
        when=FIRST_TWO,
        then=Ran(runs={"1:00": SUCCESS, "2:00": SUCCESS}, last="2:00"),
    ),
    scheduled(
        name="scheduled-broadcasts-that-are-gone-after-a-while",
        given=given(cron(broadcasts(completionPolicy={"ttlSecondsAfterFinished": 3}))),
        when=FIRST_TWO,
        then=Ran(last="2:00", kind=BROADCAST_JOB.kind),
        quiet=5,
    ),
    scheduled(
        name="scheduled-pulls",
        given=given(cron(pulls(), policy="Replace")),
        when=(WaitRun(at="1:00"), PAUSED),
        then=Ran(runs={"1:00": SUCCESS}, last="1:00", kind=IMAGE_LIST_PULL_JOB.kind),
        agents=1,
    ),
    scheduled(
        name="scheduled-one-after-the-other",
        given=given(cron(jobs(LASTING), policy="Forbid")),
        when=(WaitRun(at="1:00"), Until(at="2:10"), ended("1:00"), WaitRun(at="2:00"), PAUSED),
        then=Ran(runs={"1:00": SUCCESS, "2:00": ""}, last="2:00"),
    ),
    scheduled(
        name="scheduled-in-place-of-the-last-one",
        given=given(cron(jobs(LASTING), policy="Replace")),
        when=FIRST_TWO,
        then=Ran(runs={"2:00": ""}, last="2:00"),
    ),
    scheduled(
        name="scheduled-beside-one-another",
        given=given(cron(broadcasts(LASTING))),
        when=FIRST_TWO,
        then=Ran(runs={"1:00": "", "2:00": ""}, last="2:00", kind=BROADCAST_JOB.kind),
    ),
    scheduled(
        name="scheduled-without-a-past",
        given=given(cron(jobs(), successfulJobsHistoryLimit=0)),
        when=FIRST_TWO,
        then=Ran(last="2:00"),
    ),
    scheduled(
        name="scheduled-in-vain",
        given=given(cron(jobs(1), failedJobsHistoryLimit=1)),
        when=FIRST_TWO,
        then=Ran(runs={"2:00": "failed"}, last="2:00"),
    ),
    scheduled(
        name="scheduled-while-nobody-was-there",
        given=given(cron(jobs())),
        when=(Downtime(service=SERVICE, seconds=160), WaitRun(at="3:00"), PAUSED),
        then=Ran(runs={"3:00": SUCCESS}, last="3:00"),
    ),
    scheduled(
        name="scheduled-too-late",
        given=given(cron(jobs(), startingDeadlineSeconds=30)),
        when=(Downtime(service=SERVICE, seconds=50), WaitRun(at="2:00"), PAUSED),
        then=Ran(runs={"2:00": SUCCESS}, last="2:00"),
    ),
    scheduled(
        name="scheduled-once-though-users-delete",
        given=given(cron(jobs(LASTING))),
        when=(WaitRun(at="1:00"), removed("1:00"), WaitRun(at="2:00"), PAUSED),
        then=Ran(runs={"2:00": ""}, last="2:00"),
    ),
    scheduled(
        name="scheduled-after-a-pause",
        given=given(cron(jobs(), paused=True), at="2:10"),
        when=(RESUMED, WaitRun(at="2:00"), PAUSED),
        then=Ran(runs={"2:00": SUCCESS}, last="2:00"),
    ),
    scheduled(
        name="scheduled-otherwise-than-before",
        given=given(cron(jobs(), schedule="0 0 1 1 *"), at="2:10"),
        when=(spec(schedule="* * * * *"), WaitRun(at="2:00"), PAUSED),
        then=Ran(runs={"2:00": SUCCESS}, last="2:00"),
    ),
    scheduled(
        name="scheduled-where-a-name-is-taken",
        given=(Create(document=FOREIGN), *given(cron(jobs()))),
        when=(WaitRun(at="2:00"), PAUSED),
        then=Ran(runs={"2:00": SUCCESS}, last="2:00", foreign=1),
    ),
    scheduled(
        name="scheduled-no-more",
        given=given(cron(jobs(LASTING))),
        when=(WaitRun(at="1:00"), Until(at="1:57"), Remove(propagation="Foreground"), WaitGone()),
        then=Ran(exists=False),
    ),
    scheduled(
        name="scheduled-too-often-to-catch-up",
        given=given(cron(jobs(), schedule="@every 1s", paused=True), at="1:47"),
        when=(RESUMED, WaitRun(at="1:50", first=True), Remove(), WaitGone()),
        then=Ran(exists=False),
    ),
)

RULES = (Crons,)
