"""What planning one ResourceDistribution looks at: the object, all namespaces, and all objects of the source's kind and
name."""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.core import Namespace
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION, ResourceDistribution
from flotilla_common.control.subject import Subject
from flotilla_sidecar.resourcedistribution.content import Copy


class DistributionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One ResourceDistribution."""

    distribution: ResourceDistribution
    namespaces: Mapping[str, Namespace] = {}
    copies: Mapping[str, Copy] | None = None  # by namespace, those of others among them; None: not known yet
    trouble: str = ""  # why they cannot be known
    failures: Mapping[str, str] = {}  # what writes of the last pass met, by their phases

    @property
    def subject(self) -> Subject:
        """The ResourceDistribution."""
        return Subject.of(RESOURCE_DISTRIBUTION, self.distribution.metadata)
