"""A workload on the pages."""

import msgspec

from flotilla_common.api.meta import ObjectMeta
from flotilla_console.model.kinds.kind import ConsoleKind
from flotilla_console.model.reading import Reading, Verdict


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """An object of a kind with a page: its metadata, numbers and state."""

    kind: ConsoleKind
    metadata: ObjectMeta
    reading: Reading
    verdict: Verdict

    @property
    def group(self) -> str:
        """Return the API group."""
        return self.kind.resource.group

    @property
    def plural(self) -> str:
        """Return the plural of the kind."""
        return self.kind.resource.plural

    @property
    def namespace(self) -> str:
        """Return the namespace; empty for cluster-scoped objects."""
        return self.metadata.namespace

    @property
    def name(self) -> str:
        """Return the name."""
        return self.metadata.name

    @property
    def created(self) -> float:
        """Return the creation time in seconds since 1970; 0 if it is not known."""
        moment = self.metadata.creation_timestamp
        return 0.0 if moment is None else moment.timestamp()
