"""Finds out what blocks an object, from its service's reasons and its pods.

`views/related.py` reads the objects that belong to it, `closeup` the context of pods that do not serve; `planning`
works out whether a service plans the object at all, and `verdict` (pure) makes one sentence of everything. Missing
rights reduce the detail, and are reported.
"""
