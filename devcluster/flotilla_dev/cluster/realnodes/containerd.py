"""The configuration of one node's containerd, and of its registries."""

from pathlib import Path

from flotilla_dev.cluster.realnodes.debian import plugin_dir, program

SOCKET = "/run/containerd/containerd.sock"  # the default of its clients; a node has a /run of its own
PAUSE = "registry.k8s.io/pause:3.10"

# Restricting the OOM score lets sandboxes start where root may not lower it. Schemas of plugins: version 3.
CONFIGURATION = """\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = "{socket}"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter}"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{registries}"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{networks}"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
"""

HOSTS = """\
# Every image comes from here, also those of other registries.
server = "{server}"

[host."{server}"]
  capabilities = ["pull", "resolve"]
"""


def write(folder: Path, registries: Path, networks: Path) -> Path:
    """Write a node's configuration. Return the file."""
    config = folder / "containerd.toml"
    text = CONFIGURATION.format(
        socket=SOCKET,
        snapshotter="native" if filesystem(folder) == "overlay" else "overlayfs",  # overlays do not stack
        pause=PAUSE,
        registries=registries,
        plugins=plugin_dir(),
        networks=networks,
        runc=program("runc"),
    )
    config.write_text(text, encoding="utf-8")
    return config


def trust(registries: Path, name: str, server: str) -> None:
    """Pull images of this registry (`_default`: of any other) from this address, from the next pull on."""
    folder = registries / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts.toml").write_text(HOSTS.format(server=server), encoding="utf-8")


def filesystem(path: Path, mounts: str = "") -> str:
    """Return the type of the file system that contains a path."""
    lines = (mounts or Path("/proc/self/mountinfo").read_text(encoding="utf-8")).splitlines()
    best, kind = "", ""
    for line in lines:
        own, _, source = line.partition(" - ")
        point = own.split()[4]
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, source.split()[0]
    return kind
