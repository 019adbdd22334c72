"""One trace for each change of an object's spec: from whoever made it, over the bus, to every write that follows.

Nothing has to be handed on for that: the trace is computed from the object's uid and generation, which every process
sees, so all of them name it alike (docs/adr/0021). `context` does the naming; a `Span` is a step that is over, and a
`Tracer` takes it, by OTLP (`otlp`) where a collector is configured.
"""
