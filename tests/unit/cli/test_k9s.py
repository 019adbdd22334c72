"""The plugins of k9s: their form, their scopes, and that each command line is one that the command takes."""

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from flotilla_cli.main import main
from flotilla_cli.options import find_object
from flotilla_common.api.crds import manifests
from flotilla_common.api.kinds import catalogue

ROOT = Path(__file__).parents[3]
PLUGINS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "integrations/k9s/plugins.yaml").read_text())["plugins"]
NAMES = {
    word: spec["names"]["plural"]
    for spec in (manifest["spec"] for manifest in manifests())
    for word in (spec["names"]["plural"], *spec["names"].get("shortNames", ()))
}
AMBIGUOUS = {"sts", "statefulsets", "daemonsets"}
"""Words that mean kinds of Kubernetes, too."""
GROUPS = {kind.resource.plural: kind.resource.group for kind in catalogue.KINDS}
NAMESPACED = {kind.resource.plural: kind.resource.namespaced for kind in catalogue.KINDS} | {"pods": True}
FIELDS = {"shortCut", "description", "scopes", "command", "background", "args", "confirm", "dangerous"}
CASES = [(name, scope) for name, plugin in PLUGINS.items() for scope in plugin["scopes"]]


def line(plugin: dict[str, Any], plural: str) -> list[str]:
    """Return the arguments as k9s fills them in for an object of this kind."""
    values = {
        "RESOURCE_NAME": plural,
        "RESOURCE_GROUP": GROUPS.get(plural, ""),
        "NAME": "web",
        "NAMESPACE": "shop" if NAMESPACED[plural] else "-",
        "CONTEXT": "production",
        "KUBECONFIG": "/home/me/.kube/config",
    }
    return [re.sub(r"\$\{?([A-Z_]+)\}?", lambda found: values[found[1]], text) for text in plugin["args"]]


def test_the_file_has_the_form_that_k9s_reads() -> None:
    for plugin in PLUGINS.values():
        assert plugin.keys() <= FIELDS
        assert {"shortCut", "description", "scopes", "command"} <= plugin.keys()
        assert re.fullmatch(r"Shift-[A-Z]", plugin["shortCut"])
    keys = [plugin["shortCut"] for plugin in PLUGINS.values()]
    assert len(keys) == len(set(keys))


def test_explain_is_there_for_every_kind_and_for_pods() -> None:
    scopes = {NAMES.get(scope, scope) for scope in PLUGINS["flotilla-explain"]["scopes"]}
    assert scopes == {kind.resource.plural for kind in catalogue.KINDS} | {"pods"}


@pytest.mark.parametrize(("name", "scope"), CASES)
def test_every_line_is_one_that_the_command_takes(name: str, scope: str) -> None:
    assert scope == "pods" or scope in NAMES.keys() - AMBIGUOUS
    plugin, plural = PLUGINS[name], NAMES.get(scope, scope)
    words = line(plugin, plural)
    if words[0] == "patch":
        _patches(words, plural)
        return
    if plugin["command"] == "sh":
        assert words[:2] == ["-c", 'kubectl flotilla "$@" 2>&1 | less -R -+F'], "names are no text of a shell"
    else:
        assert plugin["command"] == "kubectl"
    verb, *arguments = words[words.index("flotilla") + 1 :]
    context = click.Context(main)
    command = main.get_command(context, verb)  # type: ignore[attr-defined]
    assert command is not None
    taken = command.make_context(verb, arguments, parent=context).params
    assert taken["namespace"] == ("shop" if NAMESPACED[plural] else "-")
    if "words" in taken:
        resource, named = find_object(taken["words"], pods=True)
        assert (resource.plural, named) == (plural, "web")


def _patches(words: list[str], plural: str) -> None:
    """Check that the field that it sets is in the stored version."""
    assert words[1:3] == [f"{plural}.v1beta1.apps.kruise.io", "web"]
    spec = next(one["spec"] for one in manifests() if one["spec"]["names"]["plural"] == plural)
    (version,) = (one for one in spec["versions"] if one["name"] == "v1beta1")
    schema, body = version["schema"]["openAPIV3Schema"], json.loads(words[words.index("--patch") + 1])
    while isinstance(body, dict):
        ((field, body),) = body.items()
        schema = schema["properties"][field]
    assert schema["type"] == "boolean"
