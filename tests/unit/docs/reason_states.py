"""The table of all reasons by their state in docs/explain.md, made from the calls that give them.

python -m tests.unit.docs.reason_states      writes it into the page
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from flotilla_common.control.plan import State

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explain.md"
SOURCES = [path for folder in ("libs", "services", "cli") for path in sorted((ROOT / folder).rglob("*.py"))]
CALLS: dict[str, tuple[int | State, int]] = {
    "reason": (0, 1),
    "Reason": (0, 1),
    "_reason_in": (1, 2),
    "_reason_failed": (State.STUCK, 1),
    "refused": (State.STUCK, 0),
    "_refused": (State.STUCK, 0),
    "_fail": (State.STUCK, 1),
    "_add_groups": (State.STUCK, 0),
    "_container": (State.WAITING, 1),
}
"""Positions of state and code in the arguments of these calls, or the state itself."""

_BLOCK = re.compile(r"(<!-- reasons: .*? -->\n)(.*?)(<!-- end -->)", re.DOTALL)


class Given(msgspec.Struct, frozen=True):
    """One call that gives a reason. Without `states` it takes the state from its own caller, `function`."""

    place: str
    function: str
    states: frozenset[State]
    codes: frozenset[str]
    texts: frozenset[str]  # the beginnings of its message, where they are literal


@cache
def given() -> tuple[Given, ...]:
    """Return all calls that give reasons; read once, because parsing all sources takes seconds."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    constants = dict(pair for tree in trees.values() for pair in _constants(tree))
    return tuple(one for path, tree in trees.items() for one in _calls(path, tree, constants))


def table() -> str:
    """Return the whole block between the markers."""
    found = given()
    rows = ["| state | codes |\n|---|---|\n"]
    for state in State:
        codes = sorted({code for one in found if state in one.states for code in one.codes})
        rows.append(f"| `{state}` | {', '.join(f'`{code}`' for code in codes)} |\n")
    return "".join(rows)


def current() -> str:
    """Return the content of the page."""
    found = _BLOCK.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None, "the markers are gone"
    return found.group(2)


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from ((one.id, node.value.value) for one in node.targets if isinstance(one, ast.Name))


def _calls(path: Path, tree: ast.Module, constants: dict[str, str]) -> Iterator[Given]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            state, code = CALLS.get(name, (0, 0))
            if name in CALLS and len(node.args) > code:
                states = {state} if isinstance(state, State) else _states(node.args[state], function)
                codes = frozenset(_codes(node.args[code], constants))
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                texts = frozenset(_texts(node.args[code + 1 :], function))
                yield Given(place, function.name, frozenset(states), codes, texts)


def _states(node: ast.expr, function: ast.AST) -> set[State]:
    """Return the members of State that the expression names, or what the function assigns to it."""
    found = {State[one.attr] for one in ast.walk(node) if isinstance(one, ast.Attribute) and one.attr in _NAMES}
    if found or not isinstance(node, ast.Name):
        return found
    return {state for value in _assigned(node.id, function) for state in _states(value, ast.Pass())}


def _assigned(name: str, function: ast.AST) -> Iterator[ast.expr]:
    for one in ast.walk(function):
        if isinstance(one, ast.Assign) and name in {t.id for t in one.targets if isinstance(t, ast.Name)}:
            yield one.value


_NAMES = State.__members__


def _texts(rest: list[ast.expr], function: ast.AST) -> Iterator[str]:
    """Return how the message begins: of a literal, a formatted string, or what the function assigns to its name."""
    for node in rest[:1]:
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=[first, *_]):
                yield from _texts([first], function)
            case ast.IfExp(body=body, orelse=orelse):
                yield from (*_texts([body], function), *_texts([orelse], function))
            case ast.Name(id=name):
                yield from (text for value in _assigned(name, function) for text in _texts([value], ast.Pass()))
            case ast.FormattedValue(value=ast.Name() as inner):
                yield from _texts([inner], function)
            case _:
                pass


def _codes(node: ast.expr, constants: dict[str, str]) -> Iterator[str]:
    for one in ast.walk(node):
        text = constants.get(one.id, "") if isinstance(one, ast.Name) else getattr(one, "value", "")
        if isinstance(text, str) and re.fullmatch(r"([A-Z][a-z]+)+", text):
            yield text


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_BLOCK.sub(lambda found: found[1] + table() + found[3], page), encoding="utf-8")
