"""Objects as people type them."""

import click
import pytest
from click.shell_completion import ShellComplete

from flotilla_cli.main import main
from flotilla_cli.options import find_object
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import POD


@pytest.mark.parametrize(
    "words",
    [("clone", "web"), ("CloneSet", "web"), ("clonesets", "web"), ("clonesets.apps.kruise.io", "web"), ("clone/web",)],
    ids="/".join,
)
def test_an_object_by_any_of_its_names(words: tuple[str, ...]):
    resource, name = find_object(words)
    assert (resource.plural, resource.version, name) == ("clonesets", "v1beta1", "web")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("clone",), "KIND/NAME"),
        (("clone/",), "KIND/NAME"),
        (("clone/web", "db"), "expected KIND NAME"),
        (("clone", "web", "db"), "expected KIND NAME"),
        (("ds", "web"), "unknown kind 'ds'; known kinds are advancedcronjob"),
    ],
    ids=lambda value: "/".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_meant(words: tuple[str, ...], problem: str):
    with pytest.raises(click.BadParameter, match=problem):
        find_object(words)


@pytest.mark.parametrize("verb", ["get", "explain", "bundle"])
@pytest.mark.parametrize(
    ("before", "word", "offered"),
    [
        ([], "c", ["cloneset", "clone", "containerrecreaterequest", "crr"]),
        ([], "ImageP", ["imagepulljob"]),
        (["-n", "shop"], "no", ["nodeimage", "nodepodprobe"]),
        (["clone"], "", []),
        ([], "ds", []),
    ],
    ids=["some", "any case", "behind an option", "names are the cluster's", "none"],
)
def test_a_shell_completes_kinds(verb: str, before: list[str], word: str, offered: list[str]):
    completion = ShellComplete(main, {}, "flotilla", "_FLOTILLA_COMPLETE")
    assert [item.value for item in completion.get_completions([verb, *before], word)] == offered


def test_what_is_none_of_our_kinds_belongs_to_no_service():
    with pytest.raises(LookupError, match="Pod v1 is not one of Flotilla's kinds"):
        catalogue.kind_of(POD)
