"""The environment of all tests and their processes, without access to the user's own clusters.

`tests/conftest.py` calls `enter` before anything else of a layer is imported. Processes inherit the result, as do
workers of pytest-xdist and pytest in pytest; those find it entered already, and keep what their test has set.

- Variables that lead elsewhere are removed, and all of Flotilla's own but `KNOBS`.
- HOME is an empty folder. Caches (ours, those of uv, pip and Go) stay where they are.
- PATH begins with a folder of programs that do not work, under the names of those that sets and images are made of:
  so a kubectl or nats-server of the machine is never used instead of ours.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from flotilla_dev.cluster.processes import cleaned
from flotilla_dev.cluster.programs import PROGRAMS

ENTERED = "_FLOTILLA_TEST_HOME"
"""The folder that is HOME, once the environment is entered."""

KNOBS = ("FLOTILLA_CACHE", "FLOTILLA_TEST_CONTAINERS", "FLOTILLA_RANDOM_PODS", "FLOTILLA_HOSTILE")
"""Variables by which developers configure tests, described in docs/development.md."""

STUB = """\
#!/bin/sh
echo "{name}: tests use the program of the cache, not this machine's" >&2
exit 127
"""


def enter() -> None:
    """Clean the environment of this process, once."""
    if Path(os.environ.get(ENTERED, "/nowhere")).is_dir():
        return
    home = Path(tempfile.mkdtemp(prefix="flotilla-tests-"))
    atexit.register(_leave, home, os.getpid())
    wanted = surroundings(os.environ, home)
    os.environ.clear()
    os.environ.update(wanted)


def surroundings(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment that tests have, with `home` as HOME."""
    kept = {
        name: value for name, value in cleaned(environment).items() if name in KNOBS or not name.startswith("FLOTILLA_")
    }
    stubs = home / "not-ours"
    _disable((*PROGRAMS, "docker"), stubs)
    path = os.pathsep.join((str(stubs), environment.get("PATH", os.defpath)))
    return _caches(environment) | kept | {"HOME": str(home), "PATH": path, ENTERED: str(home)}


def _caches(environment: Mapping[str, str]) -> dict[str, str]:
    """Return where the caches are that are usually in the home folder."""
    home = Path(environment.get("HOME") or Path.home())
    caches = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    go = Path(environment.get("GOPATH") or home / "go")
    return {
        "FLOTILLA_CACHE": str(caches / "flotilla"),
        "UV_CACHE_DIR": str(caches / "uv"),
        "PIP_CACHE_DIR": str(caches / "pip"),
        "GOPATH": str(go),
        "GOCACHE": str(caches / "go-build"),
    }


def _disable(names: Iterable[str], folder: Path) -> None:
    folder.mkdir()
    for name in names:
        (folder / name).write_text(STUB.format(name=name), encoding="utf-8")
        (folder / name).chmod(0o755)


def _leave(home: Path, owner: int) -> None:
    """Remove the folder; forks of this process have their own end."""
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)
