"""Flags of the processes of `flotilla run --split` and of a local set: each has its own credentials only."""

from pathlib import Path

import pytest

from flotilla_cli.commands.run import _chosen, _own_flags
from flotilla_cli.local import LocalCluster, Ports
from flotilla_common.settings import Settings, load, split_flags
from flotilla_dev.cluster import services
from flotilla_insight.services import installed


def settings_of(flags: list[str]) -> Settings:
    return load(split_flags(flags)[0], {})


def test_services_that_show_run_only_where_they_are_named() -> None:
    assert {service.name for service in _chosen([])} == set(installed()) - {"console", "statemetrics"}
    assert [service.name for service in _chosen(["statemetrics", "jobs"])] == ["statemetrics", "jobs"]


@pytest.mark.parametrize("authority", ["", "/ca.crt"])
def test_each_process_gets_its_own_credentials(tmp_path: Path, authority: str) -> None:
    whole = Settings(nats_url="tls://10.0.0.1:4222", nats_creds=str(tmp_path), nats_ca=authority, replica="r")
    for index, name in enumerate(("cloneset", "jobs")):
        told = settings_of(_own_flags(name, whole, index, ["--log-level=debug"]))
        assert told.nats_creds == str(tmp_path / f"{name}.seed")
        assert (told.nats_url, told.nats_ca, told.log_level) == (whole.nats_url, authority, "debug")
        assert told.health_port == whole.health_port + 2 * index


def test_credentials_that_somebody_named_stay(tmp_path: Path) -> None:
    (tmp_path / "creds").touch()
    named = Settings(nats_url="nats://x:4222", nats_creds=str(tmp_path / "creds"), replica="r")
    assert settings_of(_own_flags("jobs", named, 0, [])).nats_creds == named.nats_creds
    nobody = Settings(nats_url="nats://x:4222", replica="r")
    assert settings_of(_own_flags("jobs", nobody, 0, [])).nats_creds == ""


def test_so_do_the_services_of_a_local_set(tmp_path: Path) -> None:
    made = LocalCluster(
        kubeconfig="/set/kubeconfig",
        nats="tls://10.97.0.1:4222",
        nats_creds="/set/users/services",
        nats_ca="/set/tls/ca.crt",
        ports=Ports(*range(1, 1 + len(Ports.__struct_fields__))),
        nats_port=4222,
        nats_monitor=8222,
        webhook_port=9876,
        services={"jobs": 8000},
        programs={},
        nodes=1,
    )
    told = settings_of(services._flags("jobs", made, tmp_path))
    assert (told.nats_creds, told.nats_ca) == ("/set/users/services/jobs.seed", "/set/tls/ca.crt")
