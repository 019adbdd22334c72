"""Creates missing pods: of which revision, with which claims, how many at once (statefulset.md §4.5.1)."""

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Event, Intent, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import create_of
from flotilla_common.workload.lifecycle import PREPARING_UPDATE
from flotilla_common.workload.newpods import CREATES_PER_PASS, creates_of_pass, first_batch
from flotilla_statefulset.statefulset.claims import pod_not_created
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.pod_factory import PodFactory
from flotilla_statefulset.statefulset.pods import traits

PHASE = "create"


class Creator:
    """Collects the creations of a pass, in ascending order."""

    def __init__(self, context: PlanContext, builder: PlanBuilder) -> None:
        self._context = context
        self._builder = builder
        self._factories: dict[str, PodFactory] = {}
        self._chains: list[Chain] = []
        self.outdated = _outdated(context) if context.targets.unordered_update else 0

    @property
    def full(self) -> bool:
        """Report whether the pass has reached its limit of creations."""
        return len(self._chains) >= CREATES_PER_PASS

    def factory(self, ordinal: int) -> PodFactory:
        """Return the factory for the ordinal's pod, assuming that it is created next."""
        revision = self._revision_of(ordinal)
        name = revision.metadata.name
        if name not in self._factories:
            self._factories[name] = PodFactory(self._context, revision)
        return self._factories[name]

    def add(self, ordinal: int, factory: PodFactory) -> bool:
        """Create the ordinal's claims and its pod. Return False if pods of its revision cannot be created."""
        name = factory.revision
        if not factory.fits_selector:
            text = f"pods of {name} would not match spec.selector: none is created"
            self._builder.reason(State.STUCK, "InvalidTemplate", text)
            self._builder.events.append(Event("InvalidTemplate", text, warning=True))
            return False
        self.outdated += name != self._context.update_name
        self._chains.append(self._chain(ordinal, factory))
        return True

    def stage(self) -> None:
        """Stage the creations in slow start: an error for one pod usually hits the others, too."""
        context, builder = self._context, self._builder
        missing = context.pods.missing_count
        there, failed = context.targets.replicas - missing, PHASE in context.snapshot.failures
        chains = self._chains[: creates_of_pass(there, failed=failed)]
        if not chains:
            return
        builder.reason(State.PROGRESSING, "ScalingUp", f"creating {len(chains)} of {missing} missing pods")
        builder.stage(chains, slow_start=first_batch(there, len(chains), missing, failed=failed))

    def _revision_of(self, ordinal: int) -> ControllerRevision:
        """Return the revision of a new pod: partition keeps the lowest ranks, or any, on the old one (§4.6)."""
        targets, revisions = self._context.targets, self._context.revisions
        if targets.on_delete:
            return revisions.update
        old = self.outdated if targets.unordered_update else targets.ordinals.rank(ordinal)
        return revisions.current if old < targets.partition else revisions.update

    def _chain(self, ordinal: int, factory: PodFactory) -> Chain:
        """Create the missing claims, then the pod. Existing claims get their owners once the pod is seen (§4.9)."""
        claims, body = self._context.claims, factory.pod(ordinal)
        name, owner = body["metadata"]["name"], self._context.statefulset.metadata.name
        pod = create_of(
            POD,
            body,
            Intent.CREATE,
            "scale up",
            revision=factory.revision,
            phase=PHASE,
            tells_if_taken=False,
            on_success=Event("SuccessfulCreate", f"create Pod {name} in StatefulSet {owner} successful"),
            on_failure=pod_not_created(owner, name, ""),
        )
        missing = claims.missing(ordinal, factory.claims)
        return (*(claims.create(template, ordinal, before_pod=True) for template in missing), pod)


def _outdated(context: PlanContext) -> int:
    """Count the existing replicas that are not on the update revision (§4.6, unordered)."""
    preparing_is_new = context.snapshot.gates.on("PreparingUpdateAsUpdate")
    pods = (context.pods.by_ordinal[one] for one in context.pods.outdated)
    return sum(not (preparing_is_new and traits(pod).state == PREPARING_UPDATE) for pod in pods)
