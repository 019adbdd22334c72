"""The pods that go through the webhook, by the rules registered with the apiserver."""

from flotilla_common.api.podrules import RULES, PodRule, decoded
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION
from tests.support.cluster import Cluster


def pod_rules(cluster: Cluster) -> frozenset[PodRule]:
    """Return the registered rules."""
    configuration = cluster.read("mutatingwebhookconfiguration", MUTATING_CONFIGURATION)
    return decoded(configuration["metadata"].get("annotations", {}).get(RULES, ""))
