"""Admission and conversion of SidecarSets (sidecarset.md §2.4, §3, §4).

Defaults are part of the hashes, so they must not change: a startup probe gets none, and pull policies follow the usual
rule, unlike in the pod templates of workloads.
"""

import copy

import msgspec

from flotilla_common.api.admission.fields import Fault, aggregate
from flotilla_common.api.admission.handlers import Tools, Verdict, configuration, decoded, document_of, former_of
from flotilla_common.api.admission.pod_template import default_container, default_field_ref, default_volume, pull_policy
from flotilla_common.api.admission.review import Answer, Request, error, operations, patched
from flotilla_common.api.admission.workload import unknown_fields
from flotilla_common.api.documents import (
    Json,
    ensured,
    fill,
    fill_empty,
    mapping,
    mappings,
    member,
    sequence,
    strings,
    text,
)
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.keys import CUSTOM_VERSION_LABEL, SIDECAR_SET_NAME_LABEL
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.kinds.sidecarset import crd
from flotilla_common.api.kinds.sidecarset import validation as rules
from flotilla_common.api.kinds.sidecarset.conflicts import canary_faults, conflict_faults
from flotilla_common.api.kinds.sidecarset.metadata_validation import metadata_faults
from flotilla_common.api.kinds.sidecarset.revisions import (
    INJECTED,
    SIDECAR_MEMBERS,
    canonical_list,
    hash_annotations,
    restored,
)
from flotilla_common.api.kinds.sidecarset.types import AFTER_APP, BEFORE_APP, RETAIN, SIDECAR_SET, SidecarSet
from flotilla_common.api.resources import REVISION
from flotilla_common.api.selectors import value_problem
from flotilla_common.api.versions import Conversion, only_beta
from flotilla_common.api.webhooks import NAMESPACE_NAME

_PROBES = ("livenessProbe", "readinessProbe")

_STAND_IN = {"name": "flotilla-stands-in-for-the-pods-own", "image": "none"}
"""The container of the template under validation if a SidecarSet has init containers only."""

_TEMPLATE = "spec.template"
_JUDGED = ("containers", "initContainers", "volumes")

ALLOWED_BY_DEFAULT = "SidecarSetPatchPodMetadataDefaultsAllowed"
"""The gate that allows annotations on pods if no white list applies."""


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults and hashes, as a patch in the version of the request."""
    document = document_of(request, check_types)
    return patched(operations(document, default_sidecarset(document)))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (500), or warn of fields that pods will not have."""
    document = default_sidecarset(to_hub(document_of(request, check_types)))
    former = former_of(request, check_types)
    old = to_hub(former) if former is not None else None
    try:
        verdict = await _verdict(document, old, tools)
        faults = await _faults(document, old, verdict, tools)
    except (ApiError, Unreachable, ValueError) as failure:  # ValueError: another SidecarSet is unreadable
        return error(500, f"cannot check the SidecarSet: {failure}")
    return error(500, aggregate(faults)) if faults else Answer(warnings=unknown_fields(verdict))


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads, or that pods get, has a wrong type."""
    decoded(to_hub(document), SidecarSet)
    for name in INJECTED:
        canonical_list(mapping(document.get("spec")), name)


async def _verdict(document: Json, old: Json | None, tools: Tools) -> Verdict:
    if not needs_validation(document, old):
        return Verdict()
    template = pod_template(mapping(document.get("spec")))
    return in_words_of_the_set(await tools.template_verdict(tools.namespace, template, []))


async def _faults(document: Json, old: Json | None, verdict: Verdict, tools: Tools) -> list[Fault]:
    """Return all faults; conflicts with other SidecarSets only if there is no other fault."""
    stored = [msgspec.json.decode(body, type=Json) for body in await tools.read_all(SIDECAR_SET)]
    by_name = {text(member(one, "metadata").get("name")): one for one in stored}
    allowed = tools.gates.on(ALLOWED_BY_DEFAULT)
    looked_up = [
        *canary_faults(document, old, by_name),
        *verdict.faults,
        *metadata_faults(document, await configuration(tools), allowed=allowed),
    ]
    missing = not await _revision_is_there(document, tools)
    return rules.validate(document, old, looked_up, missing_revision=missing) or [*conflict_faults(document, stored)]


async def _revision_is_there(document: Json, tools: Tools) -> bool:
    """Report whether the revision for new pods exists and is readable, or none is named."""
    choice = member(document, "spec", "injectionStrategy", "revision")
    name, version = choice.get("revisionName"), choice.get("customVersion")
    if name is None and version is None:
        return True
    revisions = [msgspec.json.decode(body, type=Json) for body in await tools.read_all(REVISION, tools.namespace)]
    if name is not None:
        found = [one for one in revisions if member(one, "metadata").get("name") == name]
    else:
        wanted = {SIDECAR_SET_NAME_LABEL: text(member(document, "metadata").get("name")), CUSTOM_VERSION_LABEL: version}
        found = [one for one in revisions if wanted.items() <= strings(member(one, "metadata").get("labels")).items()]
    return bool(found) and _readable(document, max(found, key=lambda revision: revision.get("revision") or 0))


def _readable(document: Json, revision: Json) -> bool:
    try:
        restored(document, revision)
    except ValueError:
        return False
    return True


def needs_validation(document: Json, old: Json | None) -> bool:
    """Report whether there is new content: what is stored stays writable when the apiserver gets stricter."""
    spec, before = mapping(document.get("spec")), mapping(old.get("spec")) if old else {}
    return old is None or any(spec.get(name) != before.get(name) for name in _JUDGED)


def pod_template(spec: Json) -> Json:
    """Return a pod template with the containers and volumes of a spec with defaults."""
    containers, init = ([_bare(one) for one in mappings(spec.get(name))] for name in ("containers", "initContainers"))
    pod = {"containers": containers or [_STAND_IN], "initContainers": init, "volumes": sequence(spec.get("volumes"))}
    return {"spec": pod | {"restartPolicy": "Always"}}


def in_words_of_the_set(verdict: Verdict) -> Verdict:
    """Return the verdict with the paths of the SidecarSet."""
    faults = [Fault(_own_path(fault.path), fault.body) for fault in verdict.faults]
    return Verdict(faults, [_own_path(path) for path in verdict.dropped])


def _bare(sidecar: Json) -> Json:
    return {key: value for key, value in sidecar.items() if key not in SIDECAR_MEMBERS}


def _own_path(path: str) -> str:
    """Return the path in the SidecarSet: `spec.volumes` for `spec.template.spec.volumes`."""
    rest = path.removeprefix(_TEMPLATE).removeprefix(".spec")
    return f"spec{rest}" if path.startswith(_TEMPLATE) else path


def default_sidecarset(document: Json) -> Json:
    """Return a new document with defaults and both hashes. Raises ValueError for unreadable containers."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    strategy = ensured(spec, "updateStrategy")
    fill_empty(strategy, type="RollingUpdate")
    fill(strategy, partition=0, maxUnavailable=1)
    for container in mappings(spec.get("initContainers")):
        _default_sidecar(container, AFTER_APP)
    for container in mappings(spec.get("containers")):
        _default_sidecar(container, BEFORE_APP)
    for volume in mappings(spec.get("volumes")):
        default_volume(volume)
    fill(spec, revisionHistoryLimit=10)
    for entry in mappings(spec.get("patchPodMetadata")):
        fill_empty(entry, patchPolicy=RETAIN)
    if (revision := member(spec, "injectionStrategy").get("revision")) is not None:
        fill_empty(mapping(revision), policy="Always")
    ensured(ensured(defaulted, "metadata"), "annotations").update(hash_annotations(spec))
    return defaulted


def _default_sidecar(container: Json, inject_policy: str) -> None:
    fill_empty(container, podInjectPolicy=inject_policy, imagePullPolicy=pull_policy(text(container.get("image"))))
    fill_empty(ensured(container, "upgradeStrategy"), upgradeType="ColdUpgrade")
    fill_empty(ensured(container, "shareVolumePolicy"), type="disabled")
    for entry in mappings(container.get("transferEnv")):
        default_field_ref(mapping(entry.get("sourceContainerNameFrom")))
    default_container(container, _PROBES)


# v1beta1 is the hub. A custom version is a label in v1alpha1. A namespace in v1alpha1 becomes a selector over
# namespaces, and stays one after conversion back.


def _to_beta(document: Json) -> None:
    spec, metadata = mapping(document.get("spec")), member(document, "metadata")
    if namespace := spec.pop("namespace", None):
        spec["namespaceSelector"] = {"matchLabels": {NAMESPACE_NAME: namespace}}
    labels = mapping(metadata.get("labels"))
    if custom_version := labels.pop(CUSTOM_VERSION_LABEL, None):
        ensured(document, "spec")["customVersion"] = custom_version
    if not labels:
        metadata.pop("labels", None)


def _to_alpha(document: Json) -> None:
    spec = mapping(document.get("spec"))
    custom_version = text(spec.get("customVersion"))
    if value_problem(custom_version):  # the apiserver would refuse a LIST with such a label
        return
    spec.pop("customVersion", None)
    if custom_version:
        ensured(ensured(document, "metadata"), "labels")[CUSTOM_VERSION_LABEL] = custom_version


_VERSIONS = Conversion("SidecarSet", _to_beta, _to_alpha, only_beta("spec.customVersion"))
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub


RULES = Rules(
    schema=crd.version,
    convert=convert,
    admission=Admission(mutate=mutate, validate=validate, arms_pods=True),
)
