"""What an update of an AdvancedCronJob must not change (advancedcronjob.md §3.3): a template of Jobs or BroadcastJobs.

Clients written in Go leave out what is empty and write what was left out, so templates are compared as they are meant.
"""

import copy
from collections.abc import Iterator

import msgspec

from flotilla_common.api.admission.fields import Fault, forbidden
from flotilla_common.api.documents import Json, JsonValue, is_object, mapping, member
from flotilla_common.api.kinds.advancedcronjob.templates import IMAGES, OF_PODS
from flotilla_common.api.podtemplate import canonical_template

_MUTABLE = (
    "schedule",
    "timeZone",
    "startingDeadlineSeconds",
    "concurrencyPolicy",
    "paused",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
    IMAGES,
)
_QUOTED = ", ".join(f"'{name}'" for name in _MUTABLE)
_IMMUTABLE = f"updates to advancedcronjob spec for fields other than {_QUOTED} are forbidden"


def change_faults(spec: Json, old: Json) -> Iterator[Fault]:
    """The fault of a change of what stays as it is."""
    new, before = mapping(spec.get("template")), mapping(old.get("template"))
    switched = (new.get(IMAGES) is None) != (before.get(IMAGES) is None)
    if switched or any(_meaning(new.get(name)) != _meaning(before.get(name)) for name in OF_PODS):
        yield forbidden("spec", _IMMUTABLE)


def _meaning(template: JsonValue) -> JsonValue:
    if not is_object(template):
        return None
    rest = copy.deepcopy(template)
    pod = member(rest, "spec").pop("template", None)
    return {"job": _without_empty(rest), "pod": _canonical(pod)}


def _canonical(pod: JsonValue) -> JsonValue:
    try:
        return canonical_template(msgspec.json.encode(pod))
    except ValueError:  # an admission would refuse it; it is only equal to itself
        return pod


def _without_empty(value: JsonValue) -> JsonValue:
    """Without what says nothing. A number of 0 says something in all places but one."""
    if not is_object(value):
        return value
    kept = {key: _without_empty(item) for key, item in value.items()}
    return {
        key: item
        for key, item in kept.items()
        if item not in (None, False, "", [], {}) or (item == 0 and item is not False and key != "restartLimit")
    }
