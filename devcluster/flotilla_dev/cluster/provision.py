"""Provides the programs: finds, downloads or builds them, in this order, and keeps them in the cache.

They are searched for in a folder that the user names, on PATH, in KUBEBUILDER_ASSETS and in our cache. A program on
PATH counts only in a sufficient version; one in the user's folder must have it. Downloads and builds are pinned by sums
in this repository.

One command at a time provides programs; another waits for the lock and then finds them. Programs are renamed into the
cache, so that a killed download or build leaves no half of one.
"""

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from flotilla_cli.local import ClusterError
from flotilla_cli.output import Say
from flotilla_common.clock import Clock
from flotilla_dev.cluster import build, download
from flotilla_dev.cluster.programs import PRODUCTS, PROGRAMS, Product, Program
from flotilla_dev.cluster.state import cache_dir, locked

MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class Search(msgspec.Struct):
    """The result of a search: the programs found, and for the others each place with the reason why not."""

    found: dict[str, Path] = {}
    tried: list[str] = []


def cached_dir(product: Product) -> Path:
    """Return the folder of downloaded and built programs of a product's pinned version."""
    return cache_dir() / "bin" / product.release


def search(
    programs: Iterable[Program],
    assets: Path | None = None,
    env: Mapping[str, str] = os.environ,
    *,
    pinned: bool = False,
) -> Search:
    """Search for each program in all places, in order.

    If `pinned`, only in our cache, which has the versions that this repository pins.
    """
    result = Search()
    for program in programs:
        places = [(cached_dir(program.product) / program.name, "cache")] if pinned else _places(program, assets, env)
        for path, source in places:
            problem = _problem(program, path)
            if not problem:
                result.found[program.name] = path
                break
            if source == "assets" and path.exists():
                raise ClusterError(f"{path}: {problem}. Name another folder with --assets, or leave the option out.")
            result.tried.append(f"{path}: {problem}")
    return result


def _places(program: Program, assets: Path | None, env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    name = program.name
    if assets:
        yield assets / name, "assets"
    if env.get("KUBEBUILDER_ASSETS"):
        yield Path(env["KUBEBUILDER_ASSETS"]) / name, "KUBEBUILDER_ASSETS"
    on_path = shutil.which(name, path=env.get("PATH"))
    yield (Path(on_path) if on_path else Path("PATH") / name), "PATH"
    yield cached_dir(program.product) / name, "cache"


def _problem(program: Program, path: Path) -> str:
    """Return why this file cannot be used; empty if it can. Files in our cache were checked when they got there."""
    if not path.exists():
        return "not there"
    if path.parent == cached_dir(program.product):
        return ""
    try:
        reply = subprocess.run([path, *program.ask], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({error})"
    version = program.version(reply.stdout + reply.stderr)
    if version is None:
        return "does not say its version"
    if version < program.minimum:
        return f"is version {_dotted(version)}, {_dotted(program.minimum)} or newer is needed"
    return ""


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


async def provide(
    names: Iterable[str],
    clock: Clock,
    assets: Path | None = None,
    say: Say = lambda _: None,
    *,
    pinned: bool = False,
) -> Callable[[str], Path]:
    """Return the path of each named program, by whichever way works. Raises ClusterError with all attempts.

    `pinned`: in the pinned version and as downloaded or built, even if the machine has another.
    """
    wanted = [PROGRAMS[name] for name in names]
    found = search(wanted, assets, pinned=pinned)
    if len(found.found) < len(wanted):
        with _only_one(say):
            found = search(wanted, assets, pinned=pinned)  # another command may have got them while we waited
            missing = [one for one in wanted if one.name not in found.found]
            for programs in await _downloaded(missing, say, found):
                await _build(programs, clock, say)
        found = search(wanted, assets, pinned=pinned)
    return found.found.__getitem__


async def _downloaded(programs: list[Program], say: Say, found: Search) -> list[list[Program]]:
    """Download the programs that can be. Return the rest by the module that builds them."""
    left: dict[str, list[Program]] = {}
    for product in PRODUCTS:
        missing = [one for one in programs if one.product is product]
        if missing and (error := await _download(product, [one.name for one in missing], say)):
            if problem := build.go_problem():
                raise ClusterError(_nothing(product, [one.name for one in missing], found, error, problem)) from error
            left.setdefault(product.home, []).extend(missing)
    return list(left.values())


async def _download(product: Product, names: list[str], say: Say) -> download.Unavailable | None:
    """Download programs into the cache. Return the error if they are not available."""
    with _scratch(product.name) as scratch:
        try:
            await download.download(product, names, machine(), scratch, say)
        except download.Unavailable as error:
            return error
        _keep(product, names, scratch)
    return None


async def _build(programs: list[Program], clock: Clock, say: Say) -> None:
    """Build programs of one module into the cache."""
    products = {one.product.name: one.product for one in programs}
    say(f"no release download ({', '.join(products)}); building from Go modules, which takes minutes")
    with _scratch("build") as scratch:
        await build.build(programs, scratch, clock, say)
        for product in products.values():
            _keep(product, [one.name for one in programs if one.product is product], scratch)


@contextmanager
def _scratch(name: str) -> Generator[Path]:
    """Provide a temporary folder on the disk of the cache."""
    folder = cache_dir() / "bin"
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as scratch:
            yield Path(scratch)
    except OSError as error:
        raise ClusterError(f"{name} could not be stored in {folder}: {error.strerror}.") from error


def _keep(product: Product, names: list[str], scratch: Path) -> None:
    target = cached_dir(product)
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        (scratch / name).replace(target / name)


def machine() -> str:
    """Return Go's name for this machine's architecture. Raises ClusterError if the programs do not run here."""
    found = MACHINES.get(platform.machine())
    if found is None or platform.system() != "Linux":
        raise ClusterError(
            f"The local cluster runs on Linux (amd64, arm64); this is {platform.system()} on {platform.machine()}. "
            "`flotilla install` and `flotilla run --kubeconfig …` work against any cluster from here."
        )
    return found


def _nothing(
    product: Product, wanted: list[str], found: Search, download_problem: download.Unavailable, build_problem: str
) -> str:
    names = ", ".join(wanted)
    tried = "\n".join(f"  {line}" for line in found.tried if Path(line.split(":")[0]).name in wanted)
    reachable = "\n  - make the release downloads reachable (HTTPS_PROXY is used)."
    return (
        f"{names} cannot be had on this machine.\nLooked for:\n{tried}\nDownload: {download_problem}\n"
        f"Build from Go modules: {build_problem}\nAny of these helps:\n"
        f"  - put {names} ({product.version}) into a folder and name it with --assets or FLOTILLA_ASSETS;\n"
        "  - install Go 1.26 or newer, then they are built"
        + ("." if isinstance(download_problem, download.Unpinned) else f";{reachable}")
    )


@contextmanager
def _only_one(say: Say) -> Generator[None]:
    folder = cache_dir() / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", partial(say, "another command is getting the programs; waiting for it")):
        yield
        for path in folder.glob(".*-*"):  # left by killed downloads and builds: the lock keeps others out
            shutil.rmtree(path, ignore_errors=True)
