"""PodUnavailableBudgets: the check that takes a unit of a budget for each disruption, and the annotation of new pods.

Units are written into the budget's status, by one request or ahead of many (ADR 32, ADR 33).
"""
