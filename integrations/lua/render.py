"""Generates the files of `integrations/argocd` and `integrations/karmada` from the Lua in this folder.

    .venv/bin/python -m integrations.lua.render      writes them

Each script is self-contained, as both tools require: it begins with the common functions that it uses.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from flotilla_common.api.kinds.catalogue import KINDS
from flotilla_common.api.kinds.kind import Kind
from integrations.lua.scripts import SCRIPTS, TEMPLATE, Actions, Karmada

HERE = Path(__file__).parent
ROOT = HERE.parent
_MADE = "# Made by integrations/lua/render.py from the Lua beside it.\n"
_FUNCTION = re.compile(r"local function (\w+)")


def files() -> dict[Path, str]:
    """Return the content of each generated file, by its path below `integrations`."""
    found: dict[Path, str] = {}
    for kind in KINDS:
        folder = Path("argocd", kind.resource.group, kind.name)
        found |= {folder / name: text for name, text in _argocd(kind).items()}
    found[Path("argocd", "argocd-cm.yaml")] = _config_map()
    for kind in KINDS:
        karmada = SCRIPTS[kind.name].karmada
        if karmada is not None:
            found[Path("karmada", f"{kind.singular}.yaml")] = _MADE + "---\n".join(_customizations(kind, karmada))
    return found


def source(*parts: str) -> str:
    """Return one of the files of this folder."""
    return HERE.joinpath(*parts).read_text(encoding="utf-8")


# Argo CD


def _argocd(kind: Kind) -> dict[str, str]:
    actions = SCRIPTS[kind.name].actions
    found = {"health.lua": _health(kind, "argocd")}
    if actions.disabled:
        found["actions/discovery.lua"] = _with_functions(_discovery(actions), source("place.lua"))
    for action in actions.disabled:
        found[f"actions/{action}/action.lua"] = _with_functions(_action(kind, actions, action), source("place.lua"))
    return found


def _health(kind: Kind, tool: str) -> str:
    rule = source("kinds", f"{kind.name}.lua")
    body = "".join(line for line in rule.splitlines(keepends=True) if not line.startswith("--"))
    script = _with_functions(body, source("reading.lua") + "\n" + source(tool, "verdicts.lua"))
    return script if tool == "karmada" else f"{rule.removesuffix(body)}\n{script}"


def _discovery(actions: Actions) -> str:
    entries = (f"  {name} = {{disabled = {when}}},\n" for name, when in actions.disabled.items())
    return actions.strategy + actions.template + actions.prelude + "return {\n" + "".join(entries) + "}\n"


def _action(kind: Kind, actions: Actions, action: str) -> str:
    own = HERE / "argocd" / "actions" / f"{action}.{kind.name}.lua"
    text = own.read_text(encoding="utf-8") if own.exists() else source("argocd", "actions", f"{action}.lua")
    return ((actions.template or TEMPLATE) if action == "restart" else actions.strategy) + text


def _config_map() -> str:
    parts = [_MADE, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: argocd-cm\ndata:\n"]
    for kind in KINDS:
        name = f"{kind.resource.group}_{kind.name}"
        scripts = _argocd(kind)
        parts.append(f"  resource.customizations.health.{name}: |\n{_indented(scripts.pop('health.lua'), 4)}")
        if scripts:
            discovery = _indented(scripts.pop("actions/discovery.lua"), 6)
            parts.append(f"  resource.customizations.actions.{name}: |\n    discovery.lua: |\n{discovery}")
            parts.append("    definitions:\n")
        for path, text in scripts.items():
            parts.append(f"    - name: {Path(path).parent.name}\n      action.lua: |\n{_indented(text, 8)}")
    return "".join(parts)


# Karmada


def _customizations(kind: Kind, karmada: Karmada) -> Iterator[str]:
    for version in kind.versions:
        fields = set(kind.rules().schema(version).status.get("properties", {}))
        yield (
            "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\n"
            f"metadata:\n  name: flotilla-{kind.singular}-{version}\n"
            f"spec:\n  target:\n    apiVersion: {kind.resource.group}/{version}\n    kind: {kind.name}\n"
            "  customizations:\n"
        ) + "".join(
            f"    {name}:\n      luaScript: |\n{_indented(text, 8)}"
            for name, text in _operations(kind, karmada, fields).items()
        )


def _operations(kind: Kind, karmada: Karmada, fields: set[str]) -> dict[str, str]:
    common = source("reading.lua") + "\n" + source("place.lua")
    health = _indented("local obj = observedObj\n" + _health(kind, "karmada"), 2)
    operations = {"healthInterpretation": f"function InterpretHealth(observedObj)\n{health}end\n"}
    operations |= {
        "statusReflection": _with_functions(_constants(karmada, fields, "reflect.lua"), common),
        "statusAggregation": _with_functions(_constants(karmada, fields, "aggregate.lua"), common),
    }
    retained = karmada.retained
    if karmada.scaled:
        retained = source("karmada", "retain_replicas.lua") + retained
        replicas = source("karmada", "replicas.lua").replace("TEMPLATE", karmada.template)
        operations["replicaResource"] = _with_functions(replicas, common)
        operations["replicaRevision"] = _with_functions(source("karmada", "revise.lua"), common)
    if retained:
        text = source("karmada", "retain.lua").replace("RETAINED\n", retained)
        operations["retention"] = _with_functions(text, common)
    if karmada.template:
        text = source("karmada", "pods.lua").replace("TEMPLATE", karmada.template)
        operations["dependencyInterpretation"] = _with_functions(text, common)
    if karmada.secrets:
        operations["dependencyInterpretation"] = _with_functions(source("karmada", "secrets.lua"), common)
    return operations


def _constants(karmada: Karmada, fields: set[str], file: str) -> str:
    """Put the names of the fields that the version has before the functions of a file."""
    summed = (*karmada.counts, *karmada.texts, *karmada.lists, *karmada.first, *karmada.last)
    lists = {
        "COUNTS": karmada.counts,
        "TEXTS": karmada.texts,
        "LISTS": karmada.lists,
        "FIRST": karmada.first,
        "LAST": karmada.last,
        "FIELDS": (*summed, "phase", "observedGeneration", "conditions", "subsetStatuses"),
    }
    text = source("karmada", file)
    constants = [
        _table(name, [field for field in names if field in fields]) for name, names in lists.items() if name in text
    ]
    if "PHASES" in text:
        constants.append(_table("PHASES", karmada.phases))
    return "".join(constants) + f"local GENERATIONS = {str(karmada.generations).lower()}\n\n" + text


def _table(name: str, words: tuple[str, ...] | list[str]) -> str:
    quoted = [f'"{word}"' for word in words]
    line = f"local {name} = {{{', '.join(quoted)}}}\n"
    rows = "".join(f"  {word},\n" for word in quoted)
    return line if len(line) <= 110 else f"local {name} = {{\n{rows}}}\n"


# Lua


def _with_functions(body: str, functions: str) -> str:
    """Put the functions that the body uses before it, with those that they use."""
    used, text = list[str](), body
    for chunk in reversed(list(_chunks(functions))):
        name = _FUNCTION.search(chunk)
        if name is None or re.search(rf"\b{name.group(1)}\(", text):
            used.insert(0, chunk)
            text = chunk + text
    return "".join(used).rstrip("\n") + "\n\n" + body if used else body


def _chunks(functions: str) -> Iterator[str]:
    """Yield each function, or other statement, with the comment before it and the empty line after it."""
    chunk = ""
    for line in functions.splitlines(keepends=True):
        begins = line.startswith(("local function", "if ", "--"))
        only_comment = all(one.startswith("--") for one in chunk.splitlines())
        if begins and chunk and not only_comment:
            yield chunk
            chunk = ""
        chunk += line
    yield chunk


def _indented(text: str, spaces: int) -> str:
    return "".join((" " * spaces + line if line.strip() else line) for line in text.splitlines(keepends=True))


def main() -> None:
    """Write the files, and remove stale ones."""
    made = files()
    for path in [*(ROOT / "argocd").rglob("*.*"), *(ROOT / "karmada").glob("*.yaml")]:
        if path.is_file() and path.relative_to(ROOT) not in made and path.suffix in (".lua", ".yaml"):
            path.unlink()
    for path, text in made.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
