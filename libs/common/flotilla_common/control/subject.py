"""The object that is being planned, as events, the bus and logs name it."""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import Resource


class Subject(msgspec.Struct, frozen=True):
    """One object of one kind at one version."""

    resource: Resource
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    field_path: str = ""  # the part of it that is meant: spec.containers{app}

    @classmethod
    def of(cls, resource: Resource, meta: ObjectMeta) -> "Subject":
        """The subject that an object's metadata describes."""
        return cls(resource, meta.namespace, meta.name, meta.uid, meta.resource_version, meta.generation)

    @property
    def key(self) -> str:
        """`namespace/name`, as logs say it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def reference(self) -> Mapping[str, str]:
        """An ObjectReference, for Events."""
        part = {"fieldPath": self.field_path} if self.field_path else {}
        return part | {
            **self.resource.type_meta,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
