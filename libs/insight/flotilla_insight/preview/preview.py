"""Previews an apply: loads what the controllers read, simulates them, and reports the result."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from flotilla_common.api.documents import Json, member, strings, text
from flotilla_common.api.keys import INSTANCE_ID_LABEL
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import CLAIM, POD, REVISION, SECRET, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Plan
from flotilla_common.control.replay_controller import Planning
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import ApiError, Lists, pages
from flotilla_common.model.cluster import Cluster
from flotilla_common.model.store import Objects
from flotilla_common.model.workloads import DEPENDENTS
from flotilla_common.model.writes import Write
from flotilla_common.settings import Settings
from flotilla_common.workload.causes import grouped
from flotilla_common.workload.inplace.calculate import hindrances
from flotilla_insight.preview.defaults import with_defaults
from flotilla_insight.preview.dryrun import Applied
from flotilla_insight.preview.observer import Observer
from flotilla_insight.preview.report import Report, Wave, composed
from flotilla_insight.preview.simulation import Simulation, carriers_of
from flotilla_insight.preview.steps import RECREATE, Step
from flotilla_insight.preview.waves import WaveBuilder
from flotilla_insight.services import controllers
from flotilla_insight.views import view_of, view_of_owner
from flotilla_insight.views.kindview import CreatedObject, KindView

_PRIVATE = {"namespace": "system_namespace", "daemon_config_namespace": "secrets_namespace"}
"""Settings that name a namespace, with their names in the options of planners."""


class Reader:
    """Reads what the controllers of a kind look at: LISTs, each made once for all manifests of a command.

    Of Secrets only those with the name of a distributed Secret are read. `refused`: the apiserver's message by the
    plural of each resource that could not be read.
    """

    def __init__(self, api: Lists) -> None:
        self._api = api
        self._lists: dict[tuple[Resource, str, str], Sequence[bytes]] = {}
        self.refused: dict[str, str] = {}

    async def read(self, watch: Watch[Any], namespace: str, planning: Planning) -> Sequence[bytes]:
        """Return the watched objects that a controller sees; for a namespaced object those of its namespace."""
        if watch.named or watch.resource == SECRET:
            return ()
        if watch.private:
            namespace = str(planning.options.get(_PRIVATE[watch.private]) or getattr(Settings(), watch.private))
        return await self.list(watch.resource, namespace if watch.resource.namespaced else "")

    async def list(self, resource: Resource, namespace: str, name: str = "") -> Sequence[bytes]:
        """Return all objects, or those with the name in all namespaces; empty if forbidden or not served."""
        key = (resource, namespace, name)
        if key not in self._lists:
            try:
                self._lists[key] = await self._pages(*key)
            except ApiError as error:
                if error.code not in (403, 404):
                    raise
                self._lists[key] = ()
                self.refused[resource.plural] = error.message
        return self._lists[key]

    async def _pages(self, resource: Resource, namespace: str, name: str) -> Sequence[bytes]:
        listed = pages(self._api, resource, namespace, field_selector=f"metadata.name={name}" if name else "")
        return [bytes(raw) async for page in listed for raw in page.items]


class Preview:
    """The preview of one apply."""

    def __init__(self, reader: Reader, applied: Applied, planning: Mapping[str, Planning], clock: Clock) -> None:
        self._reader = reader
        self._applied = applied
        self._resource = applied.manifest.kind.resource
        self._kind = view_of(self._resource)
        self._planning = planning
        self._gates = Gates.parse(planning.get(self._resource.plural, Planning()).gates)
        self._cluster = Cluster(clock.now())

    async def report(self) -> Report:
        """Return the report. Raises ApiError, Unreachable. The simulation has a thread, so that the caller goes on."""
        return await asyncio.to_thread(self._simulated, await self._prepared())

    def _simulated(self, simulation: Simulation) -> Report:
        applied, objects = self._applied, self._cluster.objects
        observer = Observer(objects, self._kind, applied.stored)
        new = {applied.stored["metadata"].get("uid")} if applied.before is None else set[str]()
        owners = {document["metadata"].get("uid") for _, document in objects.everything()} - new
        builder = WaveBuilder(applied.namespace, _unforeseeable(objects.all(CLAIM), owners))
        recreate_reasons = RecreateReasons(objects, applied.stored, self._kind, self._gates)
        writes: list[Write] = []
        for tick in simulation.run(self._resource, applied.stored):
            builder.add(tick, observer.take_events())
            writes += [write for write in tick.writes if write.effective]
        plan = simulation.plans.get((self._resource, (applied.namespace, applied.manifest.name)), Plan())
        waves = tuple(recreate_reasons.explained(wave) for wave in builder.waves)
        report = composed(applied, waves, writes, observer, builder.with_aliases(plan))
        return msgspec.structs.replace(report, notes=self._notes(observer, finished=simulation.finished))

    async def _prepared(self) -> Simulation:
        """Return the simulation, with all objects loaded that it reads."""
        specs, everywhere = await self._specs()
        simulation = Simulation(self._cluster, specs, self._planning, partial(with_defaults, gates=self._gates))
        loaded = {self._resource} - everywhere
        for resource, spec in specs.items():
            planning = self._planning.get(resource.plural, Planning())
            for watch in spec.all_watches:
                if watch.resource not in loaded and (not watch.gate or self._gates.on(watch.gate)):
                    loaded.add(watch.resource)
                    namespace = "" if watch.resource in everywhere else self._applied.namespace
                    self._load(watch.resource, await self._reader.read(watch, namespace, planning))
        dependents = {one for owner, parts in DEPENDENTS.items() if owner in loaded for one in parts}
        for resource in sorted(dependents - loaded, key=lambda one: one.id):
            self._load(resource, await self._reader.list(resource, self._applied.namespace))
        needed = {other for resource in specs for other in view_of(resource).plan_reads}
        for resource in sorted(needed - loaded, key=lambda one: one.id):
            self._load(resource, await self._reader.list(resource, ""))
        for resource, name in simulation.asks(self._resource, self._applied.stored):
            self._load(resource, await self._reader.list(resource, "", name))
        return simulation

    async def _specs(self) -> tuple[dict[Resource, ControllerSpec[Any, Any]], set[Resource]]:
        """Return the controllers to simulate, and the resources that they read in all namespaces.

        Controllers that carry out what the object asks for read all namespaces; if the user may not, they are left out.
        """
        specs = concerned(self._resource, self._gates)
        carriers = carriers_of(specs) & specs.keys()
        everywhere: set[Resource] = set()
        for carrier in carriers:
            for watch in specs[carrier].all_watches:
                everywhere.add(watch.resource)
                await self._reader.list(watch.resource, "")
        if any(resource.plural in self._reader.refused for resource in everywhere):
            return {resource: spec for resource, spec in specs.items() if resource not in carriers}, set()
        return specs, everywhere

    def _load(self, resource: Resource, objects: Sequence[bytes]) -> None:
        self._cluster.objects.load(resource, objects)

    def _notes(self, observer: Observer, *, finished: bool) -> tuple[str, ...]:
        """Return the assumptions of the report."""
        troubles = self._cluster.pods.troubles
        pods = filter(observer.tracked, self._cluster.objects.all(POD))
        broken = [(pod["metadata"]["name"], troubles.get(pod["metadata"]["uid"])) for pod in pods]
        groups = grouped((name, cause) for name, cause in broken if cause is not None)
        notes = [f"assumed to stay as it is: {group.sentence}" for group in groups]
        notes += [f"{plural} could not be read: {words}" for plural, words in self._reader.refused.items()]
        if member(self._applied.stored, "spec").get("pullSecrets"):
            notes.append("pull secrets are not read: nodes get the images once the service has copied them")
        if not finished:
            notes.append("did not converge within the simulated period")
        return tuple(notes)


def concerned(resource: Resource, gates: Gates) -> dict[Resource, ControllerSpec[Any, Any]]:
    """Return the controller of the kind, those of our kinds that it creates, and those that are simulated along."""
    ours, known = {kind.resource for kind in catalogue.KINDS}, controllers()
    found: dict[Resource, ControllerSpec[Any, Any]] = {}
    waiting = [resource]
    while waiting:
        one = waiting.pop()
        if one not in found and one in ours & known.keys():
            found[one] = spec = known[one]
            used = (watch for watch in spec.watches if "create" in watch.writes or _plays_along(watch, ours))
            waiting += [watch.resource for watch in used if not watch.gate or gates.on(watch.gate)]
            waiting += view_of(one).carried_out_by
    return found


def _plays_along(watch: Watch[Any], ours: Collection[Resource]) -> bool:
    return watch.resource in ours and bool(watch.subresources) and view_of(watch.resource).plays_along


def _unforeseeable(claims: Sequence[Json], owners: Collection[str]) -> Callable[[Write], bool]:
    """Return a function that reports whether a write creates an object whose name is not known in advance.

    `claims`: existing claims, whose instance ids are used again; `owners`: uids of the objects before the apply. Most
    names follow from what is created: ordinals, hashes of templates. Others depend on what only the real apply brings,
    or on state of the service; the views of the kinds name these.
    """
    instances = frozenset(_instance_of(claim) for claim in claims)

    def has_unknown_name(write: Write) -> bool:
        document = write.after or {}
        instance = _instance_of(document)
        for owner in metadata_of(msgspec.json.encode(document)).owner_references:
            made = CreatedObject(
                kind=write.action.resource.kind,
                has_new_instance=instance != "" and instance not in instances,
                has_new_owner=owner.uid not in owners,
            )
            if (view := view_of_owner(owner)) is not None and view.has_unknown_name(made):
                return True
        return False

    return has_unknown_name


def _instance_of(document: Json) -> str:
    """Return the instance id of a CloneSet's pod or claim; empty for everything else."""
    return strings(member(document, "metadata").get("labels")).get(INSTANCE_ID_LABEL, "")


class RecreateReasons:
    """Finds out why pods are recreated, from their revisions before the simulation."""

    def __init__(self, objects: Objects, workload: Json, kind: KindView, gates: Gates) -> None:
        self._objects = objects
        self._gates = gates
        policy = kind.update_policy
        chosen = text(member(kind.update_strategy(workload), "rollingUpdate").get(policy.field)) or policy.never
        self._forbidden = f"{policy.field} is {policy.never}" if chosen == policy.never else ""
        self._name = text(member(workload, "metadata").get("name"))
        self._known: dict[tuple[str, str], str] = {}

    def explained(self, wave: Wave) -> Wave:
        """Return the wave with the reasons of its recreations."""
        return msgspec.structs.replace(wave, steps=tuple(self._step(step) for step in wave.steps))

    def _step(self, step: Step) -> Step:
        if step.do != RECREATE or step.kind != POD.kind:
            return step
        return msgspec.structs.replace(step, why=self._why(step))

    def _why(self, step: Step) -> str:
        if self._forbidden:
            return self._forbidden
        pair = (step.revision, step.target)
        if pair not in self._known:
            self._known[pair] = self._between(step.namespace, *pair)
        return self._known[pair]

    def _between(self, namespace: str, old: str, new: str) -> str:
        before, after = (self._template(namespace, name) for name in (old, new))
        if not before or not after:
            return f"the revision {old if not before else new} cannot be read"
        return hindrances(before, after, gates=self._gates) or "the revisions do not allow it"

    def _template(self, namespace: str, name: str) -> Json:
        """Return the pod template of a revision, given by its full name or, as on some pods, its hash."""
        whole, short = (self._objects.get(REVISION, namespace, one) for one in (name, f"{self._name}-{name}"))
        return member(whole or short or {}, "data", "spec", "template")
