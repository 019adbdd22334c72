"""Admission of CloneSets: defaults, validation, deletion protection (cloneset.md §3)."""

import copy

from flotilla_common.api.admission.fields import Fault, invalid
from flotilla_common.api.admission.plain import Judgement, Write, defaulted, judged
from flotilla_common.api.admission.pod_template import default_templates
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.admission.workload import template_verdict, unknown_fields
from flotilla_common.api.documents import Json, ensured, fill, fill_empty, member, text
from flotilla_common.api.kinds.cloneset import crd
from flotilla_common.api.kinds.cloneset import validation as rules
from flotilla_common.api.kinds.cloneset.conversion import convert
from flotilla_common.api.kinds.cloneset.validation import check_types
from flotilla_common.api.kinds.rules import WRITES, Admission, Rules
from flotilla_common.api.meta import ObjectMeta, controller_of
from flotilla_common.api.resources import POD
from flotilla_common.api.versions import V1ALPHA1
from flotilla_common.gates import Gates


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, as a patch in the version of the request."""
    return defaulted(request, check_types, lambda it: default_cloneset(it.document, it.old, tools.gates))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (422), or with the protection from deletion (403).

    Warnings name accepted settings that will not work as intended.
    """
    return await judged(request, tools, check_types, _judge)


async def _judge(write: Write, tools: Tools) -> Judgement:
    template = await template_verdict(tools, write)
    pods = await _pod_faults(write, tools)
    warnings = unknown_fields(template)
    if write.old is None:
        warnings += rules.name_warnings(write.name, short_hash=tools.gates.on("CloneSetShortHash"))
    return Judgement(rules.validate(write.document, write.old, template.faults, pods), warnings)


async def _pod_faults(write: Write, tools: Tools) -> list[Fault]:
    uid = text(member(write.document, "metadata").get("uid"))
    names = rules.newly_to_delete(write.document, write.old)
    if not names:
        return []
    found = await tools.metadata_of(POD, write.namespace, names)
    reasons = {name: _unfit(name, found.get(name), uid) for name in names}
    return [invalid(rules.PODS_TO_DELETE, name, reason) for name, reason in reasons.items() if reason]


def _unfit(name: str, pod: ObjectMeta | None, uid: str) -> str:
    """Return why the CloneSet with this uid cannot delete the pod; empty if it can."""
    if pod is None:
        return f'find pod {name} failed: pods "{name}" not found'
    if pod.deletion_timestamp is not None:
        return f"find pod {name} already terminating"
    owner = controller_of(pod)
    return "" if owner is not None and owner.uid == uid else f"find pod {name} owner is not this CloneSet"


def default_cloneset(document: Json, old: Json | None, gates: Gates) -> Json:
    """Return a new document with defaults. `old` is the stored object of an update."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    fill(spec, replicas=1, revisionHistoryLimit=10)
    default_templates(spec, old, gates)
    strategy = ensured(spec, "updateStrategy")
    if document.get("apiVersion") == V1ALPHA1:
        _default_rollout(strategy, "type")
    else:
        _default_beta_strategy(strategy)
    return defaulted


def _default_beta_strategy(strategy: Json) -> None:
    fill_empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _default_rollout(ensured(strategy, "rollingUpdate"), "podUpdatePolicy")


def _default_rollout(rollout: Json, policy: str) -> None:
    fill_empty(rollout, **{policy: "ReCreate"})
    if rollout[policy] in ("InPlaceIfPossible", "InPlaceOnly"):
        ensured(rollout, "inPlaceUpdateStrategy")
    fill(rollout, partition=0, maxUnavailable="20%", maxSurge=0)


RULES = Rules(
    schema=crd.version,
    convert=convert,
    admission=Admission(mutate=mutate, validate=validate, validates=(*WRITES, "DELETE"), old_paths=True),
)
