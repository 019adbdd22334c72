"""What stands in an object's way: the reasons of its service, and what the apiserver knows of its pods.

`views/related.py` reads what belongs to an object, `closeup` what surrounds the pods that do not serve; `planning` says
whether anybody plans the object at all, and `verdict` (pure) makes one sentence of it. Rights that are missing take
detail away, and the reader is told.
"""
