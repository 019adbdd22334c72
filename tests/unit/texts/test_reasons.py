"""Every event of the code has a text that the specification fixes and a table here checks, or is our own."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
OURS = {
    "BarrierNameTaken",
    "FailedPlan",
    "InvalidReplicas",
    "InvalidSelector",
    "InvalidSpec",
    "InvalidSubset",
    "InvalidTarget",
    "InvalidTemplate",
}
"""Events that tell users why nothing happens, where the original has none."""


def made(source: Path) -> Iterator[str]:
    """Yield the reasons in calls of Event, or of `refused`, which creates one."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id in ("refused", "Event") and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


def test_all_reasons_are_held() -> None:
    sources = [*ROOT.glob("services/**/*.py"), *ROOT.glob("libs/**/*.py")]
    reasons = {reason for source in sources for reason in made(source)}
    tables = "".join(one.read_text(encoding="utf-8") for one in HERE.glob("test_[!r]*.py"))
    assert {"FailedCreate", "ResetContainerFailed"} <= reasons
    assert {reason for reason in reasons if f" {reason}:" not in tables and f'"{reason}"' not in tables} == OURS
