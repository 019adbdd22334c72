"""A model of a cluster: how the apiserver, kubelets, node agents and Kubernetes' controllers change objects.

Each transition is a pure function of documents. `Cluster` plays them for `flotilla plan`, the simulator's actors play
them at their own pace and with faults, and unit tests play them pass by pass. The model never waits, and no service
imports it.
"""
