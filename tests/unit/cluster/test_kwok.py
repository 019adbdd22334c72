"""The fake kubelets' configuration, and the volumes made for claims. Their behaviour is tested on the real thing."""

from pathlib import Path

import msgspec
import yaml

from flotilla_cli.cluster.components import Places, Ports, apiserver, etcd
from flotilla_cli.cluster.kwok import Kubelet, node, stages, unschedulable
from flotilla_cli.cluster.ports import HOST
from flotilla_cli.cluster.volumes import volume_for


def test_stages_are_plain_yaml_with_the_asked_pace() -> None:
    documents = list(yaml.safe_load_all(yaml.safe_dump_all(stages(Kubelet(start=300)))))
    named = {document["metadata"]["name"]: document["spec"] for document in documents[1:]}
    assert named["pod-start"]["delay"] == {"durationMilliseconds": 300, "jitterDurationMilliseconds": 600}
    assert named["pod-stop"]["next"] == {"delete": True}
    for name, spec in named.items():
        for patch in spec["next"].get("patches", []):
            assert patch["type"] == "strategic", name  # a merge patch would drop the conditions of others


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
