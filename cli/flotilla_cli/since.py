"""`--since 10m`: how far a command looks back."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click

from flotilla_common.settings.readers import duration

Command = TypeVar("Command", bound=Callable[..., Any])


class Ago(click.ParamType[timedelta]):
    """A span of time such as 10m or 1h30m."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """The span. Raises click.BadParameter."""
        if isinstance(value, timedelta):
            return value
        try:
            return timedelta(seconds=duration(str(value)))
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


def since_option(told: str) -> Callable[[Command], Command]:
    """--since; `told` is its help."""
    return click.option("--since", type=Ago(), metavar="10m", help=told)
