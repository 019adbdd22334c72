"""The terms of a CloneSet; its scenarios are in files of their own, one per theme."""

import msgspec

from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet, RollingUpdate
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import lenient_value, partition_value
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Json
from tests.simulation.oracles.claims import ClaimsKept
from tests.simulation.oracles.population import max_surge, one_pod_per_instance
from tests.simulation.oracles.terms import Terms
from tests.simulation.oracles.view import of_kind

NOTHING = Selector({}, ())


def cloneset_terms(document: Json) -> Terms:
    """Return the terms of a CloneSet (cloneset.md §4.3)."""
    cloneset = msgspec.convert(_typed(document), type=CloneSet)
    spec = cloneset.spec
    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    on_delete = spec.update_strategy.type == "OnDelete"
    surge = 0 if rolling.paused or on_delete else _number(rolling.max_surge or 0, spec.replicas, up=True)
    wanted = "20%" if rolling.max_unavailable is None or on_delete else rolling.max_unavailable
    try:
        selector = Selector.compile(spec.selector)
    except ValueError:
        selector = NOTHING
    return Terms(
        selector=selector,
        replicas=spec.replicas,
        max_unavailable=_number(wanted, spec.replicas, up=surge == 0 and not on_delete),
        max_surge=surge,
        partition=0 if on_delete else partition_value(rolling.partition, spec.replicas),
        min_ready_seconds=spec.min_ready_seconds,
        lifecycle=spec.lifecycle,
        keeps_claims=spec.scale_strategy.enable_pvc_reuse,
        spares_preparing=spec.scale_strategy.exclude_preparing_delete,
        to_delete=frozenset(spec.scale_strategy.pods_to_delete),
        recreates=not on_delete and rolling.pod_update_policy == "ReCreate",
        current_revision=cloneset.status.current_revision,
        terminating=cloneset.metadata.deletion_timestamp is not None,
    )


def _typed(document: Json) -> Json:
    """Without the members that stay raw in the type: no rule reads them."""
    raw = ("template", "volumeClaimTemplates")
    return {**document, "spec": {name: value for name, value in document["spec"].items() if name not in raw}}


def _number(value: IntOrString, total: int, *, up: bool) -> int:
    try:
        return max(lenient_value(value, total, up), 0)
    except ValueError:
        return 0


TERMS = {CLONE_SET: cloneset_terms}
RULES = (
    lambda: of_kind(CLONE_SET, max_surge),
    lambda: of_kind(CLONE_SET, one_pod_per_instance),
    lambda: of_kind(CLONE_SET, ClaimsKept()),
)
