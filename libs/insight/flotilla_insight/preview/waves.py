"""Makes waves of the writes of each tick of a simulation."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Create, Plan
from flotilla_common.model.writes import Write
from flotilla_insight.preview.observer import ANSWERED, ENDED, GONE, READY, RESTARTED, ClusterEvent
from flotilla_insight.preview.report import Wave
from flotilla_insight.preview.simulation import Tick
from flotilla_insight.preview.steps import DELETE, MARK, RECREATE, Step, restart_of, step_of

_WORDS = {"Pod": "pod", "PersistentVolumeClaim": "claim", "ImagePullJob": "job"}


class WaveBuilder:
    """Builds the waves of one simulation, tick by tick.

    An object whose name is not known in advance (`unnamed`) is called `new pod 1`, and so on.
    """

    def __init__(self, namespace: str, unnamed: Callable[[Write], bool]) -> None:
        self._namespace = namespace
        self._unnamed = unnamed
        self._aliases: dict[str, str] = {}
        self._marked: dict[str, Step] = {}
        self._counts: dict[str, int] = {}
        self._events: dict[str, dict[str, None]] = {}  # names by sort of event
        self._since: datetime | None = None  # the last event, or the last wave
        self._waited = False  # time had to pass since
        self.waves: list[Wave] = []

    def add(self, tick: Tick, events: Sequence[ClusterEvent]) -> None:
        """Add the writes of a tick; `events`: the events before it."""
        self._since = self._since or tick.at
        self._waited = self._waited or tick.waited
        for event in events:
            if event.what == RESTARTED:
                self._add_wave(tick, [restart_of(event.object, event.containers)])
                continue
            self._events.setdefault(event.what, {})[self.called(event.object["metadata"]["name"])] = None
            self._since = tick.at
        self._add_wave(tick, self._steps(tick))

    def _add_wave(self, tick: Tick, steps: Sequence[Step]) -> None:
        """Add a wave if it has steps.

        Seconds count only for waits that a planner set: how long the cluster itself takes is not known.
        """
        if not steps:
            return
        events = {what: tuple(self._events.get(what, ())) for what in (READY, GONE, ANSWERED, ENDED)}
        seconds = int((tick.at - (self._since or tick.at)).total_seconds()) if self._waited else 0
        self.waves.append(Wave(**events, seconds=seconds, steps=tuple(steps)))
        self._events, self._since, self._waited = {}, tick.at, False

    def with_aliases(self, plan: Plan) -> Plan:
        """Return the plan with aliases in its reasons."""
        reasons = tuple(
            msgspec.structs.replace(
                one, message=self.called(one.message), objects=tuple(self.called(name) for name in one.objects)
            )
            for one in plan.reasons
        )
        return msgspec.structs.replace(plan, reasons=reasons)

    def called(self, text: str) -> str:
        """Replace the provisional names in the text with their aliases."""
        for name, alias in sorted(self._aliases.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(name, alias)
        return text

    def _steps(self, tick: Tick) -> list[Step]:
        found: dict[Step, None] = {}
        for write in tick.writes:
            if isinstance(write.action, Create) and self._unnamed(write):
                self._name(write.action.resource.kind, write.action.name)
            step = step_of(write)
            if step is not None:
                self._add_to(found, step)
        return [self._placed(step) for step in found]

    def _add_to(self, found: dict[Step, None], step: Step) -> None:
        """Add a step, merged with an earlier one if they belong together.

        A pod marked for its update and then deleted is recreated. The writes of one in-place update are one step.
        """
        if step.do == MARK:
            self._marked[step.name] = step
        if step.do == DELETE and (mark := self._marked.pop(step.name, None)) is not None:
            found.pop(mark, None)
            step = msgspec.structs.replace(mark, do=RECREATE)
        last = next(reversed(found), None)
        if last is not None and step.kind == POD.kind and _is_same(last, step):
            del found[last]
            step = msgspec.structs.replace(step, changes=(*last.changes, *step.changes))
        found[step] = None

    def _name(self, kind: str, name: str) -> None:
        word = _WORDS.get(kind, kind)
        self._counts[word] = self._counts.get(word, 0) + 1
        self._aliases[name] = f"new {word} {self._counts[word]}"

    def _placed(self, step: Step) -> Step:
        if step.namespace not in ("", self._namespace):
            step = msgspec.structs.replace(step, elsewhere=True)
        alias = self._aliases.get(step.name)
        if alias is None:
            return step
        return msgspec.structs.replace(step, name="", alias=alias)


def _is_same(one: Step, other: Step) -> bool:
    return (one.do, one.kind, one.namespace, one.name) == (other.do, other.kind, other.namespace, other.name)
