"""compose.yaml agrees with the code in flags, versions and services; and it confines what it starts."""

from pathlib import Path

import pytest
import yaml

from flotilla_cli.local import Ports
from flotilla_common.api.images import ImageName
from flotilla_common.control.plan import Json
from flotilla_dev import compose
from flotilla_dev.cluster import components, kwok
from flotilla_dev.cluster.components import Places
from flotilla_dev.cluster.nats import ENVIRONMENT
from flotilla_dev.cluster.programs import CONTROL_PLANE
from flotilla_dev.image import build
from flotilla_insight.services import installed
from tests.support import stand_ins

ROOT = Path(__file__).parents[4]
DOCUMENT: Json = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Json] = DOCUMENT["services"]
PORTS = Ports(compose.PORT, 2379, 2380)
ADDRESS = "127.0.0.1"
ROOT_FOLDER = Path("/keys")

COMMANDS = {
    "etcd": components.etcd(Places(Path("/data")), PORTS, durable=True),
    "kube-apiserver": components.apiserver(Places(ROOT_FOLDER / "kube-apiserver"), PORTS, ADDRESS, []),
    "kube-controller-manager": components.controller_manager(Places(ROOT_FOLDER / "kube-controller-manager"), ADDRESS),
}
"""Commands of `flotilla up`, with the folders of compose.yaml."""

ELSEWHERE = {
    "etcd": {"--listen-client-urls": "http://0.0.0.0:2379", "--advertise-client-urls": "http://etcd:2379"},
    "kube-apiserver": {
        "--etcd-servers": "http://etcd:2379",
        "--bind-address": "0.0.0.0",
    },
    "kube-controller-manager": {"--root-ca-file": "/keys/kube-controller-manager/ca.crt"},
}
"""Differences, because each service has an address of its own."""

LEFT_OUT = {
    "--advertise-address",
    # Fake nodes have no kubelets to query, and no client has a certificate.
    "--client-ca-file",
    "--kubelet-client-certificate",
    "--kubelet-client-key",
    "--kubelet-preferred-address-types",
}


def flags(command: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (argument.partition("=") for argument in command)}


@pytest.mark.parametrize("component", COMMANDS)
def test_the_control_plane_has_the_flags_of_the_local_set(component: str) -> None:
    program, *given = COMMANDS[component]
    wanted = {name: value for name, value in flags(given).items() if name not in LEFT_OUT} | ELSEWHERE[component]
    assert SERVICES[component]["entrypoint"] == [program]
    assert flags(SERVICES[component]["command"]) == wanted


def test_scheduler_and_kwok_have_the_flags_of_the_local_set(tmp_path: Path) -> None:
    """Most of their configuration is in files, which are created when they start."""
    for component, command in (
        ("kube-scheduler", components.scheduler(Places(tmp_path / "kube-scheduler"))),
        ("kwok", kwok.command(Places(tmp_path / "kwok"), kwok.Kubelet(), compose.BOOT)),
    ):
        program, *given = (word.replace(str(tmp_path), str(ROOT_FOLDER)) for word in command)
        assert SERVICES[component]["entrypoint"] == [program]
        assert SERVICES[component]["command"] == given
    assert SERVICES["kwok"]["environment"] == kwok.ENVIRONMENT


def test_nats_has_the_limits_of_every_bus() -> None:
    assert SERVICES["nats"]["environment"] == ENVIRONMENT
    assert SERVICES["nats"]["command"] == [f"--config={ROOT_FOLDER / compose.BUS / 'nats.conf'}"]


def test_images_are_of_the_versions_that_everything_is_tested_with() -> None:
    for name, program in stand_ins.public_images().items():
        tag = ImageName.parse(name).tag.removeprefix("v").removesuffix("-alpine")
        assert tag == CONTROL_PLANE[program].product.dotted
    built = {name: service["image"] for name, service in SERVICES.items() if "build" in service}
    makers = {name for name, image in built.items() if image == build.reference(build.DEV_REPOSITORY)}
    assert makers == {"keys", "nodes", "claims"}
    assert {built[name] for name in built.keys() - makers} == {build.reference()}
    assert all(SERVICES[name]["build"] == {"context": ".", "target": build.DEV} for name in makers)
    assert {SERVICES[name]["entrypoint"][0] for name in SERVICES if "build" not in SERVICES[name]} == {
        *stand_ins.public_images().values()
    }


def test_every_service_runs_with_its_own_keys() -> None:
    for name in installed():
        service = SERVICES[name]
        assert service["entrypoint"] == [f"flotilla-{name}"]
        assert service["volumes"] == [f"keys-{name}:/keys:ro"]


def test_who_makes_the_keys_has_the_volumes_of_all_readers() -> None:
    readers = {*installed(), *compose.COMPONENTS, compose.APISERVER, compose.BUS, compose.PEOPLE}
    mounted = dict(entry.split(":") for entry in SERVICES["keys"]["volumes"])
    assert {name: folder for name, folder in mounted.items() if name.startswith("keys-")} == {
        f"keys-{reader}": f"/keys/{reader}" for reader in readers
    }
    assert mounted.keys() == DOCUMENT["volumes"].keys()
    assert {mounted[f"data-{name}"] for name in compose.DATA} == {f"/data/{name}" for name in compose.DATA}


@pytest.mark.parametrize("name", SERVICES)
def test_containers_are_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges"]
    assert service["mem_limit"]
    if name != "keys":
        assert service["user"] == "65532:65532"
        assert "cap_add" not in service
        assert all(volume.startswith("data-") or volume.endswith(":ro") for volume in service["volumes"])


def test_ports_are_published_on_this_machine_alone() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(published) == 3
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_only_the_apiserver_reaches_etcd() -> None:
    assert {name for name, service in SERVICES.items() if "store" in service.get("networks", [])} == {
        "etcd",
        "kube-apiserver",
    }
    assert SERVICES["etcd"]["networks"] == ["store"]
    assert DOCUMENT["networks"]["store"] == {"internal": True}
