"""Ranges of uids: the hash and the bounds are the apiserver's, and every uid is in exactly one range."""

import re
import uuid
from random import Random

import pytest

from flotilla_common.api.uidranges import EVERY_UID, UidRange, hash_of


@pytest.mark.parametrize(
    ("text", "found"), [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)]
)
def test_the_hash_is_that_of_the_published_test_vectors(text: str, found: int) -> None:
    assert hash_of(text) == found


@pytest.mark.parametrize(
    ("uids", "first", "end"),
    [
        (UidRange(0, 2), "0x0000000000000000", "0x8000000000000000"),
        (UidRange(1, 2), "0x8000000000000000", "0x10000000000000000"),
        (UidRange(1, 3), "0x5555555555555556", "0xaaaaaaaaaaaaaaab"),
    ],
)
def test_the_selector_is_what_the_apiserver_accepts(uids: UidRange, first: str, end: str) -> None:
    assert uids.selector == f"shardRange(object.metadata.uid, '{first}', '{end}')"


def test_everything_needs_no_selector() -> None:
    assert EVERY_UID.selector == ""
    assert EVERY_UID.covers("")


@pytest.mark.parametrize("count", [2, 3, 5, 7, 64])
def test_every_uid_is_in_the_one_range_whose_bounds_enclose_it(count: int) -> None:
    random = Random(count)
    ranges = [UidRange(index, count) for index in range(count)]
    bounds = [[int(bound, 16) for bound in re.findall("0x[0-9a-f]+", one.selector)] for one in ranges]
    for _ in range(500):
        uid = str(uuid.UUID(int=random.getrandbits(128)))
        covering = [one.index for one in ranges if one.covers(uid)]
        assert covering == [index for index, (first, end) in enumerate(bounds) if first <= hash_of(uid) < end]
        assert len(covering) == 1
