"""Admission of PodProbeMarkers (podprobemarker.md §3). They have no defaults."""

from functools import partial

from flotilla_common.api.admission.plain import Judgement, Write, decoded, document_of, judged
from flotilla_common.api.admission.review import ALLOWED, Answer, Request
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import member
from flotilla_common.api.kinds.podprobemarker import crd
from flotilla_common.api.kinds.podprobemarker.types import PodProbeMarker
from flotilla_common.api.kinds.podprobemarker.validation import validate as faults_of
from flotilla_common.api.kinds.rules import Admission, Rules

check_types = partial(decoded, model=PodProbeMarker)
"""Raises ValueError if a field that Flotilla reads has a wrong type."""


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (400), but for a stored spec, so that the finalizer can be removed."""
    document = document_of(request, check_types)
    if request.operation == "UPDATE" and member(document, "spec") == member(request.old_object or {}, "spec"):
        return ALLOWED
    return await judged(request, tools, check_types, _judge)


async def _judge(write: Write, _: Tools) -> Judgement:
    return Judgement(faults_of(write.document, write.old), code=400)


RULES = Rules(schema=crd.version, admission=Admission(validate=validate, arms_pods=True))
