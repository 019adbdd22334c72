"""Shards of lists and watches as an apiserver with the feature gate ShardedListAndWatch makes them."""

import msgspec

from flotilla_common.api.meta import metadata_of
from flotilla_common.api.uidranges import hash_of


def is_in_shard(selector: str, raw: bytes | msgspec.Raw) -> bool:
    """Report whether an object is in the range of a shard selector; every object is in that of an empty one."""
    if not selector:
        return True
    first, end = (int(bound, 16) for bound in selector.split("'")[1::2])
    return first <= hash_of(metadata_of(raw).uid) < end
