"""Admission of NodeImages, ImagePullJobs and ImageListPullJobs (imagepull.md §3). Conversion has no part in it: both
versions have the same fields."""

from collections.abc import Callable

from flotilla_common.api.admission.patch import operations
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.imagepulljob import validation as rules
from flotilla_common.api.kinds.imagepulljob.defaults import default_list_job, default_node_image, default_pull_job
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.clock import Clock
from flotilla_common.gates import Gates
from flotilla_webhook.review import ALLOWED, Answer, Handler, Request, denied, error, patched

_DAEMON, _JOBS = "KruiseDaemon", "ImagePullJobGate"


class ImagePullAdmission:
    """The handlers of the three kinds."""

    def __init__(self, gates: Gates, clock: Clock) -> None:
        self.gates = gates
        self.clock = clock

    def handlers(self) -> dict[str, Handler]:
        """By path."""
        return {
            "/mutate-apps-kruise-io-nodeimage": self.mutate_node_image,
            "/validate-apps-kruise-io-nodeimage": self.validate_node_image,
            "/mutate-apps-kruise-io-imagepulljob": self.mutate_pull_job,
            "/validate-apps-kruise-io-imagepulljob": self.validate_pull_job,
            "/mutate-apps-kruise-io-imagelistpulljob": self.mutate_list_job,
            "/validate-apps-kruise-io-imagelistpulljob": self.validate_list_job,
        }

    async def mutate_node_image(self, request: Request) -> Answer:
        """Limits, times and order of tags."""
        return _mutated(request, rules.decode_node_image, lambda it: default_node_image(it, self.clock.now()))

    async def validate_node_image(self, request: Request) -> Answer:
        """The first fault (400)."""
        if refusal := self._off(_DAEMON):
            return refusal
        return _judged(request, lambda it: rules.decode_node_image(it) and rules.node_image_problem(it))

    async def mutate_pull_job(self, request: Request) -> Answer:
        """Defaults; old clients also get the finalizer."""
        creating = request.operation == "CREATE"
        return _mutated(request, rules.decode_pull_job, lambda it: default_pull_job(it, creating=creating))

    async def validate_pull_job(self, request: Request) -> Answer:
        """The first fault (400), or a change of pull secrets (403)."""
        if refusal := self._off(_DAEMON, _JOBS):
            return refusal
        old = request.old_object
        if request.operation == "UPDATE" and old and rules.secrets_changed(request.object or {}, old):
            return denied("spec.pullSecrets is immutable")
        return _judged(request, lambda it: rules.pull_job_problem(rules.decode_pull_job(it)))

    async def mutate_list_job(self, request: Request) -> Answer:
        """Defaults."""
        return _mutated(request, rules.decode_list_job, default_list_job)

    async def validate_list_job(self, request: Request) -> Answer:
        """The first fault (400)."""
        if refusal := self._off(_DAEMON, _JOBS):
            return refusal
        creating = request.operation == "CREATE"
        return _judged(request, lambda it: rules.list_job_problem(rules.decode_list_job(it), creating=creating))

    def _off(self, *gates: str) -> Answer | None:
        """The refusal when a gate that the kind needs is off."""
        for gate in gates:
            if not self.gates.on(gate):
                return error(403, f"feature-gate {gate} is not enabled")
        return None


def _mutated(request: Request, decode: Callable[[Json], object], default: Callable[[Json], Json]) -> Answer:
    document = request.object or {}
    if problem := _undecodable(document, decode):
        return error(400, problem)
    return patched(operations(document, default(document)))


def _judged(request: Request, problem_of: Callable[[Json], str]) -> Answer:
    try:
        problem = problem_of(request.object or {})
    except ValueError as fault:
        return error(400, str(fault))
    return error(400, problem) if problem else ALLOWED


def _undecodable(document: Json, decode: Callable[[Json], object]) -> str:
    """Why the object cannot be read; empty if it can."""
    if document.get("apiVersion") not in (V1ALPHA1, V1BETA1):
        return f"unsupported version {document.get('apiVersion')}"
    try:
        decode(document)
    except ValueError as fault:
        return str(fault)
    return ""
