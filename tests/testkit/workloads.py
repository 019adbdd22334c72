"""Builds workloads and their revisions; the kinds' own builders add their words to `Workload`."""

from datetime import datetime
from typing import Any, Generic, Self, TypeVar

import msgspec

from flotilla_common.api.core import ControllerRevision
from flotilla_common.workload.hashing import revision_data
from tests.testkit.documents import Json, decoded, metadata

T = TypeVar("T")


class Workload(Generic[T]):
    """An object of a kind in the making: its methods change it and return it, `build` returns the struct."""

    def __init__(self, kind: type[T], name: str, *, spec: Json, status: Json, **meta: Any) -> None:
        self.kind = kind
        self.spec = spec
        self.status = status
        self.metadata: Json = metadata(name, "default", uid=f"uid-{name}", version=7, generation=1, **meta)

    def set(self, **members: Any) -> Self:
        """Set members of the spec."""
        self.spec.update(members)
        return self

    def rolling(self, **members: Any) -> Self:
        """Set members of `updateStrategy.rollingUpdate`."""
        self.spec["updateStrategy"]["rollingUpdate"].update(members)
        return self

    def on_delete(self) -> Self:
        """Leave updates to whoever deletes pods."""
        return self.set(updateStrategy={"type": "OnDelete"})

    def in_place(self, *, only: bool = False, grace: int = 0) -> Self:
        """Update in place where that is possible."""
        policy = "InPlaceOnly" if only else "InPlaceIfPossible"
        return self.rolling(podUpdatePolicy=policy, inPlaceUpdateStrategy={"gracePeriodSeconds": grace})

    def hook(self, name: str, *, not_ready: bool = False) -> Self:
        """Let label `hold: <name>` hold pods in a state."""
        hook = {"labelsHandler": {"hold": name}, "markPodNotReady": not_ready}
        self.spec.setdefault("lifecycle", {})[name] = hook
        return self

    def stored(self, **members: Any) -> Self:
        """Set members of the status."""
        self.status.update(members)
        return self

    def deleted(self, now: datetime) -> Self:
        """Mark the object as deleted."""
        self.metadata["deletionTimestamp"] = now
        return self

    def document(self) -> Json:
        """Return the object as the apiserver has it."""
        return {"metadata": self.metadata, "spec": self.spec, "status": self.status}

    def build(self) -> T:
        """Return the object as services read it."""
        return decoded(self.document(), self.kind)


def raw(document: object) -> msgspec.Raw:
    """Return the document as encoded JSON."""
    return msgspec.Raw(msgspec.json.encode(document))


def stored_revision(name: str, number: int, content: Json, **meta: Any) -> ControllerRevision:
    """Return the stored revision of a pod template."""
    named = metadata(name, "default", version=1, **({"uid": f"uid-{name}"} | meta))
    data = msgspec.Raw(revision_data(raw(content)))
    return decoded({"metadata": named, "revision": number, "data": data}, ControllerRevision)
