"""A script about a StatefulSet, as `script.py` makes them of CloneSets. Ordinals are reserved and freed as well."""

import random
from collections.abc import Callable, Sequence

import msgspec

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.control.plan import Json
from tests.simulation.exploration.script import IMAGES, MOST_REPLICAS, Script, draw_members
from tests.simulation.scenarios.manifests import image, label, rolling, running, spec, statefulset
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import ChangePod, LoseNode, RemovePod, ReturnNodes, Step

SERVICE = "statefulset"
RESOURCES = ("pods", "statefulsets", "controllerrevisions", "persistentvolumeclaims")


class SetScript(Script, frozen=True, kw_only=True, tag="statefulsets"):
    """One exploration."""

    def scenario(self) -> Scenario:
        """Return the script as a scenario that ends in calm."""
        calm = {"rollingUpdate": {"paused": False, "partition": 0}}
        return Scenario(
            name=f"seed:{self.seed}",
            kind=STATEFUL_SET.kind,
            services=(SERVICE,),
            given=running(self.document),
            when=(*self.steps, ReturnNodes(), spec(replicas=self.replicas, reserveOrdinals=[], updateStrategy=calm)),
            then=End(
                pods={self.image: self.replicas}, names=tuple(f"web-{ordinal}" for ordinal in range(self.replicas))
            ),
            exact=False,
            quiet=6,  # longer than it waits for a claim that is to go
        )


def draw_for_sets(seed: int) -> SetScript:
    """Draw the script of a seed."""
    rng = random.Random(seed)
    members = draw_members(rng, ACTIONS, lambda: _document(rng), SERVICE, RESOURCES)
    return msgspec.convert({"about": "statefulsets", "seed": seed, **members}, type=SetScript)


def _document(rng: random.Random) -> Json:
    ordered = rng.random() < 0.5
    policy: Json = {name: rng.choice(("Retain", "Delete")) for name in ("whenScaled", "whenDeleted")}
    more: Json = {} if ordered else {"maxUnavailable": rng.choice((1, 2, "40%"))}
    if not ordered and rng.random() < 0.3:
        more["unorderedUpdate"] = {}
    return statefulset(
        rng.randint(1, MOST_REPLICAS),
        ordered=ordered,
        policy=rng.choice(("ReCreate", "InPlaceIfPossible", "InPlaceOnly")),
        claims=policy if rng.random() < 0.5 else None,
        scale=2 if not ordered and rng.random() < 0.3 else None,
        partition=rng.choice((0, 0, 1, 2)),
        **more,
    )


ACTIONS: Sequence[Callable[[random.Random], Step]] = (
    lambda rng: spec(replicas=rng.randint(0, MOST_REPLICAS)),
    lambda rng: spec(replicas=rng.randint(1, MOST_REPLICAS)),
    lambda rng: image(rng.choice(IMAGES)),
    lambda rng: image(rng.choice(IMAGES)),
    lambda rng: spec(reserveOrdinals=rng.choice(([], [0], [1], ["1-2"]))),
    lambda rng: rolling(partition=rng.choice((0, 1, 2))),
    lambda rng: rolling(paused=rng.random() < 0.5),
    lambda rng: RemovePod(nth=rng.randint(0, 4)),
    lambda rng: label(rng.randint(0, 4), **{"apps.kruise.io/specified-delete": "true"}),
    lambda rng: ChangePod(nth=rng.randint(0, 4), patch={"status": {"phase": "Failed"}}, subresource="status"),
    lambda rng: LoseNode(nth=rng.randint(0, 4)),
    lambda _: ReturnNodes(),
)
"""Actions of users, nodes and pods that may come next."""
