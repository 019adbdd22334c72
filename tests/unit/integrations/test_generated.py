"""The files in `integrations/argocd` and `integrations/karmada` are what `integrations.lua.render` makes of its Lua."""

from pathlib import Path

import yaml

from flotilla_common.api.kinds.catalogue import KINDS
from integrations.lua import render

MADE = render.files()


def test_they_are_current():
    stale = [str(path) for path, text in MADE.items() if (render.ROOT / path).read_text(encoding="utf-8") != text]
    assert not stale, "run: .venv/bin/python -m integrations.lua.render"


def test_there_are_no_others():
    found = {
        path.relative_to(render.ROOT) for tool in ("argocd", "karmada") for path in (render.ROOT / tool).rglob("*")
    }
    assert {path for path in found if path.suffix in (".lua", ".yaml")} == set(MADE)


def test_every_kind_has_a_rule_of_health():
    for kind in KINDS:
        assert Path("argocd", kind.resource.group, kind.name, "health.lua") in MADE


def test_the_config_map_holds_the_scripts():
    data = yaml.safe_load(MADE[Path("argocd", "argocd-cm.yaml")])["data"]
    for path, text in MADE.items():
        if path.suffix == ".lua":
            _, group, kind, *rest = path.parts
            if rest == ["health.lua"]:
                held = data[f"resource.customizations.health.{group}_{kind}"]
            else:
                actions = yaml.safe_load(data[f"resource.customizations.actions.{group}_{kind}"])
                named = {one["name"]: one["action.lua"] for one in actions["definitions"]}
                held = actions["discovery.lua"] if rest[1] == "discovery.lua" else named[rest[1]]
            assert held == text


def test_the_config_map_can_be_applied():
    """An annotation of `kubectl apply` contains it a second time, within a limit of 256 KiB."""
    assert len(MADE[Path("argocd", "argocd-cm.yaml")]) < 200_000


def test_karmada_is_told_of_each_version():
    for kind in KINDS:
        path = Path("karmada", f"{kind.singular}.yaml")
        if path in MADE:
            targets = [one["spec"]["target"] for one in yaml.safe_load_all(MADE[path])]
            assert targets == [{"apiVersion": version, "kind": kind.name} for version in kind.api_versions]
