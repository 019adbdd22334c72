"""`flotilla explain pod NAME`: what Flotilla did to a pod, and what the pod still waits for."""

import contextlib
from collections.abc import Iterable

import msgspec
from rich.text import Text

from flotilla_cli.connection import connected, open_bus
from flotilla_cli.diagnosis.verdict import STYLES, Word
from flotilla_cli.podstory.launch import launch_story
from flotilla_cli.podstory.sidecars import Surroundings, sidecar_story, why_not
from flotilla_cli.podstory.state import cause_now
from flotilla_cli.tree.why import Why, last_why
from flotilla_common.api.core import Pod
from flotilla_common.api.errors import ApiError
from flotilla_common.api.kinds.sidecarset.records import injected
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet
from flotilla_common.api.meta import LabelSelector, metadata_of
from flotilla_common.api.resources import NAMESPACE, POD
from flotilla_common.api.selectors import Selector
from flotilla_common.bus.interface import BusError
from flotilla_common.clock import Clock
from flotilla_common.control.wording import named
from flotilla_common.kube.interface import Api

BUS_SECONDS = 1.0
"""How long the reasons of the sidecar service are waited for; without them the objects tell."""

WORDS = ("pod", "pods", "po")

SERVES, ENDED = "it serves", "it ran to its end"

MOST_PODS = 500
"""Of a SidecarSet that are looked at."""


class Story(msgspec.Struct, frozen=True):
    """What is to be said of a pod."""

    namespace: str
    name: str
    reasons: list[str]
    verdict: Word = Word.DONE
    sentence: str = SERVES
    code: str = ""  # of the cause, if there is one
    kind: str = "Pod"

    def text(self) -> Text:
        """For people."""
        text = Text(f"{self.verdict}:", style=STYLES.get(self.verdict, "bold green"))
        text.append(f" {self.sentence}", "default").append(f"  [{self.code}]\n" if self.code else "\n", "dim")
        text.append(f"Pod {self.namespace}/{self.name}\n", style="bold")
        if not self.reasons:
            told = "nothing of Flotilla's concerns it: there is no SidecarSet, and its containers start at once\n"
            text.append(told, "default")
        for line in self.reasons:
            text.append("  • ", style="yellow").append(f"{line}\n", style="default")
        return text


async def story(api: Api, url: str, namespace: str, name: str, clock: Clock, *, everything: bool = False) -> Story:
    """Of one pod. `everything`: also of SidecarSets that select other pods. Raises ApiError and Unreachable."""
    pod = msgspec.json.decode(await api.get(POD, namespace, name), type=Pod)
    labels = metadata_of(await api.get(NAMESPACE, "", namespace)).labels
    whys = await _whys(url, injected(pod.metadata.annotations), clock)
    around = Surroundings(labels, await _sidecar_sets(api), whys)
    word, cause, denied = await cause_now(api, pod, clock.now())
    told = [*launch_story(pod), *sidecar_story(pod, around, everything=everything)]
    told += (
        [f"you may not read {', '.join(sorted(denied))}: the cause may be known no closer than this"] if denied else []
    )
    if cause is None:
        return Story(namespace, name, told, sentence=SERVES if pod.status.phase != "Succeeded" else ENDED)
    return Story(namespace, name, told, verdict=word, sentence=cause.text, code=cause.code)


async def uninjected(api: Api, name: str) -> list[str]:
    """Which pods a SidecarSet matches now and does not have, by reason. Raises ApiError and Unreachable."""
    sets = await _sidecar_sets(api)
    one = next((one for one in sets if one.metadata.name == name), None)
    if one is None or one.spec.selector is None:
        return []
    found: dict[str, list[str]] = {}
    for pod in await _selected(api, one.spec.selector):
        if name not in injected(pod.metadata.annotations) and pod.active:
            place = pod.metadata.namespace
            around = Surroundings(metadata_of(await api.get(NAMESPACE, "", place)).labels, sets, {})
            found.setdefault(why_not(pod, one, around), []).append(f"{place}/{pod.metadata.name}")
    return [f"{named(pods)}: {why}" for why, pods in found.items()]


async def _selected(api: Api, selector: LabelSelector) -> list[Pod]:
    """The pods of these labels, the first `MOST_PODS` of them."""
    page = await api.list(POD, label_selector=str(Selector.compile(selector)), limit=MOST_PODS)
    return [msgspec.json.decode(item, type=Pod) for item in page.items]


async def _sidecar_sets(api: Api) -> list[SidecarSet]:
    """By name; none where the kind is not installed."""
    try:
        items = (await api.list(SIDECAR_SET)).items
    except ApiError as failure:
        if failure.code == 404:
            return []
        raise
    return sorted(_readable(items), key=lambda one: one.metadata.name)


def _readable(items: Iterable[msgspec.Raw]) -> Iterable[SidecarSet]:
    for item in items:
        with contextlib.suppress(msgspec.MsgspecError):  # what cannot be read injects nothing, and is another's matter
            yield msgspec.json.decode(item, type=SidecarSet)


async def _whys(url: str, names: Iterable[str], clock: Clock) -> dict[str, Why]:
    found: dict[str, Why] = {}
    if not url:
        return found
    with contextlib.suppress(BusError):
        async with open_bus(url) as bus:
            await connected(bus, clock, BUS_SECONDS)
            for name in names:
                why = await last_why(bus, SIDECAR_SET, "", name)
                if why is not None:
                    found[name] = why
    return found
