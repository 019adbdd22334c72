"""Advanced StatefulSet: numbered pods that keep their names and claims."""

from flotilla_common.api.kinds.kind import Kind, Workers, rules_in
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET

KIND = Kind(
    resource=STATEFUL_SET,
    doc="A StatefulSet keeps numbered pods running, each with a name and claims of its own, and updates them in place "
    "where it can.",
    service="statefulset",
    rules=rules_in("flotilla_common.api.kinds.statefulset.api"),
    short_names=("sts", "asts"),
    scale=True,
    workers=Workers(32, "statefulset"),  # they mostly wait for answers
)
