"""Parts of real nodes, without creating any: addresses, control groups, images, configurations."""

import io
import os
import shutil
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_cli.certificates import Authority
from flotilla_cli.local import ClusterError, LocalCluster, Ports, Process, boot_id, start_ticks
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.demo import familiar
from flotilla_dev.cluster.processes import Processes
from flotilla_dev.cluster.realnodes import daemons, debian, isolation, nodes, registry
from flotilla_dev.cluster.realnodes.daemons import NodePlan
from flotilla_dev.cluster.realnodes.isolation import inside, node_holder
from flotilla_dev.cluster.realnodes.network import Network, candidates, interface, taken
from flotilla_dev.cluster.up import UpOptions, settled
from flotilla_dev.image.oci import Layer
from tests.support.fake_clock import FakeClock

PLAN = NodePlan(index=1, folder=Path("/state/nodes/real-1"), network=Network(99), group="/flotilla-7-70")


def process(name: str, pid: int = 4_194_304, started: int = 1) -> Process:
    return Process(name, pid, started, boot_id(), [name], "")


# Network


def test_a_node_a_pod_and_this_machine_never_share_an_address() -> None:
    network = Network(97)
    assert (network.prefix, network.host) == ("10.97.0.0/16", "10.97.0.1")
    assert [network.node(index) for index in (0, 1)] == ["10.97.0.10", "10.97.0.11"]
    assert [network.pods(index) for index in (0, 1)] == ["10.97.1.0/24", "10.97.2.0/24"]


@pytest.mark.parametrize(
    ("routes", "first"),
    [
        pytest.param([], 97, id="nothing taken"),
        pytest.param([{"dst": "default"}, {"dst": "192.0.2.0/24"}], 97, id="other networks"),
        pytest.param([{"dst": "10.97.0.0/16"}], 98, id="another set"),
        pytest.param([{"dst": "10.98.3.4"}, {"dst": "10.97.1.0/24"}], 99, id="a part of it"),
        pytest.param([{"dst": "10.96.0.0/12"}], 112, id="a company's network"),
    ],
)
def test_the_first_free_network_is_taken(routes: list[dict[str, Any]], first: int) -> None:
    assert candidates(taken(routes), [])[0] == Network(first)


def test_a_set_gets_its_addresses_back_if_they_are_free() -> None:
    assert candidates([], [Network(105)])[0] == Network(105)
    assert candidates(taken([{"dst": "10.105.0.0/16"}]), [Network(105)])[0] == Network(97)


def test_none_is_free_in_the_whole_range() -> None:
    assert candidates(taken([{"dst": "10.0.0.0/8"}]), []) == []


def test_the_longest_name_of_an_interface_is_allowed() -> None:
    assert len(interface(process("switch"))) <= 15


# Namespaces


def test_a_node_is_entered_by_its_holder() -> None:
    argv = inside(process("real-0", pid=42), ["ctr", "version"])
    assert argv[0] == "nsenter"
    assert argv[argv.index("--") + 1 :] == ["ctr", "version"]
    assert "--pid=/proc/42/ns/pid_for_children" in argv  # the holder itself is not in the namespace that it holds
    assert "--net=/proc/42/ns/net" in argv


def test_a_node_dies_with_its_holder() -> None:
    assert "--kill-child" in node_holder(Path("/state/nodes/real-0"))


# Control groups

V1 = """\
30 24 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
31 24 0:27 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
32 24 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
33 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 33 0:26 / /mnt/again rw - cgroup cgroup rw,memory
"""


def test_every_hierarchy_counts_once() -> None:
    found = isolation.hierarchies(V1)
    assert found == [Path("/sys/fs/cgroup") / name for name in ("memory", "systemd", "unified")]


def test_groups_of_ended_nodes_are_left_over_inner_ones_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / {tmp_path} rw - cgroup2 cgroup2 rw\n")
    monkeypatch.setattr(isolation, "MOUNTS", mounts)
    alive = f"flotilla-{os.getpid()}-{start_ticks(os.getpid())}"
    for name in (alive, "flotilla-4194304-7/kubepods/pod1", "flotilla-notes", "system.slice"):
        (tmp_path / name).mkdir(parents=True)
    ended = tmp_path / "flotilla-4194304-7"
    assert isolation.leftover_groups() == [ended / "kubepods" / "pod1", ended / "kubepods", ended]

    def removed_by_another_command(_: int) -> None:
        shutil.rmtree(ended, ignore_errors=True)

    monkeypatch.setattr(isolation, "start_ticks", removed_by_another_command)
    (tmp_path / alive).rmdir()
    assert isolation.leftover_groups() == []


async def test_a_group_that_is_left_over_with_a_paused_container_is_thawed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes were killed, and end only when they continue."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"30 25 0:26 / {tmp_path} rw - cgroup cgroup rw,freezer\n")
    monkeypatch.setattr(isolation, "MOUNTS", mounts)
    paused = tmp_path / "flotilla-4194304-7" / "pod1"
    paused.mkdir(parents=True)
    (paused / "freezer.state").write_text("FROZEN")
    await isolation.sweep_groups(FakeClock())
    assert (paused / "freezer.state").read_text() == "THAWED"


# Images


@pytest.fixture
def _small_busybox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "root_layer", lambda: Layer.of("busybox", {}))


@pytest.mark.usefixtures("_small_busybox")
def test_each_tag_is_an_image_of_its_own_and_always_the_same() -> None:
    first, second = (registry.build(name, registry.SERVER) for name in ("nginx:alpine", "nginx:mainline"))
    assert first.digest != second.digest
    assert first.digest == registry.build("nginx:alpine", registry.SERVER).digest
    assert len(first.blobs.keys() & second.blobs.keys()) == 1  # the layer with busybox


@pytest.mark.usefixtures("_small_busybox")
def test_a_manifest_names_the_blobs_that_belong_to_it() -> None:
    image = registry.build("nginx:alpine", registry.SERVER, {"/etc/motd": b"hello"})
    manifest = msgspec.json.decode(image.manifest)
    assert {part["digest"] for part in [manifest["config"], *manifest["layers"]]} == image.blobs.keys()
    with tarfile.open(fileobj=io.BytesIO(image.blobs[manifest["layers"][1]["digest"]])) as archive:
        page, motd = archive.extractfile("www/index.html"), archive.extractfile("etc/motd")
        assert page is not None
        assert motd is not None
        assert (page.read(), motd.read()) == (b"nginx:alpine\n", b"hello")


def test_the_demonstrations_images_are_among_those_that_every_set_has() -> None:
    assert {"nginx:alpine", "nginx:mainline", "nginx:latest", daemons.PAUSE} <= registry.NAMED.keys()


@pytest.mark.parametrize(
    ("reported", "shown"),
    [
        pytest.param("docker.io/library/nginx:alpine", "nginx:alpine", id="containerd"),
        pytest.param("nginx:alpine", "nginx:alpine", id="fake"),
        pytest.param("", "", id="no container yet"),
    ],
)
def test_the_demonstration_names_images_as_manifests_do(reported: str, shown: str) -> None:
    assert familiar(reported) == shown


# Configurations


def test_a_kubelet_stays_within_its_group_and_asks_who_calls() -> None:
    made = daemons.configuration(PLAN, Path("/state/clients.crt"), Path("/state/resolv.conf"))
    assert made["cgroupRoot"] == "/flotilla-7-70"
    assert made["authentication"]["anonymous"] == {"enabled": False}


def test_a_nodes_pods_get_addresses_of_its_range() -> None:
    bridge = daemons.pod_network(PLAN)["plugins"][0]
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.99.2.0/24"}]]
    assert daemons.object_for(PLAN)["spec"]["podCIDR"] == "10.99.2.0/24"


def test_a_trusted_registry_is_asked_by_its_name(tmp_path: Path) -> None:
    daemons.trust_registry(tmp_path, "10.97.0.1:5000", "http://10.97.0.1:5000")
    text = (tmp_path / "10.97.0.1:5000" / "hosts.toml").read_text()
    assert 'server = "http://10.97.0.1:5000"' in text


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/home/me/state", "ext4", id="below the root"),
        pytest.param("/data/state", "overlay", id="a mount of its own"),
        pytest.param("/database", "ext4", id="only a like name"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_the_deepest_mount(path: str, kind: str) -> None:
    mounts = "1 0 8:1 / / rw - ext4 /dev/vda rw\n2 1 0:5 / /data rw - overlay overlay rw\n"
    assert daemons.filesystem(Path(path), mounts) == kind


@pytest.mark.parametrize(
    ("node", "why"),
    [
        pytest.param({"spec": {}}, "its kubelet has not reported", id="new"),
        pytest.param(
            {"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "False", "message": "no network"}]}},
            "no network",
            id="not ready",
        ),
        pytest.param(
            {
                "spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            },
            "node.kubernetes.io/not-ready",
            id="tainted",
        ),
        pytest.param({"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "", id="ready"),
    ],
)
def test_a_node_says_why_pods_cannot_go_there(node: dict[str, Any], why: str) -> None:
    assert nodes.unready(node) == why


# The set


def test_holders_stop_before_what_they_hold(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    names = ["switch", "registry", "real-0", "real-1", "real-0-kubelet", "real-1-containerd", "etcd", "cloneset"]
    for number, name in enumerate(names):
        (folder / f"{name}.json").write_bytes(msgspec.json.encode(process(name, started=number)))
    ordered = nodes.recorded(Processes(tmp_path))
    assert ordered == ["real-0", "real-1", "real-0-kubelet", "real-1-containerd", "registry"]


OLD = LocalCluster(
    kubeconfig="", nats="", ports=Ports(1, 2, 3), nats_port=4, nats_monitor=5, webhook_port=6, services={}, programs={},
    nodes=10, real_nodes=2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "old", "fake", "real"),
    [
        pytest.param(UpOptions(), None, 10, 0, id="usual"),
        pytest.param(UpOptions(real_nodes=3), None, 0, 3, id="real ones instead"),
        pytest.param(UpOptions(nodes=5, real_nodes=3), None, 5, 3, id="both"),
        pytest.param(UpOptions(nodes=0), None, 0, 0, id="none"),
        pytest.param(UpOptions(), OLD, 10, 2, id="a set keeps what it has"),
        pytest.param(UpOptions(nodes=20, real_nodes=3), OLD, 20, 3, id="and grows"),
    ],
)
def test_numbers_of_nodes(options: UpOptions, old: LocalCluster | None, fake: int, real: int) -> None:
    result = settled(options, old)
    assert (result.nodes, result.real_nodes) == (fake, real)


def test_only_root_can_have_real_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match="only be made by root"):
        debian.require_root()


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "LOCK", tmp_path / "lock")
    needs: debian.Needs = {"runc": lambda: None, "nftables": lambda: None, "util-linux": lambda: Path("/")}
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ClusterError, match=r"^Our tests need .* runc, nftables"):
        debian.install(print, needs, "Our tests")


def test_of_two_at_a_time_one_installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """apt-get gives up where another one is at work."""
    installed: list[list[str]] = []

    def apt(arguments: list[str], _: str) -> None:
        time.sleep(0.05)  # long enough for the other to have listed what is missing
        installed.append(arguments)

    monkeypatch.setattr(debian, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(debian, "missing", lambda _: [] if len(installed) >= 2 else ["runc"])
    monkeypatch.setattr(debian, "_apt", apt)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "/usr/bin/apt-get")
    with ThreadPoolExecutor(2) as pool:
        for one in [pool.submit(debian.install, str) for _ in range(2)]:
            one.result()
    assert [arguments[0] for arguments in installed] == ["update", "install"]


def test_an_authority_issues_what_is_not_there(tmp_path: Path) -> None:
    authority, clock = Authority(tmp_path / "ca.crt", tmp_path / "ca.key"), SystemClock()
    authority.make(clock)
    authority.issue(tmp_path / "node.pem", "system:node:real-0", "system:nodes", clock)
    before = (tmp_path / "node.pem").read_bytes()
    assert b"BEGIN CERTIFICATE" in before
    assert b"PRIVATE KEY" in before
    assert (tmp_path / "node.pem").stat().st_mode & 0o077 == 0
    authority.make(clock)
    authority.issue(tmp_path / "node.pem", "system:node:real-0", "system:nodes", clock)
    assert (tmp_path / "node.pem").read_bytes() == before
