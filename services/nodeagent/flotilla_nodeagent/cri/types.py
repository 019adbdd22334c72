"""The agent's view of containers and images: plain values, independent of the runtime."""

from enum import IntEnum

import msgspec

POD_UID_LABEL = "io.kubernetes.pod.uid"
POD_NAME_LABEL = "io.kubernetes.pod.name"
POD_NAMESPACE_LABEL = "io.kubernetes.pod.namespace"
CONTAINER_NAME_LABEL = "io.kubernetes.container.name"
HASH_ANNOTATION = "io.kubernetes.container.hash"
RESTARTS_ANNOTATION = "io.kubernetes.container.restartCount"
PRE_STOP_ANNOTATION = "io.kubernetes.container.preStopHandler"
PORTS_ANNOTATION = "io.kubernetes.container.ports"
GRACE_ANNOTATION = "io.kubernetes.pod.terminationGracePeriod"
DELETION_GRACE_ANNOTATION = "io.kubernetes.pod.deletionGracePeriod"


class State(IntEnum):
    """A container's state, with the interface's numbers."""

    CREATED = 0
    RUNNING = 1
    EXITED = 2
    UNKNOWN = 3


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """A container as the runtime lists it; its identity and annotations come from the kubelet (cri.md §9)."""

    id: str
    state: State
    created_at: int = 0  # nanoseconds
    sandbox: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The container's name in its pod."""
        return self.labels.get(CONTAINER_NAME_LABEL, "")

    @property
    def restarts(self) -> int:
        """The number of restarts by the kubelet."""
        return _number(self.annotations.get(RESTARTS_ANNOTATION, ""), 10)

    @property
    def plain_hash(self) -> int:
        """The kubelet's hash of the spec that it was started with."""
        return _number(self.annotations.get(HASH_ANNOTATION, ""), 16)

    @property
    def grace(self) -> int | None:
        """The termination grace period in seconds, if the kubelet has recorded it."""
        for key in (DELETION_GRACE_ANNOTATION, GRACE_ANNOTATION):
            text = self.annotations.get(key, "")
            if text.isdigit():
                return int(text)
        return None


class Executed(msgspec.Struct, frozen=True):
    """The result of a command in a container; `cut` when it wrote more than was kept."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    cut: bool = False


class Image(msgspec.Struct, frozen=True):
    """An image that is complete on the node."""

    id: str
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()


class Login(msgspec.Struct, frozen=True):
    """A user name and password for a registry. Never logged."""

    username: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return "Login(…)"


def newest(containers: list[Container]) -> dict[str, Container]:
    """Return the most recently created container of each name; runtimes keep dead ones for a while (cri.md §9)."""
    by_name: dict[str, Container] = {}
    for container in sorted(containers, key=lambda container: (container.created_at, container.restarts)):
        by_name[container.name] = container
    return by_name


def _number(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        return 0
