"""Real nodes on one machine: per node a containerd, a kubelet and a kube-proxy in namespaces of their own.

A node is a process that holds its namespaces (`init`), and lives in them as their first process. The kernel ends
everything in a node when that process ends, containers included, and takes away mounts and interfaces with it: so a set
that was killed in the middle leaves nothing that runs. Its nodes hang on a switch (`network`), pull their images from a
registry (`registry`), and are put together in `nodes`.
"""
