"""CloneSet: pods that are interchangeable."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.kind import Kind, Workers

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.cloneset import admission, conversion, crd
    from flotilla_common.api.kinds.rules import WRITES, Admission, Rules

    webhooks = Admission(
        mutate=admission.mutate, validate=admission.validate, validates=(*WRITES, "DELETE"), old_paths=True
    )
    return Rules(schema=crd.version, convert=conversion.convert, admission=webhooks)


KIND = Kind(
    resource=CLONE_SET,
    doc="A CloneSet keeps a number of interchangeable pods running and updates them in place where it can.",
    service="cloneset",
    rules=_rules,
    short_names=("clone",),
    scale=True,
    workers=Workers(32, "cloneset"),  # they mostly wait for answers
)
