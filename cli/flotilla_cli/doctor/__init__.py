"""`flotilla doctor`: what is wrong with an installation, and what to do about it (docs/doctor.md).

`look` gathers facts, side by side and each within a deadline; `checks` are pure functions over them, listed in
`catalogue`. What was found is looked at again before it is said, because much of what is wrong for a moment is only the
beginning or the end of something. Nothing is ever changed.
"""
