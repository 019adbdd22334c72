"""Which names can be foreseen.

Most names follow from what is made: ordinals, hashes of templates. Others hang on what only the real apply brings, or
the service remembers: the views of the kinds say which.
"""

from collections.abc import Callable, Collection, Sequence

import msgspec

from flotilla_cli.views import view_of_owner
from flotilla_cli.views.kindview import Made
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.keys import INSTANCE_ID_LABEL
from flotilla_common.api.meta import metadata_of
from flotilla_common.model.writes import Write


def unforeseeable(claims: Sequence[Json], owners: Collection[str]) -> Callable[[Write], bool]:
    """Return whether the object that a write makes has a name that nobody knows yet. `claims`: those that there are,
    whose instance ids are used again; `owners`: the uids of the objects that there are before the apply."""
    instances = frozenset(instance_of(claim) for claim in claims)

    def has_unknown_name(write: Write) -> bool:
        document = write.after or {}
        instance = instance_of(document)
        for owner in metadata_of(msgspec.json.encode(document)).owner_references:
            made = Made(
                kind=write.action.resource.kind,
                has_new_instance=instance != "" and instance not in instances,
                has_new_owner=owner.uid not in owners,
            )
            if (view := view_of_owner(owner)) is not None and view.has_unknown_name(made):
                return True
        return False

    return has_unknown_name


def instance_of(document: Json) -> str:
    """Return the instance id of a CloneSet's pod or claim; empty for everything else."""
    return strings(member(document, "metadata").get("labels")).get(INSTANCE_ID_LABEL, "")
