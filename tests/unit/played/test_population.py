"""The objects that the stand-in has, made from the recorded ones."""

from collections import Counter

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NAMESPACE, REVISION
from flotilla_common.control.shards import shard_of
from tests.perf.played.player import owner_of, stride
from tests.perf.played.population import BALANCE, NodeSource, PodSource, Population, Sizes, instance, set_keys
from tests.perf.played.recording import recorded
from tests.testkit.documents import Json

SIZES = Sizes(sets=3, pods_each=4, nodes=5)


@pytest.fixture(scope="module")
def population() -> Population:
    return Population(recorded(), SIZES)


def rendered(source: PodSource | NodeSource) -> list[Json]:
    return [msgspec.json.decode(source.render(number, 100 + number, 0)) for number in range(len(source))]


def test_shards_have_the_same_number_of_sets() -> None:
    keys = set_keys(10 * BALANCE)
    assert set(Counter(shard_of(*key, BALANCE) for key in keys).values()) == {10}
    assert len(set(keys)) == len(keys)


def test_every_set_has_its_pods(population: Population) -> None:
    uids = {(one["metadata"]["namespace"], one["metadata"]["uid"]) for one in population.documents(CLONE_SET)}
    pods = rendered(PodSource(population))
    owners = Counter((one["metadata"]["namespace"], one["metadata"]["ownerReferences"][0]["uid"]) for one in pods)
    assert owners == dict.fromkeys(uids, SIZES.pods_each)


def test_pods_have_names_uids_and_versions_of_their_own(population: Population) -> None:
    source = PodSource(population)
    pods = rendered(source)
    assert len({one["metadata"]["uid"] for one in pods}) == SIZES.pods
    keys = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in pods]
    assert keys == [source.key(number) for number in range(SIZES.pods)]
    assert [one["metadata"]["resourceVersion"] for one in pods] == [str(100 + number) for number in range(SIZES.pods)]


def test_a_pod_names_its_owner(population: Population) -> None:
    pod = rendered(PodSource(population))[0]
    meta = pod["metadata"]
    assert owner_of((meta["namespace"], meta["name"])) == (meta["namespace"], meta["ownerReferences"][0]["name"])


def test_pods_run_on_the_nodes(population: Population) -> None:
    nodes = {one["metadata"]["name"] for one in rendered(NodeSource(population, population.of_nodes["Node"]))}
    assert {one["spec"]["nodeName"] for one in rendered(PodSource(population))} == nodes


def test_changes_are_restarts(population: Population) -> None:
    pod = msgspec.json.decode(PodSource(population).render(0, 1, 7))
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 7


def test_nothing_of_the_recorded_names_is_left(population: Population) -> None:
    meta = population.clone_set["metadata"]
    text = msgspec.json.encode([*rendered(PodSource(population)), *population.documents(CLONE_SET)]).decode()
    text += msgspec.json.encode(population.documents(REVISION)).decode()
    assert not [name for name in (meta["name"], meta["namespace"], meta["uid"]) if name in text]


def test_sets_are_complete(population: Population) -> None:
    for one in population.documents(CLONE_SET):
        assert one["spec"]["replicas"] == one["status"]["readyReplicas"] == SIZES.pods_each


def test_sets_are_in_namespaces_that_exist(population: Population) -> None:
    spaces = {one["metadata"]["name"] for one in population.documents(NAMESPACE)}
    assert {namespace for namespace, _ in population.sets} == spaces


def test_instance_ids_are_unique() -> None:
    count = 2000
    assert len({instance(number) for number in range(count)}) == count


@pytest.mark.parametrize("count", [1, 2, 10, 1000])
def test_the_player_reaches_every_pod(count: int) -> None:
    assert {number * stride(count) % count for number in range(count)} == set(range(count))
