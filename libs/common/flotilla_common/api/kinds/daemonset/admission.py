"""Admission of DaemonSets: defaults and validation (daemonset.md §3). They have no deletion protection."""

import copy

from flotilla_common.api.admission.plain import Judgement, Write, defaulted, judged
from flotilla_common.api.admission.pod_template import drop_directive
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.admission.workload import template_verdict, unknown_fields
from flotilla_common.api.documents import Json, ensured, fill, fill_empty
from flotilla_common.api.kinds.daemonset import crd
from flotilla_common.api.kinds.daemonset import validation as rules
from flotilla_common.api.kinds.daemonset.conversion import STANDARD, SURGING, convert
from flotilla_common.api.kinds.daemonset.validation import check_types
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.versions import V1ALPHA1


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, as a patch in the version of the request."""
    return defaulted(request, check_types, lambda it: default_daemonset(it.document))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once: 500 for a new object, 422 for a change.

    Warnings name accepted settings that will not work as intended.
    """
    return await judged(request, tools, check_types, _judge)


async def _judge(write: Write, tools: Tools) -> Judgement:
    template = await template_verdict(tools, write)
    faults = rules.validate(write.document, write.old, template.faults)
    if write.old is not None:
        return Judgement(faults, unknown_fields(template))
    return Judgement(faults, unknown_fields(template) + rules.name_warnings(write.name), code=500)


def default_daemonset(document: Json) -> Json:
    """Return a new document with defaults."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    drop_directive(spec)
    fill(spec, burstReplicas=250, revisionHistoryLimit=10)
    strategy = ensured(spec, "updateStrategy")
    fill_empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _default_rolling(ensured(strategy, "rollingUpdate"), alpha=document.get("apiVersion") == V1ALPHA1)
    return defaulted


def _default_rolling(rolling: Json, *, alpha: bool) -> None:
    if alpha and rolling.get("rollingUpdateType") == SURGING:
        fill(rolling, maxSurge=1, maxUnavailable=0)
        rolling["rollingUpdateType"] = STANDARD
    fill_empty(rolling, rollingUpdateType=STANDARD)
    if rolling.get("maxUnavailable") is None and rolling.get("maxSurge") is None:
        rolling.update(maxUnavailable=1, maxSurge=0)


RULES = Rules(schema=crd.version, convert=convert, admission=Admission(mutate=mutate, validate=validate))
