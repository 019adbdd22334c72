"""A model of a cluster: what the apiserver, kubelets, node agents and the controllers of Kubernetes make of objects.

Each transition is a pure function of documents. `Cluster` plays them for `flotilla plan`, the simulator's actors play
them at their own pace and with faults, and unit tests play them pass by pass. Nothing here waits, and no service
imports it.
"""
