"""What a process of a local set gets of the environment that its command was started in.

A shell has much in it that leads to the user's own clusters, buses, registries and logins. The set's processes are told
by flags where everything of theirs is; what they would read besides could only be somebody else's.
"""

import os
from collections.abc import Mapping

PREFIXES = ("KUBE", "HELM_", "NATS_", "DOCKER_", "ETCD_", "ETCDCTL_", "KWOK_", "OTEL_", "XDG_")
"""Variables of programs that a set or its tests start: KUBECONFIG, KUBERNETES_SERVICE_HOST, HELM_KUBECONTEXT …"""

OF_PODS = ("POD_NAME", "POD_NAMESPACE", "POD_IP", "NODE_NAME")
"""What says to a process who it is."""

LEADING = ("FLOTILLA_KUBECONFIG", "FLOTILLA_CONTEXT", "FLOTILLA_CONFIG", "FLOTILLA_NATS")
"""Of Flotilla's own settings those that lead to a cluster, a bus or a file. Others, such as FLOTILLA_FEATURE_GATES, are
for the services of the set."""


def cleaned(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment without what leads elsewhere."""
    return {name: value for name, value in environment.items() if not _leads_elsewhere(name)}


def _leads_elsewhere(name: str) -> bool:
    return name in OF_PODS or name.startswith((*PREFIXES, *LEADING))
