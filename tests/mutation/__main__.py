"""Breaks planners and mirror in thousands of small ways, and counts how many of them the unit tests notice.

    python -m tests.mutation                    all mutants that were not tried yet, or whose code changed
    python -m tests.mutation --again            and those that were missed: for new tests
    python -m tests.mutation --seconds 450      as many as fit; the next run continues
    python -m tests.mutation 'flotilla_common.mirror.table*'
    python -m tests.mutation --sample 10        every tenth, always the same ones
    python -m tests.mutation --report           the verdicts so far, without trying any

mutmut requires one package under one folder, so `.mutation` gets a copy of the packages and their tests.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".mutation"
PACKAGES = {
    "flotilla_common": "libs/common/flotilla_common",
    "flotilla_cloneset": "services/cloneset/flotilla_cloneset",
    "flotilla_daemonset": "services/daemonset/flotilla_daemonset",
    "flotilla_jobs": "services/jobs/flotilla_jobs",
    "flotilla_sidecar": "services/sidecar/flotilla_sidecar",
    "flotilla_statefulset": "services/statefulset/flotilla_statefulset",
    "flotilla_policy": "services/policy/flotilla_policy",
    "flotilla_topology": "services/topology/flotilla_topology",
}
AREAS = (
    "advancedcronjob",
    "broadcastjob",
    "cloneset",
    "control",
    "daemonset",
    "ephemeraljob",
    "imagepull",
    "jobs",
    "mirror",
    "persistentpodstate",
    "podprobemarker",
    "podreadiness",
    "podunavailablebudget",
    "recreate",
    "replay",
    "resourcedistribution",
    "sidecarset",
    "statefulset",
    "uniteddeployment",
    "workload",
    "workloadspread",
)
TESTS = ("data", "support", "testkit", "simulation", "unit/webhook", *(f"unit/{area}" for area in AREAS))
CAUGHT, SURVIVED, UNTESTED, UNTRIED = "caught", "survived", "no test", "not tried"
VERDICTS = {0: SURVIVED, 5: UNTESTED, 33: UNTESTED, None: UNTRIED, -24: CAUGHT, 24: CAUGHT, 36: CAUGHT}
"""Verdicts by exit code: pytest's 0 and 5, mutmut's, the kernel's signal for used-up CPU time; the rest is caught."""


def lay_out() -> None:
    """Copy what changed since the last run; results of what did not change are kept."""
    for package, place in PACKAGES.items():
        _copy(ROOT / place, WORK / "src" / package)
    for part in TESTS:
        _copy(ROOT / "tests" / part, WORK / "tests" / part)
    shutil.copy2(ROOT / "tests" / "mutation" / "pyproject.toml", WORK / "pyproject.toml")


def _copy(source: Path, target: Path) -> None:
    wanted = {
        path.relative_to(source) for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    for path in [path for path in target.rglob("*") if path.is_file()]:
        if path.relative_to(target) not in wanted:
            path.unlink()
    for name in wanted:
        old, new = target / name, source / name
        if not old.exists() or old.read_bytes() != new.read_bytes():
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(new, old)


def run(patterns: Sequence[str], seconds: int) -> None:
    """Try mutants, one at a time, for at most so long (0: to the end)."""
    command = [sys.executable, str(ROOT / "tests" / "mutation" / "tool.py"), "run", "--max-children", "1", *patterns]
    with subprocess.Popen(command, cwd=WORK) as process:
        try:
            process.wait(seconds or None)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.send_signal(signal.SIGINT)


def results() -> Iterator[tuple[str, str, str]]:
    """Yield (file, mutant, verdict) of every mutant."""
    for path in sorted((WORK / "mutants" / "src").rglob("*.py.meta")):
        for name, code in json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"].items():
            yield str(path.relative_to(WORK / "mutants" / "src"))[: -len(".meta")], name, VERDICTS.get(code, CAUGHT)


def sampled(name: str, every: int) -> bool:
    """Report whether a mutant belongs to the sample: by its name, so that all runs take the same ones."""
    return zlib.crc32(name.encode()) % every == 0


def report(*, names: bool, every: int) -> None:
    """Print counts by file and in total; with `names` every mutant that was not caught."""
    total: Counter[str] = Counter()
    files: dict[str, Counter[str]] = {}
    for file, name, verdict in results():
        if not sampled(name, every):
            continue
        files.setdefault(file, Counter())[verdict] += 1
        total[verdict] += 1
        if names and verdict in (SURVIVED, UNTESTED):
            print(f"{verdict:9} {name}")
    for file, counts in files.items():
        print(f"{_share(counts)}  {file:52} {dict(counts)}")
    print(f"{_share(total)}  {sum(total.values())} mutants: {dict(total)}")


def _to_try(patterns: Sequence[str], every: int, *, again: bool) -> list[str]:
    """Return the mutants that were not tried, and with `again` those that were missed."""
    return [
        name
        for _, name, verdict in results()
        if sampled(name, every)
        and (not patterns or any(fnmatchcase(name, pattern) for pattern in patterns))
        and (verdict == UNTRIED or (again and verdict != CAUGHT))
    ]


def _share(counts: Counter[str]) -> str:
    tried = sum(counts.values()) - counts[UNTRIED]
    return f"{counts[CAUGHT] / tried:6.1%}" if tried else "     -"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/test mutation", description=__doc__)
    parser.add_argument("patterns", nargs="*", help="mutants by name, with wildcards")
    parser.add_argument("--seconds", type=int, default=0, help="stop after so long")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth mutant")
    parser.add_argument("--again", action="store_true", help="also those that were missed before")
    parser.add_argument("--report", action="store_true", help="try none")
    parser.add_argument("--names", action="store_true", help="name those that were not caught")
    given = parser.parse_args()
    if not given.report:
        lay_out()
        if not any(results()):
            run(["none"], 0)  # makes the mutants
        run(_to_try(given.patterns, given.sample, again=given.again), given.seconds)
    report(names=given.names, every=given.sample)


if __name__ == "__main__":
    main()
