"""Runs the Lua of `integrations/` as Argo CD and Karmada do: Lua 5.1 with hardly any library, documents as tables."""

from pathlib import Path
from typing import Any

import yaml
from lupa.lua51 import LuaRuntime, lua_type

from tests.testkit.documents import Json

ROOT = Path(__file__).parents[2] / "integrations"
_SAFE = (
    "for _, name in ipairs({'string', 'math', 'io', 'debug', 'coroutine', 'package', 'require', 'python'}) do"
    " _G[name] = nil end getmetatable('').__index = nil local date = os.date os = {date = date}"
)


class Lua:
    """A virtual machine that compiles each script once."""

    def __init__(self) -> None:
        self._lua = LuaRuntime(register_eval=False, register_builtins=False, unpack_returned_tuples=True)
        self._lua.execute(_SAFE)
        self._compiled: dict[str, Any] = {}

    def run(self, script: str, obj: object) -> Any:
        """Run a script of Argo CD, which finds the object in a global, and return what it returns."""
        if script not in self._compiled:
            self._compiled[script] = self._lua.compile(script)
        self._lua.globals()["obj"] = self.to_lua(obj)
        return self.from_lua(self._compiled[script]())

    def call(self, script: str, function: str, *arguments: object) -> Any:
        """Define the functions of a script of Karmada, and call one; several results are returned as a list."""
        self._lua.execute(script)
        found = self._lua.globals()[function](*(self.to_lua(one) for one in arguments))
        return [self.from_lua(one) for one in found] if isinstance(found, tuple) else self.from_lua(found)

    def provide(self, module: Json) -> None:
        """Have `require` return a module of these Python functions, which receive documents and return a tuple."""

        def as_lua(call: Any) -> Any:
            return lambda *arguments: tuple(
                self.to_lua(one) for one in call(*(self.from_lua(one) for one in arguments))
            )

        table = self._lua.table_from({name: as_lua(call) for name, call in module.items()})
        self._lua.globals()["require"] = lambda _name: table

    def to_lua(self, value: object) -> Any:
        """Return a document as both tools give it to scripts: null is as absent."""
        if isinstance(value, dict):
            return self._lua.table_from({key: self.to_lua(one) for key, one in value.items() if one is not None})
        if isinstance(value, list):
            return self._lua.table_from([self.to_lua(one) for one in value if one is not None])
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def from_lua(self, value: Any) -> Any:
        """Return a document; a table without members is an empty object."""
        if lua_type(value) == "table":
            if len(value):
                return [self.from_lua(one) for one in value.values()]
            return {key: self.from_lua(one) for key, one in value.items()}
        return int(value) if isinstance(value, float) and value.is_integer() else value


def script(*parts: str) -> str:
    """Return one of the files in `integrations/argocd`."""
    return ROOT.joinpath("argocd", *parts).read_text(encoding="utf-8")


def health(lua: Lua, document: Json) -> tuple[str, str]:
    """Return status and message that Argo CD shows of an object."""
    found = lua.run(script(_group(document), document["kind"], "health.lua"), document)
    return found["status"], found["message"]


def disabled_actions(lua: Lua, document: Json) -> dict[str, bool]:
    """Return the actions that Argo CD offers for an object: whether each is disabled."""
    found = lua.run(script(_group(document), document["kind"], "actions", "discovery.lua"), document)
    return {name: action["disabled"] for name, action in found.items()}


def acted(lua: Lua, document: Json, action: str) -> Json:
    """Return the merge patch that Argo CD sends when a user chooses an action."""
    found = lua.run(script(_group(document), document["kind"], "actions", action, "action.lua"), document)
    return _difference(lua.from_lua(lua.to_lua(document)), found)


def interpreters() -> dict[tuple[str, str], Json]:
    """Return the customizations for Karmada, by kind and version."""
    found: dict[tuple[str, str], Json] = {}
    for path in (ROOT / "karmada").glob("*.yaml"):
        for one in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            target = one["spec"]["target"]
            found[target["kind"], target["apiVersion"]] = one["spec"]["customizations"]
    return found


def _group(document: Json) -> str:
    return document["apiVersion"].split("/")[0]


def _difference(before: Json, after: Json) -> Json:
    patch: Json = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        if isinstance(value, dict) and isinstance(before.get(key), dict):
            inner = _difference(before[key], value)
            if inner:
                patch[key] = inner
        elif value != before.get(key):
            patch[key] = value
    return patch
