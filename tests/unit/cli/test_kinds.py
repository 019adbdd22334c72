"""Objects as people type them."""

import click
import pytest

from flotilla_cli.kinds import find_object


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
        (("clone/web", "db"), "one KIND NAME"),
        (("clone", "web", "db"), "one KIND NAME"),
        (("sts", "web"), "there is no kind 'sts'; there are cloneset"),
    ],
    ids=lambda value: "/".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_meant(words: tuple[str, ...], problem: str):
    with pytest.raises(click.BadParameter, match=problem):
        find_object(words)
