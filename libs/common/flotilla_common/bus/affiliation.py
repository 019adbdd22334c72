"""Names whose a pod is, in the subject on which the watcher publishes it (docs/adr/0035).

A service follows the subjects of its own pods only, so the pods of others cost it nothing. The controlling owner gives
the first token and the bucket, the container extras (container-extras.md) the trait.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from re import compile as pattern
from typing import NamedTuple, Protocol

import msgspec

from flotilla_common.api.documents import without_nulls
from flotilla_common.api.keys import (
    CONTAINER_BARRIER_ENV,
    POD_READY,
    SIDECAR_SET_INJECTED,
    TERMINATE_ENV,
    TERMINATE_WITH_IMAGE_ENV,
)
from flotilla_common.api.meta import Model, OwnerReference, group_of
from flotilla_common.api.resources import Resource

BUCKETS = 64
"""Number of buckets of owners: a multiple of the usual numbers of shards, so that a shard is some whole buckets."""

NONE, ANY = "-", "*"
OTHER = "other"
"""The owner token of a kind whose name is no token."""

SIDECARS = "sidecars"
"""The trait of pods that the sidecar service works on."""

_ENVS = frozenset({CONTAINER_BARRIER_ENV, TERMINATE_ENV, TERMINATE_WITH_IMAGE_ENV})
_MERGING = frozenset({"BroadcastJob", "CloneSet", "DaemonSet", "StatefulSet"})
_TOKEN = pattern("[A-Za-z0-9_-]{1,128}")


class Affiliation(NamedTuple):
    """The last three tokens of a pod's subject."""

    owner: str  # see `owner_token`; NONE without a controller
    bucket: str  # see `bucket_of`; NONE without a controller
    trait: str  # SIDECARS or NONE


class _Meta(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def owner_references(self) -> Sequence[OwnerReference]: ...


class _Env(Protocol):
    @property
    def name(self) -> str: ...


class _Container(Protocol):
    @property
    def env(self) -> Sequence[_Env]: ...


class _Gate(Protocol):
    @property
    def condition_type(self) -> str: ...


class _Spec(Protocol):
    @property
    def containers(self) -> Sequence[_Container]: ...
    @property
    def readiness_gates(self) -> Sequence[_Gate]: ...


class PodLike(Protocol):
    """A pod, or the parts of it from which its affiliation follows."""

    @property
    def metadata(self) -> _Meta: ...
    @property
    def spec(self) -> _Spec: ...


class _OutlineMeta(Model):
    namespace: str = ""
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []


class _OutlineEnv(Model):
    name: str = ""


class _OutlineContainer(Model):
    env: list[_OutlineEnv] = []


class _OutlineGate(Model):
    condition_type: str = ""


class _OutlineSpec(Model):
    containers: list[_OutlineContainer] = []
    readiness_gates: list[_OutlineGate] = []


class Outline(Model):
    """The parts of a pod from which its affiliation follows."""

    metadata: _OutlineMeta = _OutlineMeta()
    spec: _OutlineSpec = _OutlineSpec()


_decode = msgspec.json.Decoder(Outline).decode


def outline(raw: bytes | msgspec.Raw) -> Outline:
    """Return the outline of a pod's JSON; an empty one if it cannot be read, as its readers report that."""
    try:
        return _decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return _outline_without_nulls(raw)


def _outline_without_nulls(raw: bytes | msgspec.Raw) -> Outline:
    try:
        return msgspec.convert(without_nulls(msgspec.json.decode(raw)), Outline)
    except (msgspec.MsgspecError, RecursionError):
        return Outline()


def key_hash(namespace: str, name: str) -> int:
    """Return the hash of a key that decides its shard and its bucket: stable across releases and replicas."""
    return zlib.crc32(f"{namespace}/{name}".encode())


def bucket_of(namespace: str, name: str) -> str:
    """Return the bucket of the pods of an owner."""
    return str(key_hash(namespace, name) % BUCKETS)


def buckets_of(shards: Iterable[int], count: int) -> tuple[str, ...]:
    """Return the buckets with the owners of some of `count` shards; ANY for all, or if buckets span several."""
    held = frozenset(shards)
    if len(held) == count or BUCKETS % count:
        return (ANY,) if held else ()
    return tuple(str(bucket) for bucket in range(BUCKETS) if bucket % count in held)


def owner_token(kind: str, group: str) -> str:
    """Return the token of a kind of owners: `CloneSet_apps_kruise_io`, `ReplicaSet_apps`, `Node`."""
    text = f"{kind}_{group.replace('.', '_')}" if group else kind
    return text if _TOKEN.fullmatch(text) else OTHER


def token_of(resource: Resource) -> str:
    """Return the token of owners of this kind."""
    return owner_token(resource.kind, resource.group)


def affiliation_of(pod: PodLike) -> Affiliation:
    """Return whose the pod is."""
    meta = pod.metadata
    owner = next((one for one in meta.owner_references if one.controller), None)
    group = "" if owner is None else group_of(owner.api_version)
    trait = SIDECARS if _has_extras(pod, owner, group) else NONE
    if owner is None:
        return Affiliation(NONE, NONE, trait)
    return Affiliation(owner_token(owner.kind, group), bucket_of(meta.namespace, owner.name), trait)


def _has_extras(pod: PodLike, owner: OwnerReference | None, group: str) -> bool:
    """Report whether the pod has injected sidecars, ordered or ending containers, or waits for its readiness gate.

    Controllers that merge the first condition into their own writes need no help with the gate.
    """
    if pod.metadata.annotations.get(SIDECAR_SET_INJECTED):
        return True
    if any(env.name in _ENVS for container in pod.spec.containers for env in container.env):
        return True
    merged = owner is not None and group == "apps.kruise.io" and owner.kind in _MERGING
    return not merged and any(gate.condition_type == POD_READY for gate in pod.spec.readiness_gates)


class Interest(NamedTuple):
    """Pods that a service follows: all that have these tokens."""

    namespace: str = ANY
    owner: str = ANY
    bucket: str = ANY
    trait: str = ANY

    def covers(self, namespace: str, affiliation: Affiliation) -> bool:
        """Report whether a pod is among them."""
        return (
            self.namespace in (ANY, namespace)
            and self.owner in (ANY, affiliation.owner)
            and self.bucket in (ANY, affiliation.bucket)
            and self.trait in (ANY, affiliation.trait)
        )
