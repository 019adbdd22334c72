"""Runs a local cluster: the programs of a control plane, nodes, the bus, the container image."""
