"""Programs of one module are built at once, and messages are counted."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from flotilla_cli.local import ClusterError
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster import build
from flotilla_dev.cluster.build import BuildProgress, duration, executable
from flotilla_dev.cluster.programs import CRANE, ETCD, NATS, PROGRAMS, Patch, Product, Program

GO = """#!/bin/sh
echo "$@" >>{calls}
case "$1 $2" in
  "list -m") echo {calls}.module ;;
esac
case $1 in
  list) [ "$2" = -m ] || printf 'go: downloading example.com/m v1.0.0\\nfmt\\nexample.com/m\\n' ;;
  build)
    while [ "$1" != -o ]; do shift; done
    printf 'fmt\\nexample.com/m\\n'
    touch "$2server" "$2nats-server"
    {ending}
    ;;
esac
"""
CONTAINERD = "github.com/containerd/containerd/v2"
WANTED = [PROGRAMS["etcd"], PROGRAMS["nats-server"]]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a fake Go, and return the file of its calls."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return pretended(tmp_path, ending=":")


def pretended(folder: Path, ending: str) -> Path:
    calls = folder / "calls"
    go = folder / "go"
    go.write_text(GO.format(calls=calls, ending=ending), encoding="ascii")
    go.chmod(0o755)
    return calls


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch" / "programs"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(autouse=True)
def _room(monkeypatch: pytest.MonkeyPatch) -> None:
    def enough(products: Sequence[Product], folder: Path) -> None:
        """Report a disk with enough room, because the tests' own may be full."""

    monkeypatch.setattr(build, "require_space", enough)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def commands(calls: Path) -> list[str]:
    return calls.read_text(encoding="ascii").splitlines()


async def test_one_call_builds_all_programs_under_their_own_names(calls: Path, into: Path) -> None:
    said: list[str] = []
    await build.build(WANTED, into, SystemClock(), said.append)
    assert names(into) == ["etcd", "nats-server"]
    assert [line.split()[0] for line in commands(calls)] == ["list", "build"]
    assert said[0] == "building etcd, nats-server: fetching sources, 0 s"
    assert names(into.parent) == ["programs"]


async def test_each_program_is_linked_with_its_own_version(calls: Path, into: Path, tmp_path: Path) -> None:
    pretended(tmp_path, ending='touch "$2containerd" "$2kubectl"')
    await build.build([PROGRAMS["containerd"], PROGRAMS["kubectl"]], into, SystemClock(), lambda _: None)
    command = commands(calls)[1]
    assert f"-ldflags={CONTAINERD}/cmd/containerd=-s -w -X {CONTAINERD}/version.Version=v2.4.2 " in command
    assert "-ldflags=k8s.io/kubernetes/cmd/kubectl=-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3" in command


PATCHED = Product(
    "patient",
    "v1.0.0",
    {"patient": "example.com/m/cmd/patient"},
    module=ETCD.home,
    patches=(
        Patch("example.com/m", "watch/event.go", "every", "some"),
        Patch("example.com/m", "watch/event.go", "time", "times"),
    ),
)


def module(calls: Path, source: str) -> Path:
    """Make the folder that Go's module cache would have, read-only like there. Return the file."""
    file = Path(f"{calls}.module") / "watch" / "event.go"
    file.parent.mkdir(parents=True)
    file.write_text(source, encoding="ascii")
    file.chmod(0o444)
    return file


async def test_a_patched_module_is_built_from_a_copy(calls: Path, into: Path, tmp_path: Path) -> None:
    original = module(calls, "every time")
    pretended(tmp_path, ending=f'cp patched/example.com/m/watch/event.go {tmp_path}/compiled; touch "$2patient"')
    await build.build([Program("patient", PATCHED, (1,))], into, SystemClock(), lambda _: None)
    assert [line.split()[:2] for line in commands(calls)] == [
        ["mod", "download"],
        ["list", "-m"],
        ["mod", "edit"],
        ["list", "-deps"],
        ["build", "-v"],
    ]
    assert commands(calls)[2].startswith("mod edit -replace=example.com/m=/")
    assert (tmp_path / "compiled").read_text(encoding="ascii") == "some times"
    assert original.read_text(encoding="ascii") == "every time"


async def test_a_patch_that_no_longer_fits_is_an_error(calls: Path, into: Path) -> None:
    module(calls, "every time, and every day")
    wanted = "patient v1.0.0 cannot be patched: the text to replace occurs 2 times in watch/event.go"
    with pytest.raises(ClusterError, match=wanted):
        await build.build([Program("patient", PATCHED, (1,))], into, SystemClock(), lambda _: None)


def test_a_patched_product_has_a_folder_of_its_own_in_the_cache() -> None:
    assert PATCHED.release == "patient-1.0.0-patched"
    assert ETCD.release == f"etcd-{ETCD.dotted}"


@pytest.mark.usefixtures("calls")
async def test_a_failed_build_shows_what_go_said(into: Path, tmp_path: Path) -> None:
    pretended(tmp_path, ending="echo no space left on device; exit 1")
    with pytest.raises(ClusterError, match="The disk is full"):
        await build.build(WANTED, into, SystemClock(), lambda _: None)


@pytest.mark.parametrize(
    ("program", "name"),
    [("etcd", "server"), ("nats-server", "nats-server"), ("crane", "crane"), ("coredns", "coredns")],
)
def test_the_name_that_go_gives_a_program(program: str, name: str) -> None:
    assert executable(PROGRAMS[program].product, program) == name


def test_the_products_of_the_plain_set_share_a_module() -> None:
    assert ETCD.module_files() == NATS.module_files() == PROGRAMS["kwok"].product.module_files()
    assert CRANE.module_files() != ETCD.module_files()


def counted(done: int, total: int = 2000) -> BuildProgress:
    compiled = BuildProgress(frozenset(f"example.com/{number}" for number in range(total)))
    compiled.read(f"example.com/{number}\n" for number in range(done))
    return compiled


def test_what_remains_follows_from_what_is_done() -> None:
    assert counted(500).line(60) == "500 of 2,000 packages, about 3 min left"
    assert counted(1500).line(90) == "1,500 of 2,000 packages, about 30 s left"


def test_nothing_is_foretold_from_the_first_few_packages() -> None:
    assert counted(99).line(5) == "99 of 2,000 packages"
    assert counted(0).line(0) == "0 of 2,000 packages"


def test_only_packages_that_were_to_be_compiled_count_and_each_once() -> None:
    compiled = counted(0)
    compiled.read(["example.com/1", "example.com/1", "go: downloading example.com/2 v1.0.0", "# example.com/3"])
    assert compiled.line(1) == "1 of 2,000 packages"


def test_at_the_end_there_is_the_linker_only() -> None:
    assert counted(2000).line(300) == "linking, 300 s"
    assert BuildProgress(frozenset()).line(2) == "linking, 2 s"


@pytest.mark.parametrize(("seconds", "words"), [(4.4, "4 s"), (89, "89 s"), (91, "2 min"), (300, "5 min")])
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
