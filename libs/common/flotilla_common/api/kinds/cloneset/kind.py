"""CloneSet: pods that are interchangeable."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.kind import Kind, Workers, rules_in

KIND = Kind(
    resource=CLONE_SET,
    doc="A CloneSet keeps a number of interchangeable pods running and updates them in place where it can.",
    service="cloneset",
    rules=rules_in("flotilla_common.api.kinds.cloneset.api"),
    short_names=("clone",),
    scale=True,
    workers=Workers(32, "cloneset"),  # they mostly wait for answers
)
