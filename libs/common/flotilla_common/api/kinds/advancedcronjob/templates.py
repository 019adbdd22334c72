"""The templates in a raw AdvancedCronJob: which are there, and the pod template inside (advancedcronjob.md §2.1)."""

from typing import Any

from flotilla_common.api.admission.plain import decoded
from flotilla_common.api.documents import Json, is_object, mapping, member
from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.meta import Model, ObjectMeta

JOB, BROADCAST, IMAGES = "jobTemplate", "broadcastJobTemplate", "imageListPullJobTemplate"
ALL = (JOB, BROADCAST, IMAGES)
OF_PODS = (JOB, BROADCAST)
"""Those with a pod template; they never change."""


class _JobSpec(Model):
    template: dict[str, Any] = {}


class _JobTemplate(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSpec = _JobSpec()


_TYPES: dict[str, type[Model]] = {JOB: _JobTemplate, BROADCAST: BroadcastJob, IMAGES: ImageListPullJob}


def given(spec: Json) -> list[str]:
    """The names of the templates that are there."""
    templates = member(spec, "template")
    return [name for name in ALL if templates.get(name) is not None]


def check_templates(spec: Json) -> None:
    """Raise ValueError if a template cannot be read."""
    for name in given(spec):
        try:
            decoded(member(spec, "template", name), _TYPES[name])
        except ValueError as fault:
            raise ValueError(f"spec.template.{name}: {fault}") from fault


def pod_template(spec: Json) -> tuple[str, Json] | None:
    """Where the pod template stands, and itself; None where pods are not made directly."""
    name = next((name for name in OF_PODS if name in given(spec)), None)
    if name is None:
        return None
    template = member(spec, "template", name, "spec").get("template")
    return f"spec.template.{name}.spec.template", template if is_object(template) else {}


def restart_policy(pod: Json) -> object:
    """Of the pods of a template."""
    return mapping(pod.get("spec")).get("restartPolicy")
