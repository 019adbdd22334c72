"""Defaults of the apiserver and of our webhook for workloads that planners write.

A UnitedDeployment replaces the spec of its children as a whole. Without these defaults each of its writes would seem to
remove fields from the pod template, and pods would be recreated for it.
"""

import copy
from collections.abc import Callable, Mapping

from flotilla_common.api.admission.pod_template import default_template, pull_policy
from flotilla_common.api.documents import Json, ensured, fill, mappings, member, text
from flotilla_common.api.kinds.cloneset.api import default_cloneset
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.api import default_statefulset
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, Resource
from flotilla_common.gates import Gates


def with_defaults(resource: Resource, document: Json, old: Json | None, gates: Gates) -> Json:
    """Return a workload as it would be stored; other objects stay as they are. `old`: the object that is updated."""
    default = _DEFAULTS.get(resource)
    return document if default is None else default(document, old, gates)


def _built_in(document: Json, _old: Json | None, _gates: Gates) -> Json:
    """Return a workload of Kubernetes' own with the defaults of its pod template."""
    defaulted = copy.deepcopy(document)
    template = ensured(ensured(defaulted, "spec"), "template")
    for container in mappings(member(template, "spec").get("containers")):
        fill(container, imagePullPolicy=pull_policy(text(container.get("image"))))
    default_template(template)
    if member(template, "metadata").get("creationTimestamp") is None:
        template["metadata"].pop("creationTimestamp", None)  # present in templates of our kinds only
    return defaulted


_DEFAULTS: Mapping[Resource, Callable[[Json, Json | None, Gates], Json]] = {
    CLONE_SET: default_cloneset,
    STATEFUL_SET: default_statefulset,
    DEPLOYMENT: _built_in,
    BUILT_IN_STATEFUL_SET: _built_in,
}
