"""Where container runtimes listen (cri.md §8).

On a node itself the paths are those below. In a container the host's directories are mounted elsewhere: the setting
`host-root` names where, and each path is then looked for beneath it. Directories are mounted, never the sockets, which
are made anew when a runtime restarts.
"""

from pathlib import Path

CANDIDATES = (
    "/run/containerd/containerd.sock",
    "/run/containerd.sock",
    "/run/crio/crio.sock",
    "/run/crio.sock",
    "/run/cri-dockerd.sock",
    "/run/cri-dockerd/cri-dockerd.sock",
    "/run/k3s/containerd/containerd.sock",  # k3s and rke2
    "/run/k3s/cri-dockerd/cri-dockerd.sock",
    "/run/k0s/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
)
"""In the order of preference where several answer: a distribution's own socket exists only where it is used, but
cri-dockerd often has an unused containerd beside it, which is why the kubelet's own runtime is asked for by name."""


def candidates(override: str, host_root: str = "") -> list[str]:
    """The sockets to try: the one that was named, else all that exist, most likely ones first.

    A named one that is relative lies under /run, as the reference's `--socket-file` has it.
    """
    if override:
        path = override.removeprefix("unix://")
        return [_on_host(path if path.startswith("/") else f"/run/{path}", host_root)]
    return [path for path in (_on_host(one, host_root) for one in CANDIDATES) if Path(path).is_socket()]


def _on_host(path: str, host_root: str) -> str:
    return f"{host_root.rstrip('/')}{path}"
