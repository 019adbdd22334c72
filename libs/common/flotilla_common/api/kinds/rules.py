"""The part of a kind that only the installer and the webhook need: schema, conversion, admission."""

from collections.abc import Callable

import msgspec

from flotilla_common.api.admission.handlers import Handler
from flotilla_common.api.crds.schema import Version
from flotilla_common.api.documents import Json

Converter = Callable[[Json, str], Json]
"""Converts a document to another `group/version`, as a new document. Raises ValueError for an unknown one."""

WRITES = ("CREATE", "UPDATE")


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """The webhooks of a kind (webhooks.md §3). Their paths follow from group and kind."""

    mutate: Handler | None = None  # called at CREATE and UPDATE
    validate: Handler | None = None
    validates: tuple[str, ...] = WRITES
    name: str = ""  # of the entries, between the verb's letter and `.kb.io`; empty: the kind in lower case
    old_paths: bool = False  # the paths of old charts, which name v1alpha1, are served too
    calls_old_path: bool = False  # the entries call the old path
    arms_pods: bool = False  # objects need the pod webhook: they are admitted after their rule is in use

    @property
    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by verb: `mutate`, `validate`, in the order of the apiserver's calls."""
        both = {"mutate": self.mutate, "validate": self.validate}
        return {verb: handler for verb, handler in both.items() if handler is not None}

    def operations(self, verb: str) -> tuple[str, ...]:
        """Return the operations that the webhook of the verb is called for."""
        return self.validates if verb == "validate" else WRITES


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules by which objects of the kind are stored, converted and admitted."""

    schema: Callable[[str], Version]  # of a version, by its name
    convert: Converter | None = None  # conversion by webhook; None: all versions have the same fields
    admission: Admission = Admission()
