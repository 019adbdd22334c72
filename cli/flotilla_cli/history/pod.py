"""The story of a pod: its own steps, and each write on it."""

from flotilla_cli.history.records import Pod, Record
from flotilla_cli.history.steps import Step
from flotilla_cli.history.story import Story, Told, begins
from flotilla_cli.traffic.act import Act


def pod_story(record: Record) -> Story:
    """Of a pod, in one chapter; without any where nothing is known of it."""
    pod = record.pods.get(record.name, Pod())
    own = {"created": pod.created, "scheduled": pod.scheduled, "Ready": pod.ready}
    steps = [Step(at=at, tone="note", text=f"{what} (known to the second)") for what, at in own.items() if at]
    steps = sorted([*steps, *map(_write, record.writes)], key=lambda step: step.at)
    older = record.begins is not None and (pod.created is None or pod.created < record.begins)
    return Story(
        kind=record.kind,
        namespace=record.namespace,
        name=record.name,
        notes=[begins(record.begins)] if older and record.begins else [],
        chapters=[_chapter(steps)] if steps else [],
    )


def _chapter(steps: list[Step]) -> Told:
    return Told(
        began=steps[0].at,
        generation=0,
        title="what was done to it",
        changes=[],
        steps=steps,
        done=None,
        totals=None,
    )


def _write(write: Act) -> Step:
    said = f": {write.message}" if write.message else ""
    what = f"{write.action} {write.subresource}".rstrip()
    whose = f" for {write.owner.kind} {write.owner.name}" if write.owner.name else ""
    text = f"{write.service}: {what}, {write.cause}{whose} → {write.outcome}{said}"
    return Step(at=write.at, tone="write" if write.ok else "bad", text=text)
