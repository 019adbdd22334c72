"""The table of all settings in docs/operations.md, made from the schema.

python -m tests.unit.docs.settings_table      writes it into the page
"""

import re
from itertools import groupby
from pathlib import Path

from flotilla_common.settings import known_flags
from flotilla_common.settings.load import PREFIX
from flotilla_common.settings.schema import Option

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
_BLOCK = re.compile(r"(<!-- settings: .*? -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_TITLES = {
    "cluster": "The cluster",
    "bus": "The bus",
    "replicas": "Sharing the work",
    "node": "The node agent",
    "webhook": "The webhook",
    "behaviour": "Behaviour",
    "console": "The console",
    "operations": "Seeing what happens",
}


def table() -> str:
    """Return the whole block between the markers."""
    parts: list[str] = []
    for section, entries in groupby(known_flags(), key=lambda entry: entry[2].section):
        rows = [_row(*entry) for entry in entries]
        parts.append(f"\n### {_TITLES[section]}\n\n| flag | default | variables | meaning |\n|---|---|---|---|\n")
        parts.append("".join(rows))
    return "".join(parts) + "\n"


def current() -> str:
    """Return the content of the page."""
    found = _BLOCK.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None, "the markers are gone"
    return found.group(2)


def _row(flag: str, field: str, option: Option, default: object) -> str:
    shown = _shown(default)
    flags = ", ".join(f"`--{name}`" for name in (flag, *option.flags))
    variables = ", ".join(f"`{name}`" for name in (PREFIX + field.upper(), *option.env))
    return f"| {flags} | {shown} | {variables} | {option.doc.replace('|', chr(92) + '|')} |\n"


def _shown(default: object) -> str:
    match default:
        case bool():
            return f"`{str(default).lower()}`"
        case int():
            return f"`{default}`"
        case float():
            return f"`{default:g}s`"
        case _:
            return f"`{default}`" if default else "-"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_BLOCK.sub(lambda match: match.group(1) + table() + match.group(3), text), encoding="utf-8")
