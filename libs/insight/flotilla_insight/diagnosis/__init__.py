"""Finds out what blocks an object, from its service's reasons and its pods.

`views/related.py` reads the objects that belong to it, `pods/findings.py` finds the causes of its pods, `planning`
works out whether a service plans the object at all, and `summary` (pure) makes one sentence of everything. Missing
rights reduce the detail, and are reported.
"""
