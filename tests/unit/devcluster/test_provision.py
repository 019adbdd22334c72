"""Programs that are nowhere are downloaded, else built; what cannot be had is explained."""

import hashlib
import io
import re
import tarfile
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from flotilla_cli.local import ClusterError
from flotilla_cli.output import Say
from flotilla_common.clock import Clock, SystemClock
from flotilla_dev.cluster import build, download, provision
from flotilla_dev.cluster.download import Asset, Unavailable, assets, pinned_sums, unpack, verify
from flotilla_dev.cluster.programs import CONTAINERD, ETCD, KUBERNETES, KWOK, NATS, PRODUCTS, Product, Program
from flotilla_dev.cluster.provision import cached_dir


@pytest.fixture(autouse=True)
def _nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOTILLA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)


async def unavailable(product: Product, names: Collection[str], machine: str, into: Path, say: Say) -> None:
    raise Unavailable("the address: no internet")


async def test_a_download_lands_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetched(product: Product, names: Collection[str], machine: str, into: Path, say: Say) -> None:
        (into / "nats-server").write_bytes(b"program")

    monkeypatch.setattr(download, "download", fetched)
    program = await provision.provide(["nats-server"], SystemClock())
    assert program("nats-server") == cached_dir(NATS) / "nats-server"
    assert [path.name for path in cached_dir(NATS).parent.iterdir() if path.is_dir()] == ["nats-2.15.2"]


async def test_without_a_download_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    async def built(programs: Sequence[Program], into: Path, clock: Clock, say: Say) -> None:
        builds.append([one.name for one in programs])
        for one in programs:
            (into / one.name).write_bytes(b"program")

    builds: list[list[str]] = []

    monkeypatch.setattr(download, "download", unavailable)
    monkeypatch.setattr(build, "go_problem", lambda: "")
    monkeypatch.setattr(build, "build", built)
    said: list[str] = []
    program = await provision.provide(["kubectl", "crane", "etcd"], SystemClock(), say=said.append)
    assert [path.name for path in program("kubectl").parent.iterdir()] == ["kubectl"]  # and nothing else
    assert program("etcd") == cached_dir(ETCD) / "etcd"
    assert builds == [["kubectl", "etcd"], ["crane"]]  # what shares a module is built at once
    assert said == [
        "no release download (kubernetes, etcd); building from Go modules, which takes minutes",
        "no release download (crane); building from Go modules, which takes minutes",
    ]


async def test_a_failed_build_leaves_nothing_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failed(programs: Sequence[Program], into: Path, clock: Clock, say: Say) -> None:
        (into / "etcd").write_bytes(b"half")
        raise ClusterError("compiler error")

    monkeypatch.setattr(download, "download", unavailable)
    monkeypatch.setattr(build, "go_problem", lambda: "")
    monkeypatch.setattr(build, "build", failed)
    with pytest.raises(ClusterError, match="compiler error"):
        await provision.provide(["etcd"], SystemClock())
    assert [path.name for path in cached_dir(ETCD).parent.iterdir()] == [".lock"]


async def test_with_neither_it_says_what_was_tried_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "download", unavailable)
    with pytest.raises(ClusterError) as caught:
        await provision.provide(["etcd"], SystemClock())
    message = str(caught.value)
    for words in ("PATH/etcd: not there", "no internet", "no `go` on PATH", "--assets", "install Go", "HTTPS_PROXY"):
        assert words in message


async def test_where_no_sum_is_pinned_a_way_to_the_internet_is_no_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "machine", lambda: "amd64")
    monkeypatch.setattr(download, "pinned_sums", dict)
    with pytest.raises(ClusterError) as caught:
        await provision.provide(["etcd"], SystemClock())
    assert "no SHA-256 sum is pinned for it" in str(caught.value)
    assert "install Go" in str(caught.value)
    assert "HTTPS_PROXY" not in str(caught.value)


def test_every_product_has_pinned_module_files() -> None:
    for product in PRODUCTS:
        files = product.module_files()
        assert {"go.mod", "go.sum"} <= files.keys()
        assert product.version.encode() in files["go.mod"]


def test_a_download_is_checked_against_the_pinned_sum() -> None:
    expected = hashlib.sha256(b"x").hexdigest()
    verify("base/file", b"x", expected)
    with pytest.raises(ClusterError) as caught:
        verify("base/file", b"y", expected)
    assert not isinstance(caught.value, Unavailable)  # no other way is tried behind a file that was tampered with
    for words in ("base/file", expected, hashlib.sha256(b"y").hexdigest(), "Nothing was installed"):
        assert words in str(caught.value)


async def test_what_is_not_the_pinned_file_does_not_come_into_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    async def tampered(session: object, url: str, say: Say) -> bytes:
        return b"something else"

    monkeypatch.setattr(download, "_fetch", tampered)
    monkeypatch.setattr(provision, "machine", lambda: "amd64")
    with pytest.raises(
        ClusterError, match=r"kwok-linux-amd64 is not the file that is pinned here.* expected was f5a4385a"
    ):
        await provision.provide(["kwok"], SystemClock())
    assert [path.name for path in cached_dir(KWOK).parent.iterdir()] == [".lock"]


async def test_without_a_pinned_sum_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetched(session: object, url: str, say: Say) -> bytes:
        raise AssertionError("nobody may ask for it")

    monkeypatch.setattr(download, "_fetch", fetched)
    monkeypatch.setattr(download, "pinned_sums", dict)
    with pytest.raises(Unavailable, match="kwok-linux-amd64: no SHA-256 sum is pinned for it"):
        await download.download(KWOK, ["kwok"], "amd64", tmp_path, lambda _: None)


def test_pinned_sums_are_those_of_the_releases_that_we_take() -> None:
    ours = {asset.url for product in PRODUCTS for machine in ("amd64", "arm64") for asset in assets(product, machine)}
    assert pinned_sums()
    assert pinned_sums().keys() <= ours  # none is left over from an older version
    assert all(re.fullmatch("[0-9a-f]{64}", wanted) for wanted in pinned_sums().values())


def test_a_program_is_taken_out_of_its_archive() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("etcd-v3/etcd")
        member.size = 7
        archive.addfile(member, io.BytesIO(b"program"))
    assert unpack(Asset("etcd", "base/etcd-v3.tar.gz"), buffer.getvalue()) == b"program"
    assert unpack(Asset("kwok", "base/kwok"), b"as it is") == b"as it is"


def test_releases_name_version_and_machine() -> None:
    for product in (KUBERNETES, ETCD, NATS, CONTAINERD):
        for asset in assets(product, "arm64"):
            assert product.dotted in asset.url
            assert "arm64" in asset.url
