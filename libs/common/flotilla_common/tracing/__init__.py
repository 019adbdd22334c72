"""Traces each change of an object's spec: from its author, over the bus, to every write that follows.

No trace id is passed along: it is computed from the object's uid and generation, which every process sees
(docs/adr/0021). `context` computes the ids; a `Span` is a finished step, and a `Tracer` exports it, by OTLP (`otlp`) if
a collector is configured.
"""
