"""Makes waves of what was written in each moment of a play."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_cli.foresee.play import Moment
from flotilla_cli.foresee.steps import CREATE, DELETE, MARK, RECREATE, Step, is_unnamed, step_of
from flotilla_cli.foresee.story import Wave
from flotilla_common.api.documents import Json


class Teller:
    """Tells one play, moment by moment. Pods whose names nobody can know before are called `new pod 1`, and so on."""

    def __init__(self, instance_ids: set[str]) -> None:
        self._known = instance_ids
        self._aliases: dict[str, str] = {}
        self._marked: dict[str, Step] = {}
        self._counts: dict[str, int] = {}
        self._news: list[tuple[str, str]] = []
        self._since: datetime | None = None
        self.waves: list[Wave] = []

    def tell(self, moment: Moment, news: Sequence[tuple[str, Json]]) -> None:
        """Add what is done in a moment, `news` being what happened to pods before it."""
        for what, pod in news:
            self._news.append((what, self.called(pod["metadata"]["name"])))
            self._since = moment.at
        steps = self._steps(moment)
        if not steps:
            return
        waited = 0 if self._since is None else int((moment.at - self._since).total_seconds())
        ready = dict.fromkeys(name for what, name in self._news if what == "ready")
        gone = dict.fromkeys(name for what, name in self._news if what == "gone")
        self.waves.append(Wave(ready=tuple(ready), gone=tuple(gone), seconds=waited, steps=tuple(steps)))
        self._news, self._since = [], moment.at

    def called(self, text: str) -> str:
        """The text with aliases for names that are only imagined."""
        for name, alias in sorted(self._aliases.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(name, alias)
        return text

    def _steps(self, moment: Moment) -> list[Step]:
        found: dict[tuple[str, ...], Step] = {}
        for write in moment.writes:
            if is_unnamed(write, self._known):
                self._name(write.action.resource.kind, write.action.name)
            step = step_of(write)
            if step is not None:
                step = self._settled(step, found)
                found[_identity(step)] = step
        return [self._anonymous(step) for step in found.values()]

    def _settled(self, step: Step, found: dict[tuple[str, ...], Step]) -> Step:
        """A pod that is marked for its update, and deleted for it, is recreated."""
        if step.kind != "Pod":
            return step
        if step.do == MARK:
            self._marked[step.name] = step
        if step.do == DELETE:
            mark = self._marked.pop(step.name, None)
            if mark is not None:
                found.pop(_identity(mark), None)
            cause = mark.cause if mark is not None else step.cause
            if cause.startswith("recreate"):
                return msgspec.structs.replace(step, do=RECREATE, cause=cause)
        return step

    def _name(self, kind: str, name: str) -> None:
        word = "pod" if kind == "Pod" else "claim"
        self._counts[word] = self._counts.get(word, 0) + 1
        self._aliases[name] = f"new {word} {self._counts[word]}"

    def _anonymous(self, step: Step) -> Step:
        alias = self._aliases.get(step.name)
        if alias is None:
            return step
        return msgspec.structs.replace(step, name="", alias=alias, node="" if step.do == CREATE else step.node)


def _identity(step: Step) -> tuple[str, ...]:
    """Steps of one wave that are one: the same is done to the same object for the same cause."""
    return step.do, step.kind, step.namespace, step.name, step.cause
