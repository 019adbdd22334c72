"""A script about a DaemonSet, similar to those of CloneSets in `script.py`.

Most steps are about nodes: they come and go, fall silent, are relabelled, tainted and cordoned. In the end all of them
are there, as they were in the beginning: each has one pod.
"""

import random
from collections.abc import Callable, Sequence

import msgspec

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.control.plan import Json
from tests.simulation.exploration.node_script import IfItCan
from tests.simulation.exploration.script import IMAGES, draw_members, last_image
from tests.simulation.perturbation.fault import Fault
from tests.simulation.scenarios.daemonset import OnNodes, everywhere
from tests.simulation.scenarios.manifests import cordoned, daemonset, image, relabelled, rolling, spec, tainted
from tests.simulation.scenarios.node_steps import AddNode
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import AnyStep, ChangePod, LoseNode, Remove, RemovePod, ReturnNodes, Step

SERVICE = "daemonset"
RESOURCES = ("pods", "daemonsets", "controllerrevisions", "nodes")
NODES = ("node-1", "node-2", "node-3", "node-4")
POOL, RING = {"pool": "web"}, {"ring": "canary"}

AnyDaemonStep = AnyStep | IfItCan


class DaemonScript(msgspec.Struct, frozen=True, kw_only=True, tag_field="about", tag="daemonsets"):
    """One exploration."""

    seed: int
    document: Json
    steps: tuple[AnyDaemonStep, ...]
    faults: tuple[Fault, ...]

    def scenario(self) -> Scenario:
        """Return the script as a scenario that ends in calm."""
        calm: Json = {"type": "RollingUpdate", "rollingUpdate": {"paused": False, "partition": 0, "selector": None}}
        pools = [relabelled(node, **POOL) for node in NODES]
        image = last_image(self.steps)
        return Scenario(
            name=f"seed:{self.seed}",
            kind=DAEMON_SET.kind,
            services=(SERVICE,),
            given=(AddNode(name=NODES[-1]), *pools, *everywhere(self.document, len(NODES))),
            when=(*self.steps, *as_they_were(), *pools, spec(updateStrategy=calm)),
            then=OnNodes(nodes=dict.fromkeys(NODES, image), pods={image: len(NODES)}),
            exact=False,
            quiet=10,  # longer than a pod that failed again is left alone
        )

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


def as_they_were() -> Sequence[Step]:
    """All nodes are there, and take pods."""
    there = [IfItCan(step=AddNode(name=node)) for node in NODES]
    return (*there, ReturnNodes(nodes=NODES), *map(tainted, NODES), *(cordoned(node, on=False) for node in NODES))


def draw_for_daemons(seed: int) -> DaemonScript:
    """Draw the script of a seed."""
    rng = random.Random(seed)
    members = draw_members(rng, ACTIONS, lambda: _document(rng), SERVICE, RESOURCES)
    return msgspec.convert({"about": "daemonsets", "seed": seed, **members}, type=DaemonScript)


def _document(rng: random.Random) -> Json:
    surges = rng.random() < 0.3
    return daemonset(
        nodes={"nodeSelector": POOL},
        strategy="OnDelete" if rng.random() < 0.1 else "RollingUpdate",
        policy="Standard" if surges else rng.choice(("Standard", "InPlaceIfPossible", "InPlaceIfPossible")),
        top={"revisionHistoryLimit": rng.choice((0, 1, 10))},
        maxUnavailable=0 if surges else rng.choice((1, 1, 2, "40%")),
        maxSurge=rng.choice((1, 2, "50%")) if surges else 0,
        partition=rng.choice((0, 0, 0, 1, "50%")),
    )


def _image(rng: random.Random) -> Step:
    return image(rng.choice(IMAGES))


def some_node(rng: random.Random) -> Step:
    """Something happens to a node, if it is there."""
    node = rng.choice(NODES)
    change = rng.choice(
        (
            *(Remove(name=node, kind="Node"), Remove(name=node, kind="Node"), AddNode(name=node, labels=POOL)),
            *(relabelled(node, pool="other"), relabelled(node, **POOL), relabelled(node, **RING)),
            *(tainted(node, "NoSchedule"), tainted(node, "NoExecute"), tainted(node), tainted(node)),
            *(cordoned(node), cordoned(node, on=False)),
        )
    )
    return IfItCan(step=change)


ACTIONS: Sequence[Callable[[random.Random], Step]] = (
    *(_image, _image, _image, _image),
    *(some_node, some_node, some_node, some_node, some_node, some_node),
    lambda rng: rolling(partition=rng.choice((0, 1, 2, "30%", "50%"))),
    lambda rng: rolling(paused=rng.random() < 0.5),
    lambda rng: rolling(selector=rng.choice((None, {"matchLabels": RING}))),
    lambda rng: IfItCan(step=rolling(rollingUpdateType=rng.choice(("Standard", "InPlaceIfPossible")))),
    lambda rng: RemovePod(node=rng.choice(NODES)),
    lambda rng: ChangePod(node=rng.choice(NODES), patch={"status": {"phase": "Failed"}}, subresource="status"),
    lambda rng: LoseNode(node=rng.choice(NODES)),
    lambda _: ReturnNodes(nodes=NODES),
)
"""Actions of users, nodes and pods that may come next."""
