"""What the service said and did, pass by pass: messages that bear the same trace."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from flotilla_cli.bundle.records import Bundle, Recorded
from flotilla_cli.tree.why import Why


class Act(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A write, as the service published it."""

    at: datetime
    service: str = ""
    replica: str = ""
    trace: str = ""
    action: str = ""
    subresource: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    cause: str = ""
    outcome: str = ""
    message: str = ""
    latency_ms: float = 0.0
    resource_version: str = ""


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One pass of a controller over the object."""

    trace: str
    replica: str
    at: datetime  # when it planned, on the service's clock
    position: int  # of its first message among those that were heard
    why: Why | None  # None: its reasons and numbers were those of the pass before it
    acts: tuple[Act, ...]

    @property
    def complete(self) -> bool:
        """Everything that it sent went well, so nothing was held back."""
        return all(act.outcome in ("Ok", "NotFound") for act in self.acts)


def act_of(recorded: Recorded) -> Act | None:
    """The write that a message tells of, if it does."""
    return msgspec.convert(recorded.body, Act) if recorded.subject.startswith("act.v1.") else None


def why_of(recorded: Recorded) -> Why | None:
    """The reasons that a message tells, if it does."""
    return msgspec.convert(recorded.body, Why) if recorded.subject.startswith("why.v1.") else None


def passes(bundle: Bundle) -> list[Pass]:
    """The passes that were heard from their beginning, in order."""
    earlier = {trace for trace in map(_trace, bundle.known) if trace}
    heard: dict[str, list[int]] = {}
    for position, recorded in enumerate(bundle.heard):
        trace = _trace(recorded)
        if trace and trace not in earlier:
            heard.setdefault(trace, []).append(position)
    found = [_pass(trace, positions, bundle.heard) for trace, positions in heard.items()]
    return [one for one in found if one.why is not None or one.at > bundle.begin]


def last_why(messages: Sequence[Recorded]) -> Why | None:
    """The newest reasons among the messages."""
    return next((why for why in map(why_of, reversed(messages)) if why is not None), None)


def _pass(trace: str, positions: Sequence[int], heard: Sequence[Recorded]) -> Pass:
    whys = [why for why in (why_of(heard[position]) for position in positions) if why is not None]
    acts = [act for act in (act_of(heard[position]) for position in positions) if act is not None]
    why = whys[0] if whys else None
    began = min((act.at - timedelta(milliseconds=act.latency_ms) for act in acts), default=heard[positions[0]].at)
    return Pass(
        trace=trace,
        replica=why.replica if why else acts[0].replica,
        at=why.at if why and why.at else began,
        position=positions[0],
        why=why,
        acts=tuple(acts),
    )


def _trace(recorded: Recorded) -> str:
    if recorded.subject.startswith(("act.v1.", "why.v1.")):
        trace = recorded.body.get("trace")
        return trace if isinstance(trace, str) else ""
    return ""
