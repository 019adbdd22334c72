"""Members of objects whose values may be secret: in pods and their templates, wherever these stand. What else a kind
has of them stands in its view."""

TEXTS = frozenset({"command", "args"})
"""Lists of free text: of containers, probes and hooks."""

PAIRS = frozenset({"env", "httpHeaders"})
"""Lists of names with values."""

MAPPINGS = frozenset({"volumeAttributes"})
"""Free text by name: what CSI drivers are told."""
