"""Names the shards of the pods: with `--watcher-shards` above 1 each has a stream of its own (docs/adr/0038).

On the bus a shard is a resource like others, `pods-1`; the first one has the names that all pods have without shards.
"""

import re

from flotilla_common.api.resources import POD, Resource

_PLURAL = re.compile(rf"{POD.plural}-\d+")


class PodShard(Resource, frozen=True):
    """The pods of one shard but the first, which is POD."""

    shard: int = 0

    @property
    def id(self) -> str:
        return f"{POD.id}-{self.shard}"


def pod_shard(index: int) -> Resource:
    """Return the pods of a shard, as streams and subjects name them."""
    return PodShard(POD.group, POD.version, POD.plural, POD.kind, shard=index) if index else POD


def pod_shards(count: int) -> list[Resource]:
    """Return the pods of each of `count` shards."""
    return [pod_shard(index) for index in range(count)]


def shard_index(resource: Resource) -> int:
    """Return the number of the shard; 0 for other resources than pods."""
    return resource.shard if isinstance(resource, PodShard) else 0


def unsharded(resource: Resource) -> Resource:
    """Return the resource of the objects, as the apiserver names it."""
    return POD if isinstance(resource, PodShard) else resource


def plural_on_bus(resource: Resource) -> str:
    """Return the plural in subjects: that of a shard ends in its number."""
    return resource.id.rpartition(".")[2]


def plural_of(token: str) -> str:
    """Return the plural of the objects for a plural in a subject, which may be that of a shard."""
    return POD.plural if _PLURAL.fullmatch(token) else token
