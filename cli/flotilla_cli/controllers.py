"""The controller that a command needs."""

from typing import Any

import click

from flotilla_common.api.resources import Resource
from flotilla_common.control.spec import ControllerSpec
from flotilla_insight.services import controllers


def controller_of(resource: Resource) -> ControllerSpec[Any, Any]:
    """Return the controller of the kind. Raises click.ClickException if no installed service has one."""
    found = controllers().get(resource)
    if found is None:
        raise click.ClickException(f"no installed service plans {resource.plural}")
    return found
