"""Defaults of an AdvancedCronJob (advancedcronjob.md §3.1). What a Job or BroadcastJob may leave out beside its pod
template is filled in when one is made."""

import copy

from flotilla_common.api.admission.pod_template import default_template
from flotilla_common.api.documents import Json, ensured, fill, is_object, member
from flotilla_common.api.kinds.advancedcronjob import templates
from flotilla_common.api.kinds.advancedcronjob.types import ALLOW, REPLACE
from flotilla_common.api.kinds.imagepulljob.defaults import default_limits
from flotilla_common.api.kinds.imagepulljob.types import ALWAYS
from flotilla_common.gates import Gates


def default_cron_job(document: Json, old: Json | None, gates: Gates) -> Json:
    """The document with defaults filled in, as a new document. `old` is the stored object of an update: templates that
    did not change are left as they are stored."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    template = member(spec, "template")
    unchanged = old is not None and member(old, "spec").get("template") == spec.get("template")
    if not unchanged and not gates.on("TemplateNoDefaults"):
        _default_pods(spec, host_ports=gates.on("DefaultHostNetworkHostPortsInPodTemplates"))
    if is_object(images := template.get(templates.IMAGES)):
        _default_pulls(ensured(images, "spec"))
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or (ALLOW if images is None else REPLACE)
    fill(spec, paused=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    return defaulted


def _default_pods(spec: Json, *, host_ports: bool) -> None:
    for name in templates.OF_PODS:
        if is_object(pod := member(spec, "template", name, "spec").get("template")):
            default_template(pod, host_ports=host_ports)
    if is_object(broadcast := member(spec, "template").get(templates.BROADCAST)):
        # Clients written in Go see these two in every stored template.
        ensured(broadcast, "metadata")
        ensured(ensured(broadcast, "spec"), "failurePolicy")


def _default_pulls(spec: Json) -> None:
    """Only lists that do not say when they end get limits."""
    completion = ensured(spec, "completionPolicy")
    if completion.get("type"):
        return
    completion["type"] = ALWAYS
    default_limits(ensured(spec, "pullPolicy"))
    if not spec.get("imagePullPolicy"):
        spec["imagePullPolicy"] = "IfNotPresent"
