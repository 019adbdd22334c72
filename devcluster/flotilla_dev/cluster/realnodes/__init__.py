"""Real nodes on one machine: per node a containerd, a kubelet and a kube-proxy in namespaces of their own.

A node is a process that holds its namespaces (`init`), and is their first process. When it ends, the kernel ends
everything in the node, containers included, and removes mounts and interfaces: so a cluster that was killed leaves no
process behind. Nodes are connected to a switch (`network`), pull their images from a registry (`registry`), and are
managed by `nodes`.
"""
