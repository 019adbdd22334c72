"""Defaults of a BroadcastJob (broadcastjob.md §3.1). The status needs nothing: the apiserver drops it, as it is a
subresource."""

import copy

from flotilla_common.api.admission.pod_template import default_templates
from flotilla_common.api.documents import Json, ensured, fill
from flotilla_common.api.kinds.broadcastjob.types import ALWAYS, FAIL_FAST, UNLIMITED
from flotilla_common.gates import Gates


def default_broadcast_job(document: Json, old: Json | None, gates: Gates) -> Json:
    """The document with defaults filled in, as a new document. `old` is the stored object of an update."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    default_templates(spec, old, gates)
    _fill_type(ensured(spec, "completionPolicy"), ALWAYS)
    fill(spec, parallelism=UNLIMITED)
    _fill_type(ensured(spec, "failurePolicy"), FAIL_FAST)
    return defaulted


def _fill_type(policy: Json, default: str) -> None:
    policy["type"] = policy.get("type") or default
