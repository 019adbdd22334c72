"""Types that all Kubernetes objects share: metadata, owner references, selectors, conditions, times.

The types are partial on purpose: only members that Flotilla reads are decoded. `Object` is the bound for everything
that a mirror table can hold. Times are aware datetimes; arithmetic with durations of users does not fail at the ends of
the calendar.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Annotated, Any, Generic, Protocol, TypeVar, dataclass_transform, overload

import msgspec

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with a zone. Decoding refuses times without one, as they cannot be compared with others."""

EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def later(moment: datetime, by: float | timedelta) -> datetime:
    """Return the moment that many seconds later, or earlier if negative, clamped to the calendar."""
    seconds = by.total_seconds() if isinstance(by, timedelta) else by
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return LATEST if seconds > 0 else EARLIEST


def in_zone(moment: datetime, zone: tzinfo = UTC) -> datetime:
    """Return the moment in the zone, clamped to the calendar."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return LATEST if moment.year > 1 else EARLIEST


T = TypeVar("T")


class struct_cached_property(Generic[T]):  # noqa: N801 - used like functools.cached_property
    """A property whose value is cached in the instance's `__dict__`, from where later reads take it directly."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[object]) -> "struct_cached_property[T]": ...

    @overload
    def __get__(self, instance: object, owner: type[object] | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type[object] | None = None) -> "struct_cached_property[T] | T":
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


IntOrString = int | str


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Model(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of all API types: immutable, camelCase in JSON, absent members take their defaults."""


class OwnerReference(Model):
    """A reference from a dependent to its owner; the one with `controller` set manages the object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class FieldOwner(Model):
    """An entry of managedFields, without the fields."""

    manager: str = ""
    operation: str = ""  # Apply or Update


class ObjectMeta(Model):
    """The metadata of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None  # when the grace period is over
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []
    managed_fields: list[FieldOwner] = []  # from the bus only if the object was written by server-side apply

    @property
    def key(self) -> tuple[str, str]:
        """Return namespace and name."""
        return self.namespace, self.name

    @property
    def seniority(self) -> tuple[float, str]:
        """Return a sort key that puts the oldest first, and objects of the same age by name."""
        created = self.creation_timestamp
        return (0.0 if created is None else created.timestamp()), self.name


class Object(Protocol):
    """Any object with metadata."""

    @property
    def metadata(self) -> ObjectMeta: ...


class LabelSelectorRequirement(Model):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(Model):
    """A label query; see `api.selectors` for matching, validation and the canonical string."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class Condition(Model):
    """A status condition; `last_update_time` is used by workload kinds only."""

    type: str = ""
    status: str = ""
    last_update_time: Moment | None = None
    last_transition_time: Moment | None = None
    reason: str = ""
    message: str = ""


class _Object(Model):
    metadata: ObjectMeta = ObjectMeta()


_decode = msgspec.json.Decoder(_Object).decode


def metadata_of(body: bytes | msgspec.Raw) -> ObjectMeta:
    """Return the metadata of a raw object of any kind. Raises msgspec.DecodeError."""
    return _decode(body).metadata


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the managing owner reference, or None."""
    for reference in meta.owner_references:
        if reference.controller:
            return reference
    return None


def group_of(api_version: str) -> str:
    """Return the API group in `group/version`; empty for the core group."""
    return api_version.rpartition("/")[0]


@lru_cache(maxsize=64)  # a plan writes the same few moments for every pod
def rfc3339(moment: datetime) -> str:
    """Format the aware time as Kubernetes does: UTC, whole seconds, `Z`."""
    return f"{in_zone(moment).replace(microsecond=0, tzinfo=None).isoformat()}Z"


class TargetRef(Model):
    """A workload in the object's own namespace."""

    api_version: str = ""
    kind: str = ""
    name: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return group, kind and name, which identify the workload across versions."""
        return group_of(self.api_version), self.kind, self.name
