"""The identity of the planned object in events, on the bus and in logs."""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import Resource


class ObjectRef(msgspec.Struct, frozen=True):
    """One object of one kind at one version."""

    resource: Resource
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    field_path: str = ""  # the part of the object that is meant: spec.containers{app}

    @classmethod
    def of(cls, resource: Resource, meta: ObjectMeta) -> "ObjectRef":
        """Return the subject for an object's metadata."""
        return cls(resource, meta.namespace, meta.name, meta.uid, meta.resource_version, meta.generation)

    @property
    def key(self) -> str:
        """`namespace/name`, as in logs."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def reference(self) -> Mapping[str, str]:
        """Return an ObjectReference, for Events."""
        part = {"fieldPath": self.field_path} if self.field_path else {}
        return part | {
            **self.resource.type_meta,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
