"""The names of shards of the pods on the bus. The first one has those that all pods have without shards."""

import msgspec
import pytest

from flotilla_common.api.resources import NODE, POD
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import Affiliation, Interest
from flotilla_common.bus.pod_shards import plural_of, plural_on_bus, pod_shard, pod_shards, shard_index, unsharded

NOBODY = Affiliation("-", "-", "-")


def test_the_first_shard_has_the_names_of_all_pods() -> None:
    assert pod_shard(0) is POD
    assert [shard_index(one) for one in pod_shards(3)] == [0, 1, 2]
    assert {unsharded(one) for one in pod_shards(3)} == {POD}
    assert unsharded(NODE) == NODE


@pytest.mark.parametrize(
    ("subject", "found"),
    [
        (subjects.kube_stream(pod_shard(1)).name, "kube_core_pods-1"),
        (subjects.kube_marker(pod_shard(1)), "kube.v1.core.pods-1"),
        (subjects.pod("shop", "a", NOBODY, pod_shard(1)), "kube.v1.core.pods-1.shop.a.-.-.-"),
        (subjects.kube_object(pod_shard(1), "shop", "a"), "kube.v1.core.pods-1.shop.a.*.*.*"),
        (subjects.interest_filter(Interest(namespace="shop"), pod_shard(12)), "kube.v1.core.pods-12.shop.*.*.*.*"),
        (subjects.node_stream(pod_shard(1)).name, "node_pods-1"),
        (subjects.node_marker(pod_shard(1), "n"), "node.v1.n.pods-1"),
        (subjects.node_object("n", pod_shard(1), "shop", "a"), "node.v1.n.pods-1.shop.a"),
    ],
)
def test_another_shard_has_its_number_in_its_names(subject: str, found: str) -> None:
    assert subject == found


def test_the_apiserver_knows_pods_only() -> None:
    assert pod_shard(1).path("shop", "a") == POD.path("shop", "a")
    assert subjects.affiliated(pod_shard(1))


@pytest.mark.parametrize(
    ("token", "plural"), [("pods-1", "pods"), ("pods", "pods"), ("pods-x", "pods-x"), ("a-1", "a-1")]
)
def test_a_plural_in_a_subject_may_be_that_of_a_shard(token: str, plural: str) -> None:
    assert plural_of(token) == plural
    assert plural_on_bus(POD) == "pods"


def test_the_part_of_a_subject_that_names_a_pod_is_the_same_in_every_shard() -> None:
    assert subjects.object_part(subjects.pod("shop", "a", NOBODY, pod_shard(1))) == "kube.v1.core.pods.shop.a"


def test_a_marker_of_all_pods_does_not_mention_shards() -> None:
    marker = subjects.Marker(epoch="0.a", state=subjects.SYNCED, rv="7", layout=1)
    encoded = b'{"epoch":"0.a","state":"synced","rv":"7","count":0,"layout":1}'
    assert msgspec.json.encode(marker.of_shards(1)) == encoded
    assert msgspec.json.decode(encoded, type=subjects.Marker).shard_count == 1


@pytest.mark.parametrize(("state", "named"), [(subjects.SYNCED, subjects.PART), (subjects.LISTING, subjects.LISTING)])
def test_the_marker_of_a_shard_is_never_that_of_the_whole(state: str, named: str) -> None:
    """A reader of an earlier release would take absent pods for deleted ones."""
    marker = subjects.Marker(epoch="0.a", state=state).of_shards(2)
    assert (marker.state, marker.shard_count) == (named, 2)
    assert marker.complete is (state == subjects.SYNCED)
