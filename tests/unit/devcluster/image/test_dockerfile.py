"""The Dockerfile says what the builder says: they share the code that makes files, not how a container starts."""

import json
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

from flotilla_dev.image import build

ROOT = Path(__file__).parents[4]
LINES = [line for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]


def said(instruction: str) -> list[str]:
    """The arguments of an instruction, each time it stands in the last stage."""
    last = max(number for number, line in enumerate(LINES) if line.startswith("FROM "))
    return [line.partition(" ")[2] for line in LINES[last:] if line.startswith(f"{instruction} ")]


def test_both_start_alike() -> None:
    run = build.run_config()
    assert said("USER") == [run["User"]]
    assert said("ENV") == run["Env"]
    assert said("WORKDIR") == [run["WorkingDir"]]
    assert json.loads(said("ENTRYPOINT")[0]) == run["Entrypoint"]
    assert json.loads(said("CMD")[0]) == run["Cmd"]
    assert dict(label.split("=", 1) for label in said("LABEL")) == run["Labels"]


def test_both_have_the_same_layers_and_nothing_below() -> None:
    assert said("FROM") == ["scratch"]
    assert said("COPY") == [f"--from=build /image/{title} /" for title in (build.BASE, build.DEPENDENCIES, build.OWN)]


def test_what_the_build_runs_in_is_pinned() -> None:
    bases = [line.split()[1] for line in LINES if line.startswith("FROM ") and line != "FROM scratch"]
    assert bases
    assert all(re.fullmatch(r"[a-z/:.-]+@sha256:[0-9a-f]{64}", base) for base in bases)


def test_the_build_makes_files_with_the_builder() -> None:
    (command,) = [line for line in LINES if "flotilla image" in line]
    assert shlex.split(command)[1:] == ["scripts/setup", "&&", ".venv/bin/flotilla", "image", "unpack", "/image"]


def test_the_context_has_what_packages_are_built_from() -> None:
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [rule[1:] for rule in rules if rule.startswith("!")]
    needed = ["scripts", "libs", "services", "cli", "pyproject.toml", "uv.lock"]
    assert [name for name in needed if not any(fnmatch(name, rule) for rule in let_in)] == []
    assert [name for name in (*let_in,) if not (ROOT / name).exists()] == []
