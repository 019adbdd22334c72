"""Renders a replay for people, and as JSON."""

from collections.abc import Sequence
from datetime import datetime

from rich.text import Text

from flotilla_cli.bundle.records import Bundle
from flotilla_cli.replay.compare import AFTER_STATUS, STATUS, Planned
from flotilla_cli.replay.replayer import ReplayStep
from flotilla_common.api.documents import Json

WRITES_SHOWN = 20
"""Number of writes of one pass that are shown; JSON has all of them."""


def render(bundle: Bundle, steps: Sequence[ReplayStep], missing: int) -> Text:
    """Render all steps and a summary."""
    text = _heading(bundle)
    for number, step in enumerate(steps, 1):
        _append_step(text, step, number)
    different = sum(bool(step.differences) for step in steps)
    if missing:
        text.append(f"{missing} versions left by writes are not in the file: later plans may differ\n")
    if different:
        text.append(f"{different} of {len(steps)} decisions differ\n", "red")
    else:
        text.append(f"all {len(steps)} decisions match those of the service\n", "green")
    return text


def document(bundle: Bundle, steps: Sequence[ReplayStep], missing: int) -> Json:
    """Return the same with whole plans, for programs."""
    return {
        "bundle": bundle.header,
        "begin": bundle.begin,
        "end": bundle.end,
        "missingVersions": missing,
        "differing": sum(bool(step.differences) for step in steps),
        "steps": [_step_document(step) for step in steps],
    }


def _heading(bundle: Bundle) -> Text:
    header = bundle.header
    place = f"{header.namespace}/{header.name}" if header.namespace else header.name
    text = Text(f"{header.resource.kind} {place}", "bold")
    seconds = (bundle.end - bundle.begin).total_seconds()
    text.append(f"  recorded {bundle.begin:%Y-%m-%d %H:%M:%S} UTC for {seconds:.0f}s by {header.version}\n", "default")
    if header.planning is None:
        text.append("no service published its settings: planned with the defaults\n", "yellow")
    else:
        options = ", ".join(f"{name}={value}" for name, value in header.planning.options.items())
        text.append(f"gates {header.planning.gates or 'by default'}; {options}\n", "dim")
    return text


def _append_step(text: Text, step: ReplayStep, number: int) -> None:
    who = f"pass {step.done.trace} of {step.done.replica}" if step.done else "the decision for the final state"
    text.append(f"\n#{number} {_clock(step.at)}  ", "bold").append(f"{who}, generation {step.generation}", "default")
    text.append(f", {step.behind} changes behind\n" if step.behind else "\n", "dim")
    for reason in step.plan.reasons:
        text.append("  • ", "yellow").append(reason.sentence).append(f"  [{reason.code}]\n", "dim")
    numbers = " ".join(f"{name}={number}" for name, number in step.plan.numbers.items())
    text.append(f"  {numbers}\n" if numbers else "", "dim")
    for write in step.writes[:WRITES_SHOWN]:
        _append_write(text, write)
    if len(step.writes) > WRITES_SHOWN:
        text.append(f"  … and {len(step.writes) - WRITES_SHOWN} more writes\n", "dim")
    if step.plan.wake_at is not None:
        text.append(f"  reconciles again at {_clock(step.plan.wake_at)}\n")
    for difference in step.differences:
        text.append("  ≠ ", "red").append(f"{difference}\n")


def _append_write(text: Text, write: Planned) -> None:
    title = " ".join(filter(None, (write.action, write.kind, write.name, write.subresource)))
    text.append(f"  {title}  ").append(write.cause, "dim")
    not_made = "postponed" if write.part in (STATUS, AFTER_STATUS) else "not made"
    text.append(f" → {write.outcome or not_made}", "green" if write.outcome == "Ok" else "default")
    text.append(f": {write.message}\n" if write.message else "\n")


def _step_document(step: ReplayStep) -> Json:
    done = step.done
    return {
        "at": step.at,
        "trace": done.trace if done else "",
        "replica": done.replica if done else "",
        "generation": step.generation,
        "resourceVersion": step.resource_version,
        "changesBehind": step.behind,
        "writes": step.writes,
        "plan": step.plan,
        "said": done.why if done else None,
        "did": done.acts if done else (),
        "differences": step.differences,
    }


def _clock(at: datetime) -> str:
    return f"{at:%H:%M:%S.%f}"[:-3]
