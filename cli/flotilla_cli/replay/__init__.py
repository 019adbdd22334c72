"""Plans a recorded object again, and compares the decisions.

`passes` has the service's own decisions, `recording` the states that they are based on; `again` and `compare` find out
whether this release decides the same.
"""
