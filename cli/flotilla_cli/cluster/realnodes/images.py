"""Images without a registry to pull them from: a static busybox, and a page that says which image it is.

They carry the names of images that manifests use all the time, so that these work unchanged: what is called nginx
serves a page on port 80. Each tag has a page of its own, and therefore an image id of its own.
"""

import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

from flotilla_cli.cluster.provision import machine
from flotilla_cli.cluster.realnodes.containerd import PAUSE
from flotilla_cli.cluster.realnodes.debian import busybox
from flotilla_cli.image import oci
from flotilla_cli.image.oci import Image, Layer
from flotilla_cli.image.tree import Entry, File, Folder, Link

SERVER = ("/bin/sh", "-c", "trap 'exit 0' TERM QUIT INT; httpd -f -p 80 -h /www & while :; do wait; done")
"""A first process must ask for the signal that ends it; httpd alone would be killed after the whole grace period."""

SLEEPER = ("/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait; done")
SHELL = ("/bin/sh",)

NAMED: dict[str, tuple[str, ...]] = {
    PAUSE: SLEEPER,
    **{f"nginx:{tag}": SERVER for tag in ("latest", "alpine", "mainline", "stable", "perl", "1.7.9", "1.25", "1.27")},
    **{f"httpd:{tag}": SERVER for tag in ("latest", "2.4")},
    **{f"busybox:{tag}": SHELL for tag in ("latest", "1.35", "1.36", "1.37", "stable")},
    "alpine:latest": SHELL,
    "centos:6.7": SHELL,
}
"""The images that every set has, and what they run."""


def build(reference: str, command: Sequence[str], files: Mapping[str, bytes] | None = None) -> Image:
    """An image with busybox in it, a page that says `reference`, and further files by their absolute path."""
    own = {"www/index.html": File(f"{reference}\n".encode())}
    for path, content in (files or {}).items():
        own[path.lstrip("/")] = File(content, executable=path.startswith("/bin/"))
    run = {"Cmd": list(command), "Env": ["PATH=/bin:/sbin:/usr/bin:/usr/sbin"], "WorkingDir": "/"}
    return oci.image([root_layer(), Layer.of("flotilla", own, compression=1)], machine(), run)


@cache
def root_layer() -> Layer:
    """The layer with busybox, under all of its names."""
    program = busybox()
    assert program is not None, "busybox-static was required before"
    names = subprocess.run([program, "--list-full"], capture_output=True, text=True, check=True).stdout.split()
    files: dict[str, Entry] = {
        **{name: Link("/bin/busybox") for name in ("bin/sh", *names)},
        "bin/busybox": File(program.read_bytes(), executable=True),
        "etc/passwd": File(b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
        "etc/group": File(b"root:x:0:\nnogroup:x:65534:\n"),
        "tmp": Folder(0o1777),
        **{name: Folder(0o755) for name in ("root", "proc", "sys", "dev", "var/run")},
    }
    return Layer.of("busybox", files, compression=1)
