"""Options and error handling of the commands `up`, `down` and `status`."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from flotilla_cli.local import default_state_dir
from flotilla_common.kube.interface import ApiError, Unreachable

Result = TypeVar("Result")
LOG_WIDTH = 160  # columns where there is no terminal to ask

state_option = click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="The state folder (FLOTILLA_STATE).  [default: ~/.local/state/flotilla/up]",
)


def state_folder(state: Path | None) -> Path:
    """Return the state folder that the option means."""
    return (state or default_state_dir()).absolute()


def completed(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work to its end. Raises click.ClickException for errors of the apiserver and of the system."""
    try:
        return asyncio.run(work)
    except (ApiError, Unreachable) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'The system'}: {error.strerror or error}") from error
