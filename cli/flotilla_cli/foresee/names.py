"""Which names can be foreseen.

Most names follow from what is made: ordinals, hashes of templates. Others hang on what only the real apply brings, or
the service remembers: the ids of a CloneSet's new pods on its next version, those of a DaemonSet's on the pods that its
nodes have had, those of a BroadcastJob's likewise, those of a new list's jobs on its uid.
"""

from collections.abc import Callable

from flotilla_cli.imagined.writes import Write
from flotilla_common.api import keys
from flotilla_common.api.documents import Json, mappings, member, strings
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.resources import POD


def unforeseeable(claims: list[Json], *, is_new: bool) -> Callable[[Write], bool]:
    """Whether the object that a write makes has a name that nobody knows yet. `claims`: those that there are, whose ids
    are used again; `is_new`: the owners of jobs are made by the apply, or after it."""
    known = {instance_of(claim) for claim in claims}

    def unnamed(write: Write) -> bool:
        made = write.after or {}
        owners = {owner.get("kind") for owner in mappings(member(made, "metadata").get("ownerReferences"))}
        if CLONE_SET.kind in owners:
            return instance_of(made) != "" and instance_of(made) not in known
        if {DAEMON_SET.kind, BROADCAST_JOB.kind} & owners:
            return write.action.resource == POD
        return is_new and IMAGE_LIST_PULL_JOB.kind in owners

    return unnamed


def instance_of(document: Json) -> str:
    """The instance id of a CloneSet's pod or claim; empty for everything else."""
    return strings(member(document, "metadata").get("labels")).get(keys.INSTANCE_ID_LABEL, "")
