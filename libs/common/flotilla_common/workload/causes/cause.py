"""What is known around a pod, and what is found."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Node, PersistentVolumeClaim
from flotilla_common.api.rollout import Lifecycle
from flotilla_common.workload.causes.events import PodEvent


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod does not serve. `message` is the same for pods with the same trouble, `detail` is about this one."""

    code: str  # CamelCase and stable: docs/explain.md lists them
    message: str  # goes after "web-1: "
    detail: str = ""  # restarts, last words, the node
    stuck: bool = True  # somebody has to do something; False: it is merely under way
    since: datetime | None = None  # only where a reader may want to know for how long

    @property
    def text(self) -> str:
        """Message and detail."""
        return f"{self.message} ({self.detail})" if self.detail else self.message


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that a pod mounts. `found` is None where the apiserver has none of that name."""

    found: PersistentVolumeClaim | None
    events: Sequence[PodEvent] = ()


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What is known besides the pod. What is missing here is not known, and nothing is concluded from it."""

    now: datetime | None = None
    events: Sequence[PodEvent] = ()  # about the pod
    claims: Mapping[str, Claim] = {}  # by name
    nodes: Mapping[str, Node | None] = {}  # by name; None: it surely does not exist
    silent: Mapping[str, datetime] = {}  # nodes whose kubelets let their lease run out, and when they renewed it last
    last_words: Mapping[str, str] = {}  # the last line that a container's predecessor logged, by container
    lifecycle: Lifecycle | None = None  # the hooks of its workload
    min_ready_seconds: int = 0


NOTHING = Around()
"""Nothing but the pod is known."""
