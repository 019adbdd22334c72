"""The Dockerfile agrees with the builder: they share the code that creates files, not the container's start."""

import json
import re
import shlex
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

from flotilla_dev.image import build

ROOT = Path(__file__).parents[4]
LINES = [line for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]


def stage(name: str) -> list[str]:
    """Return the lines of a stage; the last one has no name."""
    starts = [number for number, line in enumerate(LINES) if line.startswith("FROM ")] + [len(LINES)]
    return {LINES[start].partition(" AS ")[2]: LINES[start:end] for start, end in pairwise(starts)}[name]


def said(instruction: str, name: str = "services") -> list[str]:
    """Return the arguments of an instruction, each time it is in the stage."""
    return [line.partition(" ")[2] for line in stage(name) if line.startswith(f"{instruction} ")]


def test_both_start_alike() -> None:
    run = build.run_config()
    assert said("USER") == [run["User"]]
    assert said("ENV") == run["Env"]
    assert said("WORKDIR") == [run["WorkingDir"]]
    assert json.loads(said("ENTRYPOINT")[0]) == run["Entrypoint"]
    assert json.loads(said("CMD")[0]) == run["Cmd"]
    assert dict(label.split("=", 1) for label in said("LABEL")) == run["Labels"]


def test_both_have_the_same_layers_and_nothing_below() -> None:
    assert said("FROM") == ["scratch AS services"]
    assert said("COPY") == [f"--from=build /image/{title} /" for title in (build.BASE, build.DEPENDENCIES, build.OWN)]


def test_what_runs_a_cluster_is_in_a_stage_of_its_own_and_not_in_the_last() -> None:
    assert stage("devcluster") == ["FROM services AS devcluster", f"COPY --from=build /image/{build.DEV} /"]
    assert stage("") == LINES[-1:] == ["FROM services"]


def test_what_the_build_runs_in_is_pinned() -> None:
    bases = [line.split()[1] for line in LINES if line.startswith("FROM ")]
    bases = [base for base in bases if base not in {"scratch", "services"}]
    assert bases
    assert all(re.fullmatch(r"[a-z/:.-]+@sha256:[0-9a-f]{64}", base) for base in bases)


def test_the_build_makes_files_with_the_builder() -> None:
    (command,) = [line for line in LINES if "flotilla image" in line]
    assert shlex.split(command)[1:] == ["scripts/setup", "&&", ".venv/bin/flotilla", "image", "unpack", "/image"]


def test_the_context_has_what_packages_are_built_from() -> None:
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [rule[1:] for rule in rules if rule.startswith("!")]
    needed = ["scripts", "libs", "services", "cli", "devcluster", "pyproject.toml", "uv.lock"]
    assert [name for name in needed if not any(fnmatch(name, rule) for rule in let_in)] == []
    assert [name for name in (*let_in,) if not (ROOT / name).exists()] == []
