"""Steps of nodes and their agents, and the waits of users of image pulls."""

import msgspec

from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, ImageStatus, NodeImageStatus, TagStatus
from flotilla_common.api.resources import NODE
from flotilla_common.bus import subjects
from flotilla_common.control.plan import Json
from flotilla_common.node.reports import NODE_IMAGES, NodeImageReport
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Stage, Step, resource_of, until
from tests.testkit.documents import typed


class AddNode(Step):
    """A node joins; it is ready, and nothing runs on it yet."""

    name: str
    labels: dict[str, str] = {}

    async def play(self, stage: Stage) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": self.name, **self.labels}
        body: Json = typed(
            NODE, self.name, labels=labels, status={"capacity": room, "allocatable": room, "conditions": [ready]}
        )
        await stage.world.api.create(NODE, "", msgspec.json.encode(body))


class StopAgent(Step):
    """Stop the agent of a node for good."""

    node: str

    async def play(self, stage: Stage) -> None:
        stage.world.agent(self.node).crash()


class StartAgent(Step):
    """It is started again."""

    node: str

    async def play(self, stage: Stage) -> None:
        agent = stage.world.agent(self.node)
        if not agent.alive:
            agent.start()


class SetNode(Step):
    """Set how long pulls take on a node, and which images fail."""

    node: str
    pull_seconds: float = 0.2
    broken: tuple[str, ...] = ()
    passwords: dict[str, str] = {}

    async def play(self, stage: Stage) -> None:
        machine = stage.world.machines[self.node]
        machine.pull_seconds = self.pull_seconds
        machine.broken, machine.passwords = set(self.broken), dict(self.passwords)


class Say(Step):
    """Somebody with the node's rights reports on a tag what is not so: of another round, or of another NodeImage."""

    node: str
    image: str
    tag: str
    version: int
    phase: str
    stranger: bool = False  # with the uid of a NodeImage that is no more

    async def play(self, stage: Stage) -> None:
        document = stage.current.get(NODE_IMAGE, "", self.node)
        if document is None:
            return
        now = stage.world.clock.now() if self.phase in ("Succeeded", "Failed") else None
        entry = TagStatus(tag=self.tag, version=self.version, phase=self.phase, completion_time=now)
        status = NodeImageStatus(desired=1, image_statuses={self.image: ImageStatus(tags=[entry])})
        uid = "another" if self.stranger else document["metadata"]["uid"]
        report = NodeImageReport(uid=uid, resource_version="1", status=status)
        subject = subjects.report(self.node, NODE_IMAGES, "", self.node)
        await stage.world.ask_as(self.node, subject, msgspec.json.encode(report))


class WaitStatus(Step):
    """Wait until members of an object's status have at least these values, or exactly these texts.

    With `completed`, until it has a completion time.
    """

    name: str = "pull"
    kind: str = IMAGE_PULL_JOB.kind
    least: dict[str, int] = {}
    completed: bool = False

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            document = stage.current.get(resource_of(self.kind), NAMESPACE_NAME, self.name)
            status: Json = (document or {}).get("status", {})
            enough = all(status.get(member, 0) >= value for member, value in self.least.items())
            return enough and (not self.completed or "completionTime" in status)

        await until(stage, reached, str(self))


class WaitTag(Step):
    """Wait until a node is asked for an image, or has reported this phase."""

    node: str
    image: str = "shop"
    tag: str = "one"
    phase: str = ""
    gone: bool = False  # neither asked for nor spoken of any more
    secrets: int = 0  # how many secrets it may use at least

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            document = stage.current.get(NODE_IMAGE, "", self.node) or {}
            spec: Json = document.get("spec", {}).get("images", {}).get(self.image, {})
            status: Json = document.get("status", {}).get("imageStatuses", {}).get(self.image, {})
            asked = any(one["tag"] == self.tag for one in spec.get("tags", ()))
            if len(spec.get("pullSecrets", ())) < self.secrets:
                return False
            phases = [one["phase"] for one in status.get("tags", ()) if one["tag"] == self.tag]
            if self.gone:
                return not asked and not phases
            return self.phase in phases if self.phase else asked

        await until(stage, reached, str(self))
