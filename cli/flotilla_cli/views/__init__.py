"""Views of kinds for the command line: one module for each, found by its name.

`cloneset.py` is about a kind of ours, `batch_job.py` about one of Kubernetes, by its group. A kind without a module has
the defaults: it is shown with what every object has.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from flotilla_cli.views.kindview import KindView
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.meta import OwnerReference
from flotilla_common.api.resources import Resource


def view_of(resource: Resource) -> KindView:
    """Return the view of the kind."""
    ours = any(resource.id == kind.resource.id for kind in catalogue.KINDS)
    name = resource.kind if ours else f"{resource.group.replace('.', '_') or 'core'}_{resource.kind}"
    module = f"{__name__}.{name.lower()}"
    if find_spec(module) is None:
        return KindView(resource=resource)
    found: KindView = import_module(module).VIEW
    return found


def view_of_owner(reference: OwnerReference) -> KindView | None:
    """Return the view of the owner's kind; None if it is not one of ours."""
    try:
        return view_of(catalogue.named(reference.api_version.partition("/")[0], reference.kind).resource)
    except LookupError:
        return None


def all_views() -> Sequence[KindView]:
    """Return the views of all kinds of the catalogue."""
    return [view_of(kind.resource) for kind in catalogue.KINDS]
