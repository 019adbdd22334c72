"""Validation of a BroadcastJob (broadcastjob.md §3.2). Nothing of it is immutable.

The rules read the raw document that the apiserver will store. The pod template is judged by the apiserver, and comes
in as faults.
"""

from collections.abc import Iterable, Iterator

from flotilla_common.api.admission.fields import Fault, invalid
from flotilla_common.api.admission.names import job_name_faults
from flotilla_common.api.admission.plain import decoded
from flotilla_common.api.documents import Json, mapping, member, strings
from flotilla_common.api.kinds.broadcastjob.types import NAME_LABEL, NEVER, UID_LABEL, BroadcastJob

_ENDS = ("Never", "OnFailure")
_OURS = f'"{NAME_LABEL}" and "{UID_LABEL}" are not allowed to preset in pod labels'


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads has a type that it cannot have."""
    decoded(document, BroadcastJob)


def validate(document: Json, name: str, template: Iterable[Fault] = ()) -> list[Fault]:
    """All faults of a BroadcastJob. `template`: what is wrong with its pod template by itself."""
    spec = mapping(document.get("spec"))
    return [*job_name_faults(name), *_completion_faults(spec), *_template_faults(spec), *template]


def _completion_faults(spec: Json) -> Iterator[Fault]:
    """A job that never ends has neither a deadline nor something to do after its end."""
    policy = member(spec, "completionPolicy")
    if policy.get("type") != NEVER:
        return
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds"):
        if policy.get(name) is not None:
            path = f"spec.completionPolicy.{name}"
            yield invalid(path, policy[name], "can just work with Always CompletionPolicyType")


def _template_faults(spec: Json) -> Iterator[Fault]:
    restart = member(spec, "template", "spec").get("restartPolicy")
    if restart not in _ENDS:
        path = "spec.template.spec.restartPolicy"
        yield invalid(path, restart or "", "pod restartPolicy can only be Never or OnFailure")
    labels = strings(member(spec, "template", "metadata").get("labels"))
    if labels.get(NAME_LABEL) or labels.get(UID_LABEL):
        yield invalid("spec.template.metadata.labels", labels, _OURS)
