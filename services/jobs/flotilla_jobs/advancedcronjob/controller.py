"""The AdvancedCronJob controller: what it watches and writes, and how it builds snapshots."""

import os
from collections.abc import Mapping
from typing import Any

from flotilla_common.api.batch import Job
from flotilla_common.api.kinds.advancedcronjob.schedule import zone_named
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB, AdvancedCronJob
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, BroadcastJob
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import JOB, Resource
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch, owned
from flotilla_common.mirror.table import Table
from flotilla_common.settings import Settings
from flotilla_jobs.advancedcronjob.plan import plan
from flotilla_jobs.advancedcronjob.run import CREATION, NAME_TAKEN
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot, Child, Options

CRON_JOBS = Watch(ADVANCED_CRON_JOB, AdvancedCronJob, subresources=("status",))
JOBS = Watch(JOB, Job, owner=ADVANCED_CRON_JOB, writes=("create", "delete"))
BROADCAST_JOBS = Watch(BROADCAST_JOB, BroadcastJob, owner=ADVANCED_CRON_JOB, writes=("create", "delete"), optional=True)
LISTS = Watch(
    IMAGE_LIST_PULL_JOB, ImageListPullJob, owner=ADVANCED_CRON_JOB, writes=("create", "delete"), optional=True
)


class Gatherer:
    """Builds the snapshot of one AdvancedCronJob."""

    def __init__(self, context: ControllerContext, options: Options) -> None:
        self._cron_jobs = context.table(CRON_JOBS)
        self._tables: Mapping[Resource, Table[Any]] = {
            watch.resource: context.table(watch) for watch in (JOBS, BROADCAST_JOBS, LISTS)
        }
        self._options = options

    def gather(self, key: Key, memory: Memory) -> AdvancedCronJobSnapshot | None:
        """Return the AdvancedCronJob and its children, or None if it does not exist."""
        job = self._cron_jobs.get(*key)
        if job is None:
            return None
        table = self._tables[job.spec.template.chosen[0]]
        return AdvancedCronJobSnapshot(
            job=job,
            children=_children(job, table),
            taken=table.names(job.metadata.namespace),
            failure=_failure(memory),
            notes=memory.notes,
            options=self._options,
        )


def _failure(memory: Memory) -> str:
    """Return the error of a refused create, or ""."""
    # One of unknown outcome may have happened, and a taken name is in the mirror by now.
    text = memory.failures.get(CREATION)
    reasons = (failure.reason for failure in memory.refused if failure.text == text and not failure.unknown)
    return next((reason.message for reason in reasons if reason.code != NAME_TAKEN), "")


def _children(job: AdvancedCronJob, table: Table[Child]) -> list[Child]:
    """Return the children that it controls, sorted by name."""
    # By uid: children of a former object of its name are not its own, in any version of the kind.
    meta = job.metadata
    children = [
        child
        for child in owned(table, ADVANCED_CRON_JOB, meta)
        if (owner := controller_of(child.metadata)) is not None and owner.uid == meta.uid
    ]
    return sorted(children, key=lambda child: child.metadata.name)


def options(settings: Settings, server_version: str) -> Options:
    """Return the options with the time zone of the environment, as for every program."""
    zone = os.environ.get("TZ", "")
    try:
        zone_named(zone)
    except ValueError:
        return Options()
    return Options(zone=zone)


CONTROLLER = ControllerSpec(
    name="advancedcronjob-controller",
    primary=CRON_JOBS,
    watches=(JOBS, BROADCAST_JOBS, LISTS),
    idle_first=True,  # many are due in the same second: starts do not wait for statuses of other starts
    options=spec.Options(Options, options),
    build=Gatherer,
    plan=plan,
)
