"""A real Kubernetes control plane, NATS and fake nodes on one machine, without containers.

`provision` gets the programs, `process` starts and stops them, `control_plane`, `nats` and `kwok` know their flags, and
`up` puts them together behind the verbs in `verbs`. Tests use the same library for private control planes of their own.
"""
