"""Which pods go through the webhook, as the apiserver is told."""

from flotilla_common.api.podrules import RULES, PodRule, decoded
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION
from tests.support.cluster import Cluster


def pod_rules(cluster: Cluster) -> frozenset[PodRule]:
    """The rules that stand."""
    configuration = cluster.read("mutatingwebhookconfiguration", MUTATING_CONFIGURATION)
    return decoded(configuration["metadata"].get("annotations", {}).get(RULES, ""))
