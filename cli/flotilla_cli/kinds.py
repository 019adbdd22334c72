"""Kinds and objects as people type them: `clone web`, `CloneSet web`, `clonesets/web`."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import Resource

Command = TypeVar("Command", bound=Callable[..., Any])


def object_argument(command: Command) -> Command:
    """KIND NAME, or KIND/NAME as kubectl takes it, too; to be read with `find_object`."""
    return click.argument("words", nargs=-1, required=True, metavar="KIND NAME", shell_complete=complete)(command)


def find_object(words: Sequence[str]) -> tuple[Resource, str]:
    """The resource and the name that `words` mean. Raises click.BadParameter."""
    kind, slash, name = words[0].partition("/")
    rest = [name, *words[1:]] if slash else list(words[1:])
    if len(rest) != 1 or not rest[0]:
        raise click.BadParameter("give one KIND NAME, or KIND/NAME")
    return find_kind(kind), rest[0]


def find_kind(word: str) -> Resource:
    """The resource, in its storage version, for a kind, a plural or a short name. Raises click.BadParameter."""
    try:
        return catalogue.called(word).resource
    except LookupError:
        kinds = ", ".join(kind.singular for kind in catalogue.KINDS)
        raise click.BadParameter(f"there is no kind {word!r}; there are {kinds}") from None


def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The kinds for the first word that a shell asks about. Names of objects only the cluster knows."""
    if context.params.get(str(parameter.name)):
        return []
    words = (word for kind in catalogue.KINDS for word in (kind.singular, *kind.short_names))
    return [word for word in words if word.startswith(incomplete.lower())]
