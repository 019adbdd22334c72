"""Builds programs from Go modules, for machines that can reach a module proxy but no release downloads.

The modules here pin all sources with sums, so that a build gets exactly the tested ones. `go install` cannot build
k8s.io/kubernetes, because that module replaces its staging modules; from a module of our own it works.

All programs of a module are built by one `go build`: shared packages are compiled once, and while one program is
linked, which keeps a single core busy, others are compiled.

Patches of a product (`programs.py`) are applied to a copy of the module, which replaces it in the build's go.mod. (Go
refuses to replace single files of its module cache by `-overlay`.)
"""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from flotilla_cli.local import ClusterError, bound_command
from flotilla_cli.output import Say
from flotilla_common.clock import Clock
from flotilla_dev.cluster.processes import tail
from flotilla_dev.cluster.programs import Patch, Product, Program

BEAT = 1.0  # seconds between progress messages
LOG_LINES = 20
FLAGS = ("-trimpath", "-mod=readonly", "-buildvcs=false")
_STALE = '{{if .Stale}}{{if ne .Name "main"}}{{.ImportPath}}{{end}}{{end}}'  # Go always reports a main package as stale

EARLY = 0.05
"""Share of packages that must be compiled before the remaining time is estimated."""


def go_problem() -> str:
    """Return why nothing can be built here; empty if it can."""
    return "" if shutil.which("go") else "there is no `go` on PATH"


class BuildProgress(msgspec.Struct):
    """The packages of a build that are not in Go's cache, and those that Go has begun."""

    expected: frozenset[str]
    begun: set[str] = set()

    def read(self, lines: Iterable[str]) -> None:
        """Count the packages that `go build -v` printed, one per line; messages between them are ignored."""
        self.begun.update(self.expected.intersection(line.strip() for line in lines))

    def line(self, elapsed: float) -> str:
        """Return the progress line after that many seconds of compiling."""
        done, total = len(self.begun), len(self.expected)
        if done == total:
            return f"linking, {elapsed:.0f} s"
        share = done / total
        left = f", about {duration(elapsed / share * (1 - share))} left" if share >= EARLY else ""
        return f"{done:,} of {total:,} packages{left}"


def duration(seconds: float) -> str:
    """Return seconds for people: `40 s`, `3 min`."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


async def build(programs: Sequence[Program], into: Path, clock: Clock, say: Say) -> None:
    """Build these programs of one module into this folder, and print the progress every second."""
    require_space([program.product for program in programs], into.parent)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=into.parent) as scratch:
        folder = Path(scratch)
        for name, content in programs[0].product.module_files().items():
            (folder / name).write_bytes(content)
        title = f"building {', '.join(program.name for program in programs)}"
        fetching = f"{title}: fetching sources"

        def fetched(elapsed: float) -> None:
            say(f"{fetching}, {elapsed:.0f} s")

        for product in {program.product.name: program.product for program in programs}.values():
            await _patch(product, folder, clock, fetched)
        compiled = await _expected(programs, folder, clock, fetched)
        log = folder / "build.log"
        await _go(
            _arguments(programs, into), log, clock, lambda elapsed: say(f"{title}: {_counted(compiled, log, elapsed)}")
        )
    for program in programs:
        (into / executable(program.product, program.name)).rename(into / program.name)


def require_space(products: Sequence[Product], folder: Path) -> None:
    """Raise ClusterError if the disk is too full for a build."""
    free = shutil.disk_usage(folder).free
    largest = max(products, key=lambda product: product.build_gib)
    if free < largest.build_gib << 30:
        raise ClusterError(
            f"Only {free / 1024**3:.1f} GiB are free on the disk of {folder}; building {largest.name} needs "
            f"{largest.build_gib} GiB. Free some space, or put the cache elsewhere with FLOTILLA_CACHE (and "
            "Go's own with GOCACHE and GOMODCACHE), or name a folder with the programs with --assets."
        )


def executable(product: Product, program: str) -> str:
    """Return Go's name for the program of a package.

    It is the last element of its path that is not a major version, or the module's name.
    """
    parts = [part for part in PurePosixPath(product.packages[program]).parts if not re.fullmatch(r"v\d+", part)]
    return parts[-1] if parts else product.home


async def _patch(product: Product, folder: Path, clock: Clock, say: Callable[[float], None]) -> None:
    """Let the build in this folder take the product's patched modules from copies, since Go's own must not change."""
    for patch in product.patches:
        copy = folder / "patched" / patch.module
        if not copy.exists():
            found = folder / "directory.log"
            await _go(["mod", "download", patch.module], found, clock, say)
            await _go(["list", "-m", "-f", "{{.Dir}}", patch.module], found, clock, say)
            source = Path(found.read_text(encoding="utf-8").splitlines()[-1])
            found.unlink()
            shutil.copytree(source, copy, copy_function=shutil.copyfile)  # without the modes: Go's files are read-only
            await _go(["mod", "edit", f"-replace={patch.module}={copy}"], folder / "edit.log", clock, say)
        try:
            _apply(patch, copy / patch.file)
        except ValueError as error:
            raise ClusterError(f"{product.name} {product.version} cannot be patched: {error}.") from error


def _apply(patch: Patch, file: Path) -> None:
    file.write_text(patch.apply(file.read_text(encoding="utf-8")), encoding="utf-8")


async def _expected(
    programs: Sequence[Program], folder: Path, clock: Clock, say: Callable[[float], None]
) -> BuildProgress:
    """Return the packages that have to be compiled. Listing them downloads the sources."""
    listed = folder / "list.log"
    await _go(["list", "-deps", "-f", _STALE, *FLAGS, *_packages(programs)], listed, clock, say)
    lines = listed.read_text(encoding="utf-8").splitlines()
    # Lines with spaces are about downloads.
    return BuildProgress(frozenset(line for line in lines if line and " " not in line))


def _counted(compiled: BuildProgress, log: Path, elapsed: float) -> str:
    compiled.read(log.read_text(encoding="utf-8", errors="replace").splitlines())
    return compiled.line(elapsed)


def _packages(programs: Sequence[Program]) -> list[str]:
    return [program.product.packages[program.name] for program in programs]


def _arguments(programs: Sequence[Program], into: Path) -> list[str]:
    linked = [_linked(program.product, package) for program, package in zip(programs, _packages(programs), strict=True)]
    return ["build", "-v", *FLAGS, *linked, "-o", f"{into}/", *_packages(programs)]


def _linked(product: Product, package: str) -> str:
    """Return the linker's flags for one program: no symbols, and its version."""
    return f"-ldflags={package}=" + " ".join(["-s", "-w", *(f"-X {assignment}" for assignment in product.linked)])


async def _go(arguments: list[str], log: Path, clock: Clock, say: Callable[[float], None]) -> None:
    started = clock.monotonic()
    environ = {**os.environ, "CGO_ENABLED": "0"}
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *bound_command(["go", *arguments]),
            cwd=log.parent,
            env=environ,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
        )
        waiting = asyncio.ensure_future(process.wait())
        while not waiting.done():
            say(clock.monotonic() - started)
            await asyncio.wait({waiting}, timeout=BEAT)
    if process.returncode:
        raise ClusterError(f"`go {' '.join(arguments)}` failed:\n{_explained(tail(log, LOG_LINES))}")


def _explained(log: str) -> str:
    if "no space left on device" in log:
        return f"{log}\nThe disk is full: free some space, or move Go's caches with GOCACHE and GOMODCACHE."
    if "requires go >=" in log or "toolchain not available" in log:
        return f"{log}\nThe installed Go is too old: install the version named above, or allow GOTOOLCHAIN=auto."
    return log
