"""The pod that a SidecarSet's containers and volumes would make, for the apiserver to judge (docs/adr/0002)."""

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.tools import Verdict
from flotilla_common.api.documents import Json, mapping, mappings, sequence
from flotilla_common.api.kinds.sidecarset.canonical import SIDECAR_MEMBERS

_STAND_IN = {"name": "flotilla-stands-in-for-the-pods-own", "image": "none"}
"""A pod has a container; a SidecarSet may have init containers alone."""

_TEMPLATE = "spec.template"
_JUDGED = ("containers", "initContainers", "volumes")


def judged_again(document: Json, old: Json | None) -> bool:
    """Whether there is something new to judge. What is stored stays writable when the apiserver gets stricter."""
    spec, before = mapping(document.get("spec")), mapping(old.get("spec")) if old else {}
    return old is None or any(spec.get(name) != before.get(name) for name in _JUDGED)


def pod_template(spec: Json) -> Json:
    """The template, from a spec with its defaults."""
    containers, init = ([_bare(one) for one in mappings(spec.get(name))] for name in ("containers", "initContainers"))
    pod = {"containers": containers or [_STAND_IN], "initContainers": init, "volumes": sequence(spec.get("volumes"))}
    return {"spec": pod | {"restartPolicy": "Always"}}


def in_words_of_the_set(verdict: Verdict) -> Verdict:
    """The verdict with the paths of the SidecarSet."""
    faults = [Fault(_own_path(fault.path), fault.body) for fault in verdict.faults]
    return Verdict(faults, [_own_path(path) for path in verdict.dropped])


def _bare(sidecar: Json) -> Json:
    return {key: value for key, value in sidecar.items() if key not in SIDECAR_MEMBERS}


def _own_path(path: str) -> str:
    """`spec.template.spec.volumes` is `spec.volumes`; what is said of the template as a whole is said of the spec."""
    rest = path.removeprefix(_TEMPLATE).removeprefix(".spec")
    return f"spec{rest}" if path.startswith(_TEMPLATE) else path
