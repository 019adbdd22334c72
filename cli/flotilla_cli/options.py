"""Options and arguments that commands share.

Kinds and objects are given as people type them: `clone web`, `CloneSet web`, `clonesets/web`. `--since 10m` is how far
a command looks back.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar

import click
import msgspec

from flotilla_cli.connection import Target, namespace_of, nats_url_of, target_of
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import POD, Resource
from flotilla_common.settings.readers import duration

Command = TypeVar("Command", bound=Callable[..., Any])

POD_WORDS = ("pod", "pods", "po")


class Reach(msgspec.Struct, frozen=True):
    """The cluster, bus and namespace that the options of a command select."""

    kubeconfig: str
    context: str
    nats: str
    namespace: str

    @property
    def target(self) -> Target:
        """Return the cluster."""
        return target_of(self.kubeconfig, self.context)

    @property
    def url(self) -> str:
        """Return the URL of the bus; empty if none is known."""
        return nats_url_of(self.nats, self.kubeconfig)

    def place(self, words: Sequence[str], *, pods: bool = False) -> tuple[Resource, str, str]:
        """Return resource, namespace and name of the object that the words name. Raises click.BadParameter."""
        resource, name = find_object(words, pods=pods)
        return resource, namespace_of(self.namespace, self.target) if resource.namespaced else "", name


def reach_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add -n, --kubeconfig, --context and --nats, as one argument `reach`."""

    @wraps(command)
    def reaching(*words: Any, kubeconfig: str, context: str, nats: str, namespace: str, **others: Any) -> None:
        command(*words, reach=Reach(kubeconfig, context, nats, namespace), **others)

    return namespace_option(cluster_options(bus_option(reaching)))


def cluster_options(command: Command) -> Command:
    """Add --kubeconfig and --context."""
    file_option = click.option("--kubeconfig", default="", metavar="FILE", help="The cluster's kubeconfig.")
    context_option = click.option("--context", default="", help="The kubeconfig's context.")
    return file_option(context_option(command))


def namespace_option(command: Command) -> Command:
    """Add -n. Every command takes it, so a command line of the shell history can be reused."""
    known, text = "the context's", "The object's namespace."
    return click.option("-n", "--namespace", default="", show_default=known, help=text)(command)


def bus_option(command: Command) -> Command:
    """Add --nats."""
    known = "FLOTILLA_NATS, the local cluster's"
    return click.option("--nats", default="", metavar="URL", help="The bus.", show_default=known)(command)


class DurationParam(click.ParamType[timedelta]):
    """A duration such as 10m or 1h30m."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the duration. Raises click.BadParameter."""
        if isinstance(value, timedelta):
            return value
        try:
            return timedelta(seconds=duration(str(value)))
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


def since_option(text: str) -> Callable[[Command], Command]:
    """Add --since with this help."""
    return click.option("--since", type=DurationParam(), metavar="10m", help=text)


def object_argument(command: Command) -> Command:
    """Add KIND NAME, which may be KIND/NAME as for kubectl; `find_object` reads it."""
    return click.argument("words", nargs=-1, required=True, metavar="KIND NAME", shell_complete=complete)(command)


def find_object(words: Sequence[str], *, pods: bool = False) -> tuple[Resource, str]:
    """Return the resource and the name that `words` mean; with `pods`, pods as well. Raises click.BadParameter."""
    kind, slash, name = words[0].partition("/")
    rest = [name, *words[1:]] if slash else list(words[1:])
    if len(rest) != 1 or not rest[0]:
        raise click.BadParameter("expected KIND NAME, or KIND/NAME")
    return POD if pods and kind.lower() in POD_WORDS else find_kind(kind), rest[0]


def find_kind(word: str) -> Resource:
    """Return the resource, in its storage version, for a kind, a plural or a short name. Raises click.BadParameter."""
    try:
        return catalogue.called(word).resource
    except LookupError:
        kinds = ", ".join(kind.singular for kind in catalogue.KINDS)
        raise click.BadParameter(f"unknown kind {word!r}; known kinds are {kinds}") from None


def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the kinds for the first word that a shell completes. Names are not completed: that needs a request."""
    if context.params.get(str(parameter.name)):
        return []
    words = (word for kind in catalogue.KINDS for word in (kind.singular, *kind.short_names))
    return [word for word in words if word.startswith(incomplete.lower())]
