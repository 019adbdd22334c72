"""The simulator from a shell.

python -m tests.simulation list
python -m tests.simulation sweep [SCENARIO …]
python -m tests.simulation slice EVERY FIRST [SCENARIO …]   only one of EVERY faults
python -m tests.simulation exhaustive EVERY FIRST [SCENARIO …]   the same, also of faults that a sweep skips
python -m tests.simulation passes [SCENARIO …]             in passes that write less, or more, than usual
python -m tests.simulation explore FIRST COUNT
python -m tests.simulation replay SCENARIO [FAULT …]      as a failure prints it
python -m tests.simulation replay SCENARIO passes:CUT
python -m tests.simulation replay seed:N | SCRIPT
"""

import sys
from collections.abc import Sequence

import msgspec

from tests.simulation.exploration.explore import AnyScript, explore, script_of
from tests.simulation.perturbation.fault import Fault
from tests.simulation.perturbation.passes import CUTS, check_passes, problems_of_cuts, run_in_passes
from tests.simulation.perturbation.play import run
from tests.simulation.perturbation.sweep import Tally, problems_of, sweep
from tests.simulation.scenarios import every_scenario
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.trace import format_history


def replay(words: Sequence[str]) -> int:
    """Play one run again and print its history."""
    if words[-1].startswith("passes:"):
        return replay_in_passes(words[0], words[-1].removeprefix("passes:"))
    scenario, faults, seed = _meant(words)
    outcome, injector, history = run(scenario, faults, seed=seed)
    marks = dict(zip(injector.injected, map(str, faults), strict=False))
    for line in format_history(history, marks=marks):
        print(line)
    problems = list(outcome.problems)
    if len(faults) == 1 and seed is None:
        reference, _, _ = run(scenario)
        problems = problems_of(scenario, reference, outcome, faults[0])
    print(f"came to rest after {outcome.settled:.3f} s; writes: {dict(outcome.writes)}")
    print("\n".join(["WRONG:", *problems]) if problems else "nothing is wrong")
    return 1 if problems else 0


def replay_in_passes(name: str, cut: str) -> int:
    """Play one scenario again in passes of this sort and print its history."""
    _, history = run_in_passes(every_scenario()[name], CUTS[cut])
    for line in format_history(history):
        print(line)
    problems = problems_of_cuts(name, [cut]).get(cut, [])
    print("\n".join(["WRONG:", *problems]) if problems else "nothing is wrong")
    return 1 if problems else 0


def _meant(words: Sequence[str]) -> tuple[Scenario, Sequence[Fault], int | None]:
    first, *others = words
    if first.startswith("{"):
        script: AnyScript = msgspec.json.decode(first, type=AnyScript)
    elif first.startswith("seed:"):
        script = script_of(int(first.removeprefix("seed:")))
    else:
        return every_scenario()[first], [Fault.parse(text) for text in others], None
    for step in script.steps:
        print(f"    {step}")
    print(f"    faults: {', '.join(map(str, script.faults)) or 'none'}")
    return script.scenario(), script.faults, script.seed


def _swept(tally: Tally) -> int:
    print(tally)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(tally.kinds.items())))
    return 1 if tally.failures else 0


def main(words: Sequence[str]) -> int:
    """Run a command. Returns the exit code."""
    match words:
        case ["list"]:
            for scenario in every_scenario().values():
                print(scenario.name)
            return 0
        case ["sweep", *names]:
            return _swept(sweep(names))
        case ["slice", every, first, *names]:
            return _swept(sweep(names, every=int(every), first=int(first)))
        case ["exhaustive", every, first, *names]:
            return _swept(sweep(names, every=int(every), first=int(first), exhaustive=True))
        case ["passes", *names]:
            return 1 if check_passes(names) else 0
        case ["explore", first, count]:
            return 1 if explore(range(int(first), int(first) + int(count))) else 0
        case ["replay", _, *_]:
            return replay(words[1:])
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
