"""The start of a run that is due: whether the concurrency policy lets it start, and what has to go before
(advancedcronjob.md §4.5, §4.6)."""

from datetime import datetime

from flotilla_common.api.kinds.advancedcronjob.types import ALLOW, FORBID, REPLACE
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.meta import rfc3339
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Intent, State
from flotilla_common.control.wording import named
from flotilla_common.control.writes import delete_of
from flotilla_jobs.advancedcronjob.bodies import child_name, creation
from flotilla_jobs.advancedcronjob.context import PlanContext

FAILED_CREATE = "FailedCreate"
"""The event of a run that could not be started."""


NAME_TAKEN = "NameTaken"
"""The reason of a run that is skipped: refused creates that met another object have the same."""


def plan_run(context: PlanContext, run: datetime, draft: Draft) -> None:
    """Start the run, or say why not. Its child may be there already without saying when it was due."""
    job, active = context.job, context.children.active
    name, policy = child_name(job, run), policy_of(context)
    if any(child.metadata.name == name for child in context.snapshot.children):
        return
    if name in context.snapshot.taken:
        _skip(context, name, run, draft)
    elif active and policy == FORBID:
        text = f"the run of {rfc3339(run)} is put off: concurrencyPolicy is Forbid, and {named(active)} has not ended"
        draft.reason(State.WAITING, "ForbiddenByPolicy", text, active)
    else:
        if policy == REPLACE:
            _replace(context, run, draft)
        draft.stage([(creation(job, run, context.local),)])
        draft.reason(State.PROGRESSING, "Starting", f"starting the run of {rfc3339(run)} as {name}", [name])


def policy_of(context: PlanContext) -> str:
    """The concurrency policy, with the default that admission fills in."""
    pulls = context.job.spec.template.chosen[0] == IMAGE_LIST_PULL_JOB
    return context.job.spec.concurrency_policy or (REPLACE if pulls else ALLOW)


def tell_failure(context: PlanContext, draft: Draft) -> None:
    """The pass before could not start a run: tell it once, however often it is tried."""
    if context.snapshot.failure:
        context.tell_once(draft, FAILED_CREATE, context.snapshot.failure)


def _skip(context: PlanContext, name: str, run: datetime, draft: Draft) -> None:
    kind = context.job.spec.template.chosen[0].kind
    text = f"the run of {rfc3339(run)} is skipped: {kind} {name} exists and belongs to somebody else"
    draft.reason(State.STUCK, NAME_TAKEN, text, [name])
    context.tell_once(draft, FAILED_CREATE, text)


def _replace(context: PlanContext, run: datetime, draft: Draft) -> None:
    """Delete what is active. The run starts once the apiserver has taken that, not once the pods are gone."""
    resource, active = context.job.spec.template.chosen[0], context.children.active
    if active:
        text = f"replacing {named(active)} by the run of {rfc3339(run)}: concurrencyPolicy is Replace"
        draft.reason(State.PROGRESSING, "Replacing", text, active)
    draft.stage(
        [
            (delete_of(resource, child.metadata, Intent.REPLACE, f"replaced by the run of {rfc3339(run)}"),)
            for child in active
            if child.metadata.deletion_timestamp is None
        ]
    )
