"""`flotilla doctor`: what is wrong with an installation, and what to do about it (docs/doctor.md).

`collect` gathers facts, in parallel and each within a deadline; `checks` are pure functions over them, listed in
`catalogue`. Findings are confirmed by a second look, because many are only the beginning or the end of something.
Nothing is ever changed.
"""
