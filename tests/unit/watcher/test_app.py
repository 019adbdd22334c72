"""Leases of the watcher: one for each resource, and with shards one for each further part of the pods."""

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_watcher.app import lease_name, parts_of


@pytest.mark.parametrize(
    ("resources", "shards", "names"),
    [
        ((POD, CLONE_SET), 1, ["pods.core", "clonesets.apps.kruise.io"]),
        ((POD, CLONE_SET), 3, ["pods.core", "clonesets.apps.kruise.io", "pods-1.core", "pods-2.core"]),
        ((NODE,), 3, ["nodes.core"]),
    ],
)
def test_each_part_has_a_lease(resources: tuple[Resource, ...], shards: int, names: list[str]) -> None:
    assert [lease_name(part) for part in parts_of(resources, shards)] == names
