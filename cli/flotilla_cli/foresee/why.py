"""Why a pod is recreated, and not updated where it runs."""

import msgspec

from flotilla_cli.foresee.steps import RECREATE, Step
from flotilla_cli.foresee.story import Wave
from flotilla_cli.views.kindview import UpdatePolicy
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.resources import POD, REVISION
from flotilla_common.gates import Gates
from flotilla_common.model.store import Objects
from flotilla_common.workload.inplace.calculate import hindrances


class Hindrances:
    """Looks at the revisions of pods as they are before the play."""

    def __init__(self, objects: Objects, workload: Json, policy: UpdatePolicy, gates: Gates) -> None:
        self._objects = objects
        self._gates = gates
        rolling = member(workload, "spec", "updateStrategy", "rollingUpdate")
        chosen = text(rolling.get(policy.field)) or policy.never
        self._forbidden = f"{policy.field} is {policy.never}" if chosen == policy.never else ""
        self._name = text(member(workload, "metadata").get("name"))
        self._known: dict[tuple[str, str], str] = {}

    def explained(self, wave: Wave) -> Wave:
        """The wave with the reasons of its recreations."""
        return msgspec.structs.replace(wave, steps=tuple(self._step(step) for step in wave.steps))

    def _step(self, step: Step) -> Step:
        if step.do != RECREATE or step.kind != POD.kind:
            return step
        return msgspec.structs.replace(step, why=self._why(step))

    def _why(self, step: Step) -> str:
        if self._forbidden:
            return self._forbidden
        pair = (step.revision, step.target)
        if pair not in self._known:
            self._known[pair] = self._between(step.namespace, *pair)
        return self._known[pair]

    def _between(self, namespace: str, old: str, new: str) -> str:
        before, after = (self._template(namespace, name) for name in (old, new))
        if not before or not after:
            return f"the revision {old if not before else new} cannot be read"
        return hindrances(before, after, gates=self._gates) or "the revisions do not allow it"

    def _template(self, namespace: str, name: str) -> Json:
        """Pods name their revision in full, or by its hash."""
        whole, short = (self._objects.get(REVISION, namespace, one) for one in (name, f"{self._name}-{name}"))
        return member(whole or short or {}, "data", "spec", "template")
