"""Lifecycle: pods change their state only along the arrows of common.md §8.4, and hooks hold them."""

from collections.abc import Iterator

from flotilla_common.api.core import Pod
from flotilla_common.api.workload import LifecycleHook
from flotilla_common.workload.lifecycle import fully_hooked, hooked
from tests.simulation.oracles.availability import images
from tests.simulation.oracles.terms import Terms
from tests.simulation.oracles.view import Commit, View

ARROWS = {
    "": {"Normal", "PreparingNormal", "PreparingUpdate", "Updating", "PreparingDelete"},
    "PreparingNormal": {"Normal", "PreparingUpdate", "Updating", "PreparingDelete"},
    "Normal": {"PreparingUpdate", "Updating", "PreparingDelete"},
    "PreparingUpdate": {"Updating", "Updated", "Normal", "PreparingDelete"},
    "Updating": {"Updated", "Normal", "PreparingDelete"},
    "Updated": {"Normal", "PreparingUpdate", "PreparingDelete"},
    "PreparingDelete": {"PreparingNormal"},
}
"""The states that may follow a state by our writes."""


def arrows(view: View, commit: Commit) -> Iterator[str]:
    """Check that every change of state by us is an arrow of the table.

    A new pod begins as PreparingNormal; a pod with an ordinal as Normal if no hook applies; one of a node or of a job
    without a state.
    """
    if not commit.ours or commit.pod is None or commit.workload is None:
        return
    if commit.before is None:
        lately = commit.workload.recent_terms(view.since)
        if all(commit.pod.state != _first(terms, commit.pod) for terms in lately):
            yield f"makes a pod in state {commit.pod.state!r}"
    elif commit.before.state != commit.pod.state and commit.pod.state not in ARROWS.get(commit.before.state, ()):
        yield f"moves a pod from state {commit.before.state!r} to {commit.pod.state!r}"


def hooks(view: View, commit: Commit) -> Iterator[str]:
    """Check that a pod held by a hook is neither deleted, nor updated, nor marked Normal (common.md §8.1)."""
    before, workload = commit.before, commit.workload
    if not commit.ours or before is None or workload is None or workload.ended is not None:
        return
    terms = list(workload.recent_terms(view.since))
    if commit.marked_deleted and all(hooked(_hook(one, "pre_delete"), before) for one in terms):
        yield "deletes a pod that its preDelete hook holds"
    if commit.pod is None:
        return
    changed = images(before) != images(commit.pod)
    if changed and before.state != "Updating" and all(hooked(_hook(one, "in_place_update"), before) for one in terms):
        yield "updates a pod that its inPlaceUpdate hook holds"
    if before.state == "PreparingNormal" and commit.pod.state == "Normal" and all(_kept(one, before) for one in terms):
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
