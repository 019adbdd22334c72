"""The input of planning one ResourceDistribution.

It consists of the object, all namespaces, and all objects of the source's kind and name.
"""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.core import Namespace
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION, ResourceDistribution
from flotilla_common.control.objectref import ObjectRef
from flotilla_sidecar.resourcedistribution.content import Copy


class DistributionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One ResourceDistribution and its surroundings at one moment."""

    distribution: ResourceDistribution
    namespaces: Mapping[str, Namespace] = {}
    copies: Mapping[str, Copy] | None = None  # by namespace, other owners' objects included; None: not read yet
    trouble: str = ""  # why they cannot be read
    failures: Mapping[str, str] = {}  # errors of the last pass's writes, by phase

    @property
    def subject(self) -> ObjectRef:
        """The ResourceDistribution, as events and the bus name it."""
        return ObjectRef.of(RESOURCE_DISTRIBUTION, self.distribution.metadata)
