"""Advanced StatefulSet: pods that have a number, and keep name and claims with it."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.kind import Kind, Workers
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.rules import WRITES, Admission, Rules
    from flotilla_common.api.kinds.statefulset import admission, conversion, crd

    webhooks = Admission(mutate=admission.mutate, validate=admission.validate, validates=(*WRITES, "DELETE"))
    return Rules(schema=crd.version, convert=conversion.convert, admission=webhooks)


KIND = Kind(
    resource=STATEFUL_SET,
    doc="A StatefulSet keeps numbered pods running, each with a name and claims of its own, and updates them in place "
    "where it can.",
    service="statefulset",
    rules=_rules,
    short_names=("sts", "asts"),
    scale=True,
    workers=Workers(32, "statefulset"),  # they mostly wait for answers
)
