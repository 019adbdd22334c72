"""Building programs from Go modules, for machines that can reach a module proxy but no release downloads.

Each product has its own small module with pinned sums, so a build gets exactly the sources that we tried. `go install`
cannot build k8s.io/kubernetes, because that module replaces its staging modules; from a module of our own it works.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.process import bound_command, tail
from flotilla_cli.cluster.programs import Product
from flotilla_cli.cluster.progress import Say
from flotilla_common.clock import Clock

BEAT = 1.0  # seconds between signs of life
LOG_LINES = 20


def go_problem() -> str:
    """Why nothing can be built here; empty when it can."""
    return "" if shutil.which("go") else "there is no `go` on PATH"


async def build(product: Product, names: Collection[str], into: Path, clock: Clock, say: Say) -> None:
    """Build these programs of a product into this folder, saying the step and the elapsed time every second."""
    require_space(product, into.parent)
    with tempfile.TemporaryDirectory(prefix=f".build-{product.name}-", dir=into.parent) as scratch:
        folder = Path(scratch)
        for name, content in product.module_files().items():
            (folder / name).write_bytes(content)
        log = folder / "build.log"
        for program in names:
            package = product.packages[program]
            title = f"building {program} {product.version}"
            arguments = _arguments(product, package, into / program)
            await _go(arguments, log, clock, lambda detail, title=title: say(f"{title}, {detail}"))


def require_space(product: Product, folder: Path) -> None:
    """Raises ClusterError when the disk is too full for a build."""
    free = shutil.disk_usage(folder).free
    if free < product.build_gib << 30:
        raise ClusterError(
            f"Only {free / 1024**3:.1f} GiB are free on the disk of {folder}; building {product.name} needs "
            f"{product.build_gib} GiB. Free some space, or put the cache elsewhere with FLOTILLA_CACHE (and "
            "Go's own with GOCACHE and GOMODCACHE), or name a folder with the programs with --assets."
        )


def _arguments(product: Product, package: str, output: Path) -> list[str]:
    linked = " ".join(["-s", "-w", *(f"-X {assignment}" for assignment in product.linked)])
    return ["build", "-trimpath", "-mod=readonly", "-buildvcs=false", f"-ldflags={linked}", "-o", str(output), package]


async def _go(arguments: list[str], log: Path, clock: Clock, say: Say) -> None:
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
            say(f"{clock.monotonic() - started:.0f} s")
            await asyncio.wait({waiting}, timeout=BEAT)
    if process.returncode:
        raise ClusterError(f"`go {' '.join(arguments)}` failed:\n{_explained(tail(log, LOG_LINES))}")


def _explained(log: str) -> str:
    if "no space left on device" in log:
        return f"{log}\nThe disk is full: free some space, or move Go's caches with GOCACHE and GOMODCACHE."
    if "requires go >=" in log or "toolchain not available" in log:
        return f"{log}\nThe installed Go is too old: install the version named above, or allow GOTOOLCHAIN=auto."
    return log
