"""A real Kubernetes control plane, NATS and fake nodes on one machine, without containers.

`provision` gets the programs, `processes` starts and stops them, `control_plane`, `nats` and `kwok` have their flags,
and `up` puts them together. Tests use the same library for private control planes of their own.
"""
