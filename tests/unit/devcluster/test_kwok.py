"""The fake kubelets' configuration, and the volumes made for claims. Their behaviour is tested on the real thing."""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import msgspec
import pytest
import yaml

from flotilla_cli.local import HOST, ClusterError, Ports
from flotilla_common.api.resources import NODE, Resource
from flotilla_common.kube.interface import Api, ApiError, Page
from flotilla_dev.cluster.components import Places, apiserver, etcd
from flotilla_dev.cluster.kwok import Kubelet, node, show_pods, stages, unschedulable
from flotilla_dev.cluster.volumes import volume_for
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json


def test_stages_are_plain_yaml_with_the_asked_pace() -> None:
    documents = list(yaml.safe_load_all(yaml.safe_dump_all(stages(Kubelet(start=300), "boot"))))
    named = {document["metadata"]["name"]: document["spec"] for document in documents[1:]}
    assert named["pod-start"]["delay"] == {"durationMilliseconds": 300, "jitterDurationMilliseconds": 600}
    assert named["pod-stop"]["next"] == {"delete": True}
    for name, spec in named.items():
        for patch in spec["next"].get("patches", []):
            assert patch["type"] == "strategic", name  # a merge patch would drop the conditions of others


class Apiserver:
    """An apiserver with two fake nodes, of which kwok manages the second late, a real node, and a pod on each."""

    def __init__(self) -> None:
        self.boots = {"node-0": "new", "node-1": "old", "real": "mine"}
        self.looks = 0
        self.patched: dict[str, Json] = {}
        self.marks: set[bytes] = set()

    async def list(self, resource: Resource, namespace: str = "", field_selector: str = "") -> Page:
        if resource is NODE:
            self.looks += 1
            self.boots["node-1"] = "new" if self.looks > 3 else "old"
            return self._page(self._node(name) for name in self.boots)
        assert self.boots["node-1"] == "new", "pods are shown when all nodes are taken"
        assert field_selector == "spec.nodeName!="
        return self._page(
            {"metadata": {"namespace": "n", "name": f"on-{name}"}, "spec": {"nodeName": name}} for name in self.boots
        )

    def _node(self, name: str) -> Json:
        annotations = {} if name == "real" else {"kwok.x-k8s.io/node": "fake"}
        return {
            "metadata": {"name": name, "annotations": annotations},
            "status": {"nodeInfo": {"bootID": self.boots[name]}},
        }

    def _page(self, documents: Iterable[Json]) -> Page:
        return Page([msgspec.Raw(msgspec.json.encode(one)) for one in documents], "1")

    async def patch(self, resource: Resource, namespace: str, name: str, body: bytes, content_type: str) -> bytes:
        self.patched[name] = msgspec.json.decode(body)
        self.marks.add(body)
        if name == "on-node-0":
            raise ApiError(404, "NotFound", "it is gone by now")
        return b""


async def test_pods_are_shown_to_a_kwok_that_has_taken_its_nodes() -> None:
    api = Apiserver()
    started: list[None] = []
    await show_pods(cast("Api", api), FakeClock(), "new", lambda: started.append(None))
    assert not started
    assert api.patched.keys() == {"on-node-0", "on-node-1"}
    assert api.patched["on-node-1"] == {"metadata": {"annotations": {"fake.flotilla.dev/shown": "new"}}}


async def test_a_kwok_that_does_not_take_its_nodes_is_shown_them_again_and_is_an_error_in_the_end() -> None:
    api, clock, started = Apiserver(), FakeClock(), list[None]()
    with pytest.raises(ClusterError, match="kwok has not taken node-0, node-1 of its nodes in 60 s"):
        await show_pods(cast("Api", api), clock, "newer", lambda: started.append(None))
    assert api.patched.keys() == {"node-0", "node-1"}
    mark = api.patched["node-1"]["metadata"]["annotations"]["fake.flotilla.dev/shown"]
    assert mark.startswith("newer ")
    assert len(started) == len(api.marks)  # it may have ended
    assert 10 <= len(api.marks) <= 12  # each time another one, or nothing would change


def test_nodes_differ_in_name_address_and_zone() -> None:
    nodes = [node(index) for index in range(300)]
    assert len({document["metadata"]["name"] for document in nodes}) == 300
    assert len({document["status"]["addresses"][0]["address"] for document in nodes}) == 300
    assert {document["metadata"]["labels"]["topology.kubernetes.io/zone"] for document in nodes} == {
        "zone-0",
        "zone-1",
        "zone-2",
    }


def test_tainted_nodes_are_not_schedulable() -> None:
    tainted = {"metadata": {"name": "a"}, "spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}}
    clean = {"metadata": {"name": "b"}, "spec": {}}
    assert unschedulable([msgspec.Raw(msgspec.json.encode(one)) for one in (tainted, clean)]) == ["a"]


def test_a_volume_is_bound_to_its_claim() -> None:
    claim = {
        "metadata": {"name": "data", "namespace": "shop", "uid": "u1"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "standard",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volume = volume_for(claim, Path("/state/volumes"))
    assert volume["metadata"]["name"] == "pvc-u1"
    assert volume["spec"]["capacity"] == {"storage": "1Gi"}
    assert volume["spec"]["claimRef"]["uid"] == "u1"
    assert volume["spec"]["hostPath"]["path"] == "/state/volumes/pvc-u1"


def test_only_the_durable_etcd_syncs(places: Places, ports: Ports) -> None:
    assert "--unsafe-no-fsync" in etcd(places, ports, durable=False)
    assert "--unsafe-no-fsync" not in etcd(places, ports, durable=True)


def test_extra_apiserver_flags_come_last(places: Places, ports: Ports) -> None:
    assert apiserver(places, ports, HOST, ["--v=4"])[-1] == "--v=4"
