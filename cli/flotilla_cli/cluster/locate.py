"""Finding programs that are there already: a folder named by the user, PATH and KUBEBUILDER_ASSETS, our cache.

A program on PATH counts only when its version will do. One in a folder that the user named must do.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.layout import cache_dir
from flotilla_cli.cluster.programs import Product, Program


class Search(msgspec.Struct):
    """What was found, and for what was not: each place looked at and why it would not do."""

    found: dict[str, Path] = {}
    tried: list[str] = []


def cached_dir(product: Product) -> Path:
    """Where downloaded and built programs of a product's pinned version lie."""
    return cache_dir() / "bin" / product.release


def search(
    programs: Iterable[Program],
    assets: Path | None = None,
    env: Mapping[str, str] = os.environ,
    *,
    pinned: bool = False,
) -> Search:
    """Look for each program in every place, in order. `pinned`: only in our cache, whose versions are those that this
    repository pins."""
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
    """Why this file will not do; empty when it will. A file in our cache has been checked when it was put there."""
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
