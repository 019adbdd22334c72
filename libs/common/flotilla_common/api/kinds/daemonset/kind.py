"""Advanced DaemonSet: a pod on every node that fits."""

from typing import TYPE_CHECKING

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.kind import Kind, Workers

if TYPE_CHECKING:
    from flotilla_common.api.kinds.rules import Rules


def _rules() -> "Rules":
    from flotilla_common.api.kinds.daemonset import admission, conversion, crd
    from flotilla_common.api.kinds.rules import Admission, Rules

    webhooks = Admission(mutate=admission.mutate, validate=admission.validate)
    return Rules(schema=crd.version, convert=conversion.convert, admission=webhooks)


KIND = Kind(
    resource=DAEMON_SET,
    doc="A DaemonSet keeps a pod running on every node that fits, and updates these pods in place where it can.",
    service="daemonset",
    rules=_rules,
    short_names=("daemon", "ads"),
    workers=Workers(8, "daemonset"),  # they mostly wait for answers; a pass looks at all nodes
)
