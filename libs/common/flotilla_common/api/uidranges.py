"""Divides objects by the hashes of their uids, as the apiserver does for lists and watches of one shard (KEP-5866).

The hash is FNV-1a with 64 bits. It does not change while an object exists, so an object stays in its range.
"""

import msgspec

_BASIS, _PRIME, _BITS = 0xCBF29CE484222325, 0x100000001B3, 64
_MASK = (1 << _BITS) - 1


class UidRange(msgspec.Struct, frozen=True):
    """One of `count` equal ranges of hashes."""

    index: int = 0
    count: int = 1

    @property
    def selector(self) -> str:
        """Return the apiserver's expression for the range; empty for all objects."""
        if self.count == 1:
            return ""
        return f"shardRange(object.metadata.uid, '{self._bound(self.index)}', '{self._bound(self.index + 1)}')"

    def _bound(self, index: int) -> str:
        """Return the lowest hash of a range; `covers` rounds in the same way."""
        return f"{-(-(index << _BITS) // self.count):#018x}"

    def covers(self, uid: str) -> bool:
        """Report whether the object with this uid is in the range."""
        return self.count == 1 or hash_of(uid) * self.count >> _BITS == self.index


def hash_of(uid: str) -> int:
    """Return the hash of a uid."""
    found = _BASIS
    for byte in uid.encode():
        found = (found ^ byte) * _PRIME & _MASK
    return found


EVERY_UID = UidRange()

MOST_RANGES = 64
"""Limit of the number of ranges."""
