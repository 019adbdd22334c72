"""Plans a recorded object again, and compares the decisions.

`recording` has the service's own decisions and the states that they are based on; `replayer` and `compare` find out
whether this release decides the same.
"""
