"""Leases of the watcher: one for pods, with shards one for each part of them, and one for all other resources."""

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus.pod_shards import pod_shard
from flotilla_watcher.app import leases_of


@pytest.mark.parametrize(
    ("resources", "shards", "leases"),
    [
        ((NODE, POD, CLONE_SET), 1, {"pods.core": [POD], "others": [NODE, CLONE_SET]}),
        ((POD,), 2, {"pods.core": [POD], "pods-1.core": [pod_shard(1)]}),
        ((NODE,), 3, {"others": [NODE]}),
    ],
)
def test_pods_have_leases_of_their_own(
    resources: tuple[Resource, ...], shards: int, leases: dict[str, list[Resource]]
) -> None:
    assert leases_of(resources, shards) == leases


def test_pods_come_first() -> None:
    """A replica that has more than its share keeps the first of its leases, and pods are the most to read again."""
    assert list(leases_of((NODE, POD, CLONE_SET), 2)) == ["pods.core", "pods-1.core", "others"]
