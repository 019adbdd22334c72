"""Admission of PodUnavailableBudgets (podunavailablebudget.md §4). They have no defaults."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from flotilla_common.api.admission.plain import Judgement, Write, decoded, judged
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.podunavailablebudget import crd
from flotilla_common.api.kinds.podunavailablebudget.conversion import convert, to_hub
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, PodUnavailableBudget
from flotilla_common.api.kinds.podunavailablebudget.validation import validate as faults_of
from flotilla_common.api.kinds.rules import Admission, Rules


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (400)."""
    return await judged(request, tools, _typed, _judge)


def _typed(document: Json) -> PodUnavailableBudget:
    return decoded(to_hub(document), PodUnavailableBudget)


async def _judge(write: Write, tools: Tools) -> Judgement:
    stored = _readable(await tools.read_all(POD_UNAVAILABLE_BUDGET, write.namespace))
    others = sorted((one for one in stored if one.metadata.name != write.name), key=lambda one: one.metadata.name)
    old = _typed(write.old) if write.old is not None else None
    document = to_hub(write.document)
    return Judgement(faults_of(document, _typed(document), old, others), code=400)


def _readable(bodies: Iterable[bytes | msgspec.Raw]) -> Iterator[PodUnavailableBudget]:
    """Yield the readable budgets: an unreadable one protects nothing, and conflicts with none."""
    for body in bodies:
        with suppress(ValueError):
            yield msgspec.json.decode(body, type=PodUnavailableBudget)


RULES = Rules(schema=crd.version, convert=convert, admission=Admission(validate=validate, arms_pods=True))
