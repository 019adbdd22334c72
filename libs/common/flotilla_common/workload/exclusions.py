"""Which nodes get no pod of a kind with a pod per node, and why, in one sentence."""

from collections.abc import Mapping, Sequence

from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import State
from flotilla_common.control.wording import named, nodes_word

_TOLD = 3
"""Reasons that are told."""


def explain_excluded(draft: Draft, excluded: Mapping[str, Sequence[str]]) -> None:
    """Give the reason NodesExcluded. `excluded`: names of nodes by why they get none."""
    if not excluded:
        return
    groups = sorted(excluded.items(), key=lambda group: (-len(group[1]), group[0]))
    names = [name for _, members in groups for name in sorted(members)]
    told = "; ".join(f"{why} ({named(sorted(members))})" for why, members in groups[:_TOLD])
    more = f"; and {len(groups) - _TOLD} more reasons" if len(groups) > _TOLD else ""
    draft.reason(State.NOTE, "NodesExcluded", f"no pod goes to {nodes_word(len(names))}: {told}{more}", names)
