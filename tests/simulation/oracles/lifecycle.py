"""Lifecycle: pods move between states only along the arrows of common.md §8.4, and hooks hold what they hold."""

from collections.abc import Iterator

from flotilla_common.api.core import Pod
from flotilla_common.api.rollout import LifecycleHook
from flotilla_common.workload.lifecycle import fully_hooked, hooked
from tests.simulation.oracles.availability import images
from tests.simulation.oracles.scene import Scene, Step
from tests.simulation.oracles.terms import Terms

ARROWS = {
    "": {"Normal", "PreparingNormal", "PreparingUpdate", "Updating", "PreparingDelete"},
    "PreparingNormal": {"Normal", "PreparingUpdate", "Updating", "PreparingDelete"},
    "Normal": {"PreparingUpdate", "Updating", "PreparingDelete"},
    "PreparingUpdate": {"Updating", "Updated", "Normal", "PreparingDelete"},
    "Updating": {"Updated", "Normal", "PreparingDelete"},
    "Updated": {"Normal", "PreparingUpdate", "PreparingDelete"},
    "PreparingDelete": {"PreparingNormal"},
}
"""From a state to those that may follow it by our doing."""


def arrows(scene: Scene, step: Step) -> Iterator[str]:
    """Every change of state by us is an arrow of the table; a new pod begins as PreparingNormal, a numbered one as
    Normal if no hook has to be asked, one of a node or of a job without a state."""
    if not step.ours or step.pod is None or step.workload is None:
        return
    if step.before is None:
        lately = step.workload.terms_lately(scene.since)
        if all(step.pod.state != _first(terms, step.pod) for terms in lately):
            yield f"makes a pod in state {step.pod.state!r}"
    elif step.before.state != step.pod.state and step.pod.state not in ARROWS.get(step.before.state, ()):
        yield f"moves a pod from state {step.before.state!r} to {step.pod.state!r}"


def hooks(scene: Scene, step: Step) -> Iterator[str]:
    """What a hook holds is neither deleted, nor updated, nor called normal (common.md §8.1)."""
    before, workload = step.before, step.workload
    if not step.ours or before is None or workload is None or workload.ended is not None:
        return
    terms = list(workload.terms_lately(scene.since))
    if step.marked_deleted and all(hooked(_hook(one, "pre_delete"), before) for one in terms):
        yield "deletes a pod that its preDelete hook holds"
    if step.pod is None:
        return
    changed = images(before) != images(step.pod)
    if changed and before.state != "Updating" and all(hooked(_hook(one, "in_place_update"), before) for one in terms):
        yield "updates a pod that its inPlaceUpdate hook holds"
    if before.state == "PreparingNormal" and step.pod.state == "Normal" and all(_kept(one, before) for one in terms):
        yield "calls a pod normal that lacks a part of its preNormal hook"


def _first(terms: Terms, pod: Pod) -> str:
    if terms.stateless or terms.per_node is not None:
        return ""
    return "PreparingNormal" if terms.numbered is None or _kept(terms, pod) else "Normal"


def _kept(terms: Terms, pod: Pod) -> bool:
    hook = _hook(terms, "pre_normal")
    return hook is not None and not fully_hooked(hook, pod)


def _hook(terms: Terms, name: str) -> LifecycleHook | None:
    return getattr(terms.lifecycle, name) if terms.lifecycle is not None else None
