"""Foresees what an apply does: reads what its controllers look at, plays it, and tells the story."""

from collections.abc import Mapping
from typing import Any

from flotilla_cli.foresee.changes import changes_of
from flotilla_cli.foresee.dryrun import Applied
from flotilla_cli.foresee.observer import Observer
from flotilla_cli.foresee.play import Moment, Play
from flotilla_cli.foresee.reading import Reader
from flotilla_cli.foresee.story import CHANGED, CREATED, UNCHANGED, Revision, Serving, Story, Wave, totals_of
from flotilla_cli.foresee.telling import Teller
from flotilla_cli.foresee.why import Hindrances
from flotilla_cli.imagined.cluster import Cluster
from flotilla_cli.services import controllers
from flotilla_common.api.documents import Json, mapping, mappings, member, strings, text
from flotilla_common.api.keys import INSTANCE_ID_LABEL
from flotilla_common.api.kinds.sidecarset.records import injected
from flotilla_common.api.resources import CLAIM, POD, REVISION, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.controller import Key
from flotilla_common.control.offline import Planning
from flotilla_common.control.plan import Create, Plan, Reason
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.gates import Gates


class Foresight:
    """One apply, foreseen."""

    def __init__(self, reader: Reader, applied: Applied, planning: Mapping[str, Planning], clock: Clock) -> None:
        self._reader = reader
        self._applied = applied
        self._resource = applied.manifest.kind.resource
        self._planning = planning
        self._gates = Gates.parse(planning.get(self._resource.plural, Planning()).gates)
        self._cluster = Cluster(clock.now())

    async def story(self) -> Story:
        """What happens. Raises ApiError, Unreachable."""
        specs = concerned(self._resource, self._gates)
        play = Play(self._cluster, specs, self._planning)
        await self._load(specs)
        for resource, name in play.asks(self._resource, self._applied.stored):
            self._cluster.resources[resource.id] = resource
            self._cluster.objects.load(resource, await self._reader.list(resource, "", name))
        objects = self._cluster.objects
        teller = Teller({_instance(one) for one in objects.all(CLAIM)})
        observer = Observer(objects, self._tracked())
        hindrances = Hindrances(objects, self._applied.stored, self._gates)
        moments: list[Moment] = []
        for moment in play.run(self._resource, self._applied.stored):
            teller.tell(moment, observer.news())
            moments.append(moment)
        plan = play.plans.get((self._resource, self._key), Plan())
        waves = tuple(hindrances.explained(wave) for wave in teller.waves)
        return self._told(teller, moments, waves, observer, plan, finished=play.finished)

    async def _load(self, specs: Mapping[Resource, ControllerSpec[Any]]) -> None:
        """The live objects; each resource once, whichever controllers look at it."""
        loaded = {self._resource}
        for resource, spec in specs.items():
            planning = self._planning.get(resource.plural, Planning())
            for watch in spec.all_watches:
                if watch.resource in loaded or (watch.gate and not self._gates.on(watch.gate)):
                    continue
                loaded.add(watch.resource)
                self._cluster.resources[watch.resource.id] = watch.resource
                found = await self._reader.read(watch, self._applied.namespace, planning)
                self._cluster.objects.load(watch.resource, found)

    @property
    def _key(self) -> Key:
        return self._applied.namespace, self._applied.manifest.name

    def _tracked(self):  # noqa: ANN202
        """Which pods the object is about: those that it owns, or that have its sidecars."""
        uid, name = self._applied.stored["metadata"].get("uid"), self._applied.manifest.name

        def tracked(pod: Json) -> bool:
            metadata = member(pod, "metadata")
            owned = any(owner.get("uid") == uid for owner in mappings(metadata.get("ownerReferences")))
            return owned or (
                self._applied.manifest.kind.name == "SidecarSet" and name in injected(strings(metadata.get("annotations")))
            )

        return tracked

    def _told(
        self, teller: Teller, moments: list[Moment], waves: tuple[Wave, ...], observer: Observer, plan: Plan, *, finished: bool
    ) -> Story:
        applied = self._applied
        changes = () if applied.before is None else changes_of(applied.before, applied.after)
        verdict = CREATED if applied.before is None else CHANGED if changes else UNCHANGED
        writes = [write for moment in moments for write in moment.writes if write.effective]
        own = sum(write.action.resource == self._resource for write in writes)
        limit = plan.numbers.get("maxUnavailable")
        serving = Serving(now=observer.before, lowest=observer.lowest, end=observer.serving, max_unavailable=limit)
        return Story(
            kind=self._resource.kind,
            namespace=applied.namespace,
            name=applied.manifest.name,
            verdict=verdict,
            changes=changes,
            revision=self._revision(moments),
            waves=waves,
            totals=totals_of([step for wave in waves for step in wave.steps], len(writes) - own),
            serving=serving if observer.before or observer.serving else None,
            reasons=tuple(_reason(teller, one) for one in plan.reasons),
            numbers=plan.numbers,
            notes=self._notes(finished=finished),
        )

    def _revision(self, moments: list[Moment]) -> Revision | None:
        stored = self._cluster.objects.get(self._resource, *self._key)
        status = member(stored or {}, "status")
        name = text(status.get("updateRevision")) or text(status.get("latestRevision"))
        made = {
            write.action.name
            for moment in moments
            for write in moment.writes
            if isinstance(write.action, Create) and write.action.resource == REVISION
        }
        return Revision(name, new=name in made) if name else None

    def _notes(self, *, finished: bool) -> tuple[str, ...]:
        notes: list[str] = []
        broken = [pod for pod in self._cluster.objects.all(POD) if pod["metadata"]["uid"] in self._cluster.pods.troubles]
        tracked = self._tracked()
        for pod in filter(tracked, broken):
            trouble = self._cluster.pods.troubles[pod["metadata"]["uid"]]
            notes.append(f"{pod['metadata']['name']} is taken to stay as it is today: {trouble}")
        notes += [f"{plural} could not be read: {words}" for plural, words in self._reader.refused.items()]
        if not finished:
            notes.append("it never comes to rest, as far as this was played")
        return tuple(notes)


def concerned(resource: Resource, gates: Gates) -> dict[Resource, ControllerSpec[Any]]:
    """The controller of the kind, and those of kinds whose objects it makes."""
    known, found, waiting = controllers(), dict[Resource, ControllerSpec[Any]](), [resource]
    while waiting:
        one = waiting.pop()
        if one in known and one not in found:
            found[one] = spec = known[one]
            made = (watch for watch in spec.watches if "create" in watch.writes)
            waiting += [watch.resource for watch in made if not watch.gate or gates.on(watch.gate)]
    return found


def _instance(claim: Json) -> str:
    return strings(mapping(claim.get("metadata")).get("labels")).get(INSTANCE_ID_LABEL, "")


def _reason(teller: Teller, reason: Reason) -> Reason:
    objects = tuple(teller.called(name) for name in reason.objects)
    return Reason(code=reason.code, message=teller.called(reason.message), objects=objects)
