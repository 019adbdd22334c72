"""Advanced DaemonSet: a pod on every node that fits."""

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.kind import Kind, Workers, rules_in

KIND = Kind(
    resource=DAEMON_SET,
    doc="A DaemonSet keeps a pod running on every node that fits, and updates these pods in place where it can.",
    service="daemonset",
    rules=rules_in("flotilla_common.api.kinds.daemonset.api"),
    short_names=("daemon", "ads"),
    workers=Workers(8, "daemonset"),  # they mostly wait for answers; a pass looks at all nodes
)
