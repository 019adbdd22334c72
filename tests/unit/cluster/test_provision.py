"""Programs that are nowhere are downloaded, else built; what cannot be had is explained."""

import hashlib
import io
import tarfile
from collections.abc import Collection
from pathlib import Path

import pytest

from flotilla_cli.cluster import build, download, provision
from flotilla_cli.cluster.download import Asset, Unavailable, assets, unpack, verify
from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.locate import cached_dir
from flotilla_cli.cluster.programs import CONTAINERD, ETCD, KUBERNETES, NATS, PRODUCTS, Product
from flotilla_cli.cluster.progress import Say
from flotilla_common.clock import Clock, SystemClock


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
    async def built(product: Product, names: Collection[str], into: Path, clock: Clock, say: Say) -> None:
        for name in names:
            (into / name).write_bytes(b"program")

    monkeypatch.setattr(download, "download", unavailable)
    monkeypatch.setattr(build, "go_problem", lambda: "")
    monkeypatch.setattr(build, "build", built)
    said: list[str] = []
    program = await provision.provide(["kubectl"], SystemClock(), say=said.append)
    assert [path.name for path in program("kubectl").parent.iterdir()] == ["kubectl"]  # and nothing else
    assert said == ["no release download (kubernetes); building from Go modules, which takes minutes"]


async def test_a_failed_build_leaves_nothing_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failed(product: Product, names: Collection[str], into: Path, clock: Clock, say: Say) -> None:
        (into / "etcd").write_bytes(b"half")
        raise ClusterError("compiler error")

    monkeypatch.setattr(download, "download", unavailable)
    monkeypatch.setattr(build, "go_problem", lambda: "")
    monkeypatch.setattr(build, "build", failed)
    with pytest.raises(ClusterError, match="compiler error"):
        await provision.provide(["etcd"], SystemClock())
    assert not list(cached_dir(ETCD).iterdir())


async def test_with_neither_it_says_what_was_tried_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "download", unavailable)
    with pytest.raises(ClusterError) as caught:
        await provision.provide(["etcd"], SystemClock())
    message = str(caught.value)
    for words in ("PATH/etcd: not there", "no internet", "no `go` on PATH", "--assets", "install Go", "HTTPS_PROXY"):
        assert words in message


def test_every_product_has_pinned_module_files() -> None:
    for product in PRODUCTS:
        files = product.module_files()
        assert {"go.mod", "go.sum"} <= files.keys()
        assert product.version.encode() in files["go.mod"]


@pytest.mark.parametrize(
    ("sums", "ok"),
    [
        pytest.param(hashlib.sha256(b"x").hexdigest(), True, id="lone sum"),
        pytest.param(f"{'0' * 64}  other\n{hashlib.sha256(b'x').hexdigest()}  file", True, id="list"),
        pytest.param("0" * 64, False, id="other content"),
        pytest.param(f"{hashlib.sha256(b'x').hexdigest()}  other", False, id="not in the list"),
        pytest.param("", True, id="release without sums"),
    ],
)
def test_downloads_are_checked_against_the_releases_sums(sums: str, ok: bool) -> None:
    if ok:
        verify("base/file", b"x", sums)
    else:
        with pytest.raises(ClusterError, match="SHA-256"):
            verify("base/file", b"x", sums)


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
            assert asset.sums
