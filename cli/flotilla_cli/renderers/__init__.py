"""How `flotilla get` shows the kinds: one module for each, found by the kind's name in lower case.

Its `picture` says how: a workload as a tree, another object as a card. A kind without a module is shown as a card that
says what every object has.
"""

from functools import partial
from importlib import import_module
from importlib.util import find_spec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_common.api.resources import Resource


def opener(resource: Resource) -> Opener:
    """What opens the picture of an object of the kind."""
    module = f"{__name__}.{resource.kind.lower()}"
    if find_spec(module) is None:
        return partial(LiveCard, bare)
    found: Opener = import_module(module).picture
    return found


def bare(_: bytes) -> Rendering:
    """Nothing but what every object has."""
    return Rendering("")
