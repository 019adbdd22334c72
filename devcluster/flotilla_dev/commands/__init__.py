"""The commands of this package, one module each, which `flotilla` and `flotilla-dev` both have.

Their names and modules are in this package's entry points (`flotilla.commands`).
"""
