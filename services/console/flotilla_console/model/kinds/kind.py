"""The declaration of a kind on the pages."""

from collections.abc import Callable

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.resources import Resource
from flotilla_console.model.reading import Reading


class ConsoleKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind with a row in the fleet and a page for each object."""

    resource: Resource
    read: Callable[[Json, Json], Reading]
    """Reads spec and status. Both may hold anything."""
    belongs: Callable[[str, str], bool] = str.__eq__
    """Reports whether a pod with this revision label is on the revision of this name."""
    has_revisions: bool = False
    """Its pods are on its ControllerRevisions, by their revision label."""
    listed: bool = True
    """It is in the fleet; others have pages only."""
    has_pods: bool = False
    """Its objects own pods, directly or through others."""
