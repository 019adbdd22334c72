"""What an agent says on `report.v1.<node>.<kind>.<namespace>.<name>`, and the answer.

A report tells how things stand now, not what has changed, so it may be sent again at any time; it carries the uid and
the resourceVersion of the object as the agent saw it. An answer comes only after what was reported is written (or needs
no writing). Without an answer, or with one that says `again`, the agent repeats the report.
"""

from flotilla_common.api.kinds.containerrecreaterequest.types import RecreateState
from flotilla_common.api.kinds.nodeimage.types import NodeImageStatus, SecretReference
from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbeStatus
from flotilla_common.api.meta import Model

PODS, NODE_IMAGES, RECREATE_REQUESTS = "pods", "nodeimages", "containerrecreaterequests"
NODE_POD_PROBES = "nodepodprobes"
"""Kinds of reports that end in an object's status: the plural of the object."""

SECRETS, EVENTS, FOLLOW = "secrets", "events", "follow"
"""Kinds of requests of other sorts: pull secrets of a NodeImage, an event, reading a stream of `node.v1`."""


class Answer(Model):
    """What became of a report."""

    accepted: bool = False
    why: str = ""  # of a refusal, one sentence
    again: bool = False  # the refusal is not the report's fault: send it again later
    resource_version: str = ""  # of the object after the write, when there was one


class Report(Model):
    """About one object, which exists for the agent under this uid."""

    uid: str = ""
    resource_version: str = ""  # of the newest copy that the agent has seen


class NodeImageReport(Report):
    """The NodeImage's status as the agent wants it: the whole of it."""

    status: NodeImageStatus = NodeImageStatus()


class NodePodProbeReport(Report):
    """The results of all probes of the node, as the agent wants them in the NodePodProbe's status: the whole of it."""

    status: NodePodProbeStatus = NodePodProbeStatus()


class RecreateReport(Report):
    """How far a ContainerRecreateRequest is. The receiver sets the completion time.

    An empty phase and a missing list mean that they stay as they are. A kill that ends after the request was completed
    is still reported by its states (containerrecreaterequest.md §7.5).
    """

    phase: str = ""
    message: str = ""  # of the completion
    states: list[RecreateState] | None = None  # in the order of spec.containers


class PodReport(Report):
    """What the containers of a pod were started with (common.md §9.8)."""

    runtime_containers_meta: str = ""  # the annotation's value


class EventReport(Model):
    """A Kubernetes Event that the agent wants recorded on a pod or NodeImage of its node (nodeagent.md §8)."""

    kind: str = ""
    uid: str = ""
    field_path: str = ""
    component: str = ""
    type: str = "Normal"
    reason: str = ""
    message: str = ""


class SecretsRequest(Model):
    """Asks for pull secrets that the node's NodeImage refers to, sealed to the key of this agent's process."""

    public_key: str = ""  # X25519, base64
    references: list[SecretReference] = []


class PullSecret(Model):
    """A secret as it is sealed: the values are base64, as in Kubernetes."""

    namespace: str = ""
    name: str = ""
    type: str = ""
    data: dict[str, str] = {}


class SecretsAnswer(Answer):
    """The secrets that exist and that the node may have; the others are left out."""

    sealed: str = ""  # a sealed box over a JSON list of PullSecret, base64


class FollowRequest(Model):
    """Asks for a reader of one stream of `node.v1`: the last message per subject, or from a sequence on."""

    plural: str = ""
    inbox: str = ""  # where to deliver; it must be one of the node's own
    created: str = ""  # the stream that was read so far; empty: none
    last_sequence: int = 0  # of the last message that came from it


class FollowAnswer(Answer):
    """Which stream is read: one that was lost and made again has another `created`."""

    created: str = ""
    resumed: bool = False  # delivery goes on after `last_sequence`; else it begins with the last of every subject
