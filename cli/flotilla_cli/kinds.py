"""Kinds and objects as people type them: `clone web`, `CloneSet web`, `clonesets/web`."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from flotilla_common.api import crds
from flotilla_common.api.resources import Resource

_PLANNED_BY = {"CloneSet": "cloneset"}
"""The services that plan kinds; `jobs` plans all others."""

Command = TypeVar("Command", bound=Callable[..., Any])


def object_argument(command: Command) -> Command:
    """KIND NAME, or KIND/NAME as kubectl takes it, too; to be read with `find_object`."""
    return click.argument("words", nargs=-1, required=True, metavar="KIND NAME")(command)


def find_object(words: Sequence[str]) -> tuple[Resource, str]:
    """The resource and the name that `words` mean. Raises click.BadParameter."""
    kind, slash, name = words[0].partition("/")
    rest = [name, *words[1:]] if slash else list(words[1:])
    if len(rest) != 1 or not rest[0]:
        raise click.BadParameter("give one KIND NAME, or KIND/NAME")
    return find_kind(kind), rest[0]


def service_of(resource: Resource) -> str:
    """The service that plans objects of the kind."""
    return _PLANNED_BY.get(resource.kind, "jobs")


def find_kind(word: str) -> Resource:
    """The resource, in its storage version, for a kind, a plural or a short name. Raises click.BadParameter."""
    known: dict[str, Resource] = {}
    for definition in crds.manifests():
        spec = definition["spec"]
        names = spec["names"]
        storage = next(version["name"] for version in spec["versions"] if version["storage"])
        resource = Resource(spec["group"], storage, names["plural"], names["kind"], spec["scope"] == "Namespaced")
        words = [names["singular"], names["plural"], *names.get("shortNames", ())]
        known |= dict.fromkeys([*words, f"{names['plural']}.{spec['group']}"], resource)
    if word.lower() not in known:
        kinds = sorted({resource.kind.lower() for resource in known.values()})
        raise click.BadParameter(f"there is no kind {word!r}; there are {', '.join(kinds)}")
    return known[word.lower()]
