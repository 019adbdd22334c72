"""WorkloadSpreads: the step that gives a new pod a place in a subset, and the check that gives the place back.

Places are written into the WorkloadSpread's status, by one request or ahead of many,
and lent between replicas (ADR 29).
"""
