"""What stands in an object's way: the reasons of its service, and what the apiserver knows of its pods.

`scope` finds what belongs to an object, `closeup` reads what surrounds the pods that do not serve, `planning` tells
whether anybody plans the object at all, and `verdict` (pure) makes one sentence of it. Rights that are missing take
detail away, and the reader is told.
"""
