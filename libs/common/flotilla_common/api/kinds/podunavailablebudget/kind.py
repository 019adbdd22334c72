"""PodUnavailableBudget: a limit on the pods of an application that are made unavailable at the same time."""

from flotilla_common.api.kinds.kind import Kind, Workers, rules_in
from flotilla_common.api.kinds.podunavailablebudget.types import DELETE_GATE, POD_UNAVAILABLE_BUDGET, UPDATE_GATE

KIND = Kind(
    resource=POD_UNAVAILABLE_BUDGET,
    doc="A PodUnavailableBudget limits how many pods may be deleted, evicted or updated in place at one time.",
    service="policy",
    rules=rules_in("flotilla_common.api.kinds.podunavailablebudget.api"),
    short_names=("pub",),
    gates=(DELETE_GATE, UPDATE_GATE),
    one_gate=True,
    workers=Workers(3, "podunavailablebudget"),
)
