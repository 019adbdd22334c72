"""Plans as values (architecture.md §1): the output of a pure planner, and the input of the executor.

A `Plan` holds stages. Stages run in order; the chains of one stage run side by side; the actions of one chain run one
after the other, and a chain ends at its first failure. Everything here is frozen data: a plan can be compared in a
test, printed, stored in a support bundle, and interrupted between any two of its actions by the simulator.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, dataclass_transform

import msgspec

from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import Resource


class ObjectRef(msgspec.Struct, frozen=True):
    """One object of one kind at one version."""

    resource: Resource
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    field_path: str = ""  # the part of the object that is meant: spec.containers{app}

    @classmethod
    def of(cls, resource: Resource, meta: ObjectMeta) -> "ObjectRef":
        """Return the subject for an object's metadata."""
        return cls(resource, meta.namespace, meta.name, meta.uid, meta.resource_version, meta.generation)

    @property
    def key(self) -> str:
        """`namespace/name`, as in logs."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def reference(self) -> Mapping[str, str]:
        """Return an ObjectReference, for Events."""
        part = {"fieldPath": self.field_path} if self.field_path else {}
        return part | {
            **self.resource.type_meta,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }


Json = dict[str, Any]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all plan values."""


class Event(Frozen, kw_only=False):
    """A Kubernetes Event on the planned object, or on the object that it is `about`.

    On failure the error text is put between `message` and `after`.
    """

    reason: str
    message: str
    warning: bool = False
    after: str = ""
    about: ObjectRef | None = None
    host: str = ""  # the node, for events that a node agent reports

    def text(self, error: str = "") -> str:
        """Return the event's message."""
        return f"{self.message}{error}{self.after}"


class Intent(StrEnum):
    """The closed set of purposes of writes, for programs to group and compare by; `Effect.cause` is for people."""

    CREATE = "create"  # create an object that the spec asks for
    IN_PLACE_UPDATE = "in-place update"  # bring a running pod to a revision
    RESIZE = "resize"  # the same, where only resources of containers change
    GRACE = "grace"  # begin the grace period before an in-place update
    HOLD = "hold"  # ask the lifecycle hook before a pod is updated or deleted
    RECREATE = "recreate"  # delete a pod, or mark it for deletion, so that a pod of another revision replaces it
    REPLACE = "replace"  # delete an object that has failed or cannot be changed, so that a new one replaces it
    SCALE_IN = "scale in"  # delete a pod that exceeds the replicas of the spec
    DELETE = "delete"  # delete an object that is not wanted any more
    CLEAN_UP = "clean up"  # delete an object that has finished and is no longer kept
    REFRESH = "refresh"  # keep readiness, lifecycle state and labels of a pod up to date; ends an in-place update
    UPDATE = "update"  # bring any other part of an object in line with its source
    STATUS = "status"  # write the status of the planned object
    ADOPT = "adopt"  # become the controller of an object
    RELEASE = "release"  # stop being the controller of an object
    REVISION = "revision"  # create, renumber, label or delete a ControllerRevision
    CLAIM = "claim"  # create, grow, hand over or delete a PersistentVolumeClaim
    IMAGE_PULL = "image pull"  # have nodes pull images
    BUDGET = "budget"  # take budget of a PodUnavailableBudget for pods that are about to be disrupted
    INJECT = "inject"  # put ephemeral containers into a pod


UPDATES_IN_PLACE = frozenset({Intent.IN_PLACE_UPDATE, Intent.RESIZE, Intent.GRACE})
"""The intents that begin or continue an in-place update of a pod."""


class Effect(Frozen, kw_only=True):
    """The common part of all writes: target, purpose, and the events that report the outcome to users."""

    resource: Resource
    namespace: str
    name: str
    intent: Intent
    cause: str  # a few words for people, on act.v1: "scale up", "in-place update to sample-d4d4fb5bd"
    revision: str = ""  # full name of the ControllerRevision that a pod is created from or updated to
    pods: tuple[str, ...] = ()  # names of pods that a write on another object concerns
    phase: str = ""  # scale, update, …: a failure becomes condition Failed<Phase> where the kind has one
    on_success: Event | None = None
    on_failure: Event | tuple[Event, ...] | None = None

    @property
    def failures(self) -> tuple[Event, ...]:
        """The events of a failure."""
        events = self.on_failure
        return events if isinstance(events, tuple) else () if events is None else (events,)


class Create(Effect, kw_only=True, tag="create"):
    """POST `body`; the name is deterministic, so a repeated create gets AlreadyExists instead of a second object."""

    verb: ClassVar[str] = "create"
    body: Json
    tells_if_taken: bool = True  # record `on_failure` if another object has the name


class PatchType(StrEnum):
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Patch(Effect, kw_only=True, tag="patch"):
    """PATCH the object or its subresource.

    The write is conditional when `resource_version` is set, or when `after_previous` requires the version that the
    previous action of the chain returned, without writes in between. `uid` guards against another object of that name.
    """

    verb: ClassVar[str] = "patch"
    body: Json
    uid: str = ""
    patch_type: PatchType = PatchType.STRATEGIC
    subresource: str = ""
    resource_version: str = ""
    after_previous: bool = False


class Delete(Effect, kw_only=True, tag="delete"):
    """DELETE with a uid precondition, and a version precondition where the decision depends on the version."""

    verb: ClassVar[str] = "delete"
    uid: str
    resource_version: str = ""


Action = Create | Patch | Delete
Chain = tuple[Action, ...]


class Stage(Frozen, kw_only=True):
    """Chains that may run side by side.

    With `slow_start` they run in batches, the first of that size and each twice as large as the one before; none runs
    after a batch with a failure. If that is the only batch, more come with later passes.
    """

    chains: tuple[Chain, ...]
    slow_start: int = 0
    stop_on_failure: bool = True  # a failure in this stage skips the later stages (but not the status)
    beside_next: bool = False  # the next stage begins with this one, because its objects are others


class State(StrEnum):
    """An object's progress according to one reason."""

    STUCK = "stuck"  # a person has to act
    HELD = "held"  # the spec or a person asked for it: paused, partition, OnDelete, lifecycle hook
    WAITING = "waiting"  # for something that comes by itself: an available pod, a budget, a grace period
    PROGRESSING = "progressing"  # what this pass does
    DONE = "done"
    NOTE = "note"  # additional information, which does not affect the state


class Reason(Frozen, kw_only=False, omit_defaults=True):
    """A reason for the object's current state, for people and scripts: published on why.v1, shown by `explain`."""

    state: State
    code: str  # CamelCase and stable: WaitingForMaxUnavailable
    message: str  # one sentence with numbers and objects: "maxUnavailable 2 is used by web-3, web-5"
    objects: tuple[str, ...] = msgspec.field(default_factory=tuple[str, ...])  # with a factory: encoded even if empty
    symptom: bool = False  # of STUCK: pods or nodes explain it, and their causes are shown first

    @property
    def sentence(self) -> str:
        """The message, with the prefix "waiting: " for State.WAITING."""
        return f"waiting: {self.message}" if self.state is State.WAITING else self.message


class Plan(Frozen, kw_only=True):
    """The result of planning one object once."""

    stages: tuple[Stage, ...] = ()
    events: tuple[Event, ...] = ()  # events that belong to no write
    status: Patch | None = None  # written after the stages, regardless of their outcome
    status_after_success: bool = False  # leave the status as it is if a write or a decision of this pass failed
    urgent_status: bool = False  # False: only counts changed, and the write may wait to be merged with the next
    after_status: tuple[Stage, ...] = ()  # best effort, after the status: writes to the spec, at its version
    reasons: tuple[Reason, ...] = ()
    numbers: dict[str, int] = {}  # the quantities behind the decision, for explain and why.v1
    wake_at: datetime | None = None  # plan again at this time even if nothing changes
    settled: bool = False  # everything exists and is as wanted: no write depends on when it becomes ready
    notes: dict[str, str] = {}  # for the next pass of the same object, in its `Memory`
    errors: tuple[tuple[str, str], ...] = ()  # (phase, text): decisions that are impossible; retried with backoff

    @property
    def actions(self) -> list[Action]:
        """Return the writes of the stages, in order."""
        return [action for stage in self.stages for chain in stage.chains for action in chain]

    @property
    def starts_slowly(self) -> bool:
        """Report whether the plan creates in slow start: several rounds of writes, in this pass or later ones."""
        return any(stage.slow_start for stage in self.stages)


class OutcomeKind(StrEnum):
    """The closed set of outcomes of a write. UNKNOWN is not a failure: the write may have happened."""

    OK = "Ok"
    CONFLICT = "Conflict"
    ALREADY_EXISTS = "AlreadyExists"
    NOT_FOUND = "NotFound"
    GONE = "Gone"
    INVALID = "Invalid"
    DENIED = "Denied"
    THROTTLED = "Throttled"
    UNKNOWN = "Unknown"
    FENCED = "Fenced"  # not sent: this replica's lease was not surely valid


class Outcome(Frozen, kw_only=True):
    """The outcome of one action.

    `version` is the resourceVersion after the write; after a refused one, that of the object which was read then.
    """

    kind: OutcomeKind
    message: str = ""
    version: str = ""
    retry_after: float = 0.0  # seconds that the apiserver asked us to wait

    @property
    def ok(self) -> bool:
        """Report whether the write surely happened (or the object surely is as wanted)."""
        return self.kind is OutcomeKind.OK
