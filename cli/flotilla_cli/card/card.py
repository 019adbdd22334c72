"""The card as data: a pure function from what was read to what is shown."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.tree.why import Why
from flotilla_common.api.meta import metadata_of


class Rendering(msgspec.Struct, frozen=True):
    """What is particular to a kind: the headline, and the table of parts."""

    headline: str
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()


class Card(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The whole card."""

    kind: str
    namespace: str
    name: str
    created: datetime | None
    deleting: bool
    headline: str
    waiting_for: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Renderer = Callable[[bytes], Rendering]
"""Reads the raw object of one kind."""


def card(kind: str, raw: bytes, renderer: Renderer, why: Why | None) -> Card:
    """The card of an object. Reasons for an earlier namesake are not its own."""
    meta = metadata_of(raw)
    rendering = renderer(raw)
    return Card(
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        created=meta.creation_timestamp,
        deleting=meta.deletion_timestamp is not None,
        headline=rendering.headline,
        waiting_for=why.told if why is not None and why.uid == meta.uid else (),
        columns=rendering.columns,
        rows=tuple(rendering.rows),
    )
