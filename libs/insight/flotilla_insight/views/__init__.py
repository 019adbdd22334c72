"""Views of kinds for people: every module here lists those of its kinds in `VIEWS`.

A kind without a view has the defaults: it is shown with what every object has.
"""

import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.meta import OwnerReference
from flotilla_common.api.resources import Resource
from flotilla_insight.views.kindview import KindView


@cache
def _declared(folders: tuple[str, ...]) -> Mapping[str, KindView]:
    """Return the views of all modules in the folders, by the id of their resource."""
    modules = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(folders)]
    return {view.resource.id: view for module in modules for view in getattr(module, "VIEWS", ())}


def has_view(resource: Resource) -> bool:
    """Report whether a module declares a view of the kind."""
    return resource.id in _declared(tuple(__path__))


def view_of(resource: Resource) -> KindView:
    """Return the view of the kind."""
    return _declared(tuple(__path__)).get(resource.id) or KindView(resource=resource)


def view_of_owner(reference: OwnerReference) -> KindView | None:
    """Return the view of the owner's kind; None if it is not one of ours."""
    try:
        return view_of(catalogue.named(reference.api_version.partition("/")[0], reference.kind).resource)
    except LookupError:
        return None


def all_views() -> Sequence[KindView]:
    """Return the views of all kinds of the catalogue."""
    return [view_of(kind.resource) for kind in catalogue.KINDS]
