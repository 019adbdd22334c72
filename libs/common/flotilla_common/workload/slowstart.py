"""How many pods a workload creates at once: one, two, four and so on, because what refuses one pod will refuse the
others; and not too many in one pass."""

CREATES_PER_PASS = 32
"""Pods that one pass creates at most. A new pod waits for its readiness conditions until the pass after the one in
which it gets a node; short passes bring them before a kubelet has started it, which saves it a status write."""

BATCHES_PER_PASS = 2
"""Batches of slow start in one pass; for the same reason the others come with later passes."""


def creates_of_pass(there: int, *, failed: bool, most: int = CREATES_PER_PASS) -> int:
    """How many pods the pass may create. `there`: those that exist; `failed`: creates of the last pass were refused;
    `most`: where the conditions of new pods do not wait for a pass, there may be more."""
    return 1 if failed else min((there + 1) * (2**BATCHES_PER_PASS - 1), most)


def first_batch(there: int, planned: int, missing: int, *, failed: bool) -> int:
    """`Stage.slow_start` of so many planned creates; 0 if they are one batch and none is left for later passes."""
    goes_on = planned < missing and not failed
    return there + 1 if goes_on or planned > there + 1 else 0
