"""Messages of agents on `report.v1.<node>.<kind>.<namespace>.<name>`, and the answers.

A report contains the current state, not a change, so it may be sent again at any time; it carries the uid and the
resourceVersion of the object as the agent saw it. It is answered only after its content is written (or needs no
writing). Without an answer, or with `again` set, the agent repeats the report.
"""

from flotilla_common.api.kinds.containerrecreaterequest.types import RecreateState
from flotilla_common.api.kinds.nodeimage.types import NodeImageStatus, SecretReference
from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbeStatus
from flotilla_common.api.meta import Model

PODS, NODE_IMAGES, RECREATE_REQUESTS = "pods", "nodeimages", "containerrecreaterequests"
NODE_POD_PROBES = "nodepodprobes"
"""Kinds of reports that end in an object's status: the plural of the object."""

SECRETS, EVENTS, FOLLOW = "secrets", "events", "follow"
"""Kinds of other requests: pull secrets of a NodeImage, an event, reading a stream of `node.v1`."""


class Answer(Model):
    """The result of a report."""

    accepted: bool = False
    why: str = ""  # one sentence, if it was refused
    again: bool = False  # the refusal is temporary: send the report again later
    resource_version: str = ""  # of the object after the write, if there was one


class Report(Model):
    """A report about one object, which has this uid in the agent's view."""

    uid: str = ""
    resource_version: str = ""  # of the newest copy that the agent has seen


class NodeImageReport(Report):
    """The complete status of the NodeImage as computed by the agent."""

    status: NodeImageStatus = NodeImageStatus()


class NodePodProbeReport(Report):
    """The complete status of the NodePodProbe as computed by the agent: the results of all probes of the node."""

    status: NodePodProbeStatus = NodePodProbeStatus()


class RecreateReport(Report):
    """The progress of a ContainerRecreateRequest. The receiver sets the completion time.

    An empty phase and a missing list mean no change. A kill that ends after the request was completed is still reported
    in its states (containerrecreaterequest.md §7.5).
    """

    phase: str = ""
    message: str = ""  # of the completion
    states: list[RecreateState] | None = None  # in the order of spec.containers


class PodReport(Report):
    """The environment and metadata that the containers of a pod were started with (common.md §9.8)."""

    runtime_containers_meta: str = ""  # the annotation's value


class EventReport(Model):
    """A request to record a Kubernetes Event on a pod or NodeImage of the agent's node (nodeagent.md §8)."""

    kind: str = ""
    uid: str = ""
    field_path: str = ""
    component: str = ""
    type: str = "Normal"
    reason: str = ""
    message: str = ""


class SecretsRequest(Model):
    """A request for pull secrets that the node's NodeImage refers to, sealed to the key of this agent's process."""

    public_key: str = ""  # X25519, base64
    references: list[SecretReference] = []


class PullSecret(Model):
    """The content of a sealed secret; the values are base64, as in Kubernetes."""

    namespace: str = ""
    name: str = ""
    type: str = ""
    data: dict[str, str] = {}


class SecretsAnswer(Answer):
    """The secrets that exist and are permitted for the node; others are left out."""

    sealed: str = ""  # a sealed box over a JSON list of PullSecret, base64


class FollowRequest(Model):
    """A request for delivery of one stream of `node.v1`: the last message per subject, or from a sequence on."""

    plural: str = ""
    inbox: str = ""  # where to deliver; it must be one of the node's own
    created: str = ""  # creation time of the stream that was read so far; empty: none
    last_sequence: int = 0  # sequence of the last message that was received


class FollowAnswer(Answer):
    """The stream that is delivered; after a loss it has another `created`."""

    created: str = ""
    resumed: bool = False  # delivery continues after `last_sequence`; else it starts with the last messages
