"""Validation of a PodProbeMarker (podprobemarker.md §3). Paths carry no list index.

Some faults end the validation where they are found: the rest of the object is not checked.
"""

import re
from collections.abc import Iterator, Set
from urllib.parse import urlsplit

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, forbidden, invalid, not_supported, required
from flotilla_common.api.documents import Json, JsonValue, mapping, mappings, member, sequence, strings, text, typed
from flotilla_common.api.kinds.nodepodprobe.types import FAILED, SUCCEEDED
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import Selector, key_problem, value_problem

RESERVED_NAMES = frozenset(
    {"PodScheduled", "Initialized", "Ready", "ContainersReady", "KruisePodReady", "InPlaceUpdateReady"}
)
"""Names that no probe may have: they are types of conditions."""

ANNOTATIONS_SIZE = 256 << 10
"""The most bytes of all annotations of an object, as the apiserver counts them."""

_PROBES, _PROBE, _POLICY = "spec.probes", "spec.probe", "spec.markerPolicy"
_STATES = (SUCCEEDED, FAILED)
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES = ("HTTP", "HTTPS")
_NO_HOST = "host field in probes is not allowed"
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_NO_HEADER = "a valid HTTP header must consist of alphanumeric characters or '-'"
_PORT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_LONGEST_PORT_NAME = 15
_LAST_PORT = 65535


class _LastFault(Exception):
    """Carries the fault after which validation ends."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def validate(document: Json, old: Json | None) -> list[Fault]:
    """Return all faults of a PodProbeMarker. `old` is the stored object of an update."""
    spec = mapping(document.get("spec"))
    faults = [*_selector_faults(spec)]
    if old is not None and _selector_of(spec) != _selector_of(mapping(old.get("spec"))):
        faults.append(invalid("selector", spec.get("selector"), "selector must be immutable"))
    try:
        faults.extend(_probes_faults(mappings(spec.get("probes"))))
    except _LastFault as last:
        faults.append(last.fault)
    return faults


def _selector_of(spec: Json) -> LabelSelector | None:
    try:
        return typed(spec.get("selector") or {}, LabelSelector)
    except ValueError:
        return None


def _selector_faults(spec: Json) -> Iterator[Fault]:
    path, written, selector = "spec.selector", spec.get("selector"), _selector_of(spec)
    if selector is None or not (selector.match_labels or selector.match_expressions):
        yield invalid(path, written, "empty selector is not valid for podProbeMarker.")
        return
    try:
        Selector.compile(selector)
    except ValueError as problem:
        yield invalid(path, written, str(problem))


def _probes_faults(probes: list[Json]) -> Iterator[Fault]:
    """Yield the faults of the probes. Raises _LastFault."""
    if not probes:
        raise _LastFault(invalid(_PROBES, probes, "empty probes is not valid for podProbeMarker."))
    _check_names(probes)
    types: set[str] = set()
    for probe in probes:
        yield from _handler_faults(member(probe, "probe"))
        yield from _type_faults(probe, types)
        yield from _policy_faults(mappings(probe.get("markerPolicy")))


def _check_names(probes: list[Json]) -> None:
    """Raise _LastFault for the first invalid name."""
    seen: set[str] = set()
    for probe in probes:
        name, container = text(probe.get("name")), text(probe.get("containerName"))
        problems = {
            "probe name can't contains '#'.": "#" in name,
            "probe name can't be empty in podProbeMarker.": not name,
            "probe containerName can't be empty in podProbeMarker.": not container,
            f"probe name can't be {name}, which is the type of a condition of every pod.": name in RESERVED_NAMES,
            "duplicated probe name in podProbeMarker.": name in seen,
        }
        for problem, holds in problems.items():
            if holds:
                raise _LastFault(invalid(_PROBES, name or container, problem))
        seen.add(name)


def _type_faults(probe: Json, before: set[str]) -> Iterator[Fault]:
    """Yield the fault of podConditionType, and add it to those `before`. Raises _LastFault."""
    kind = text(probe.get("podConditionType"))
    if not kind and not sequence(probe.get("markerPolicy")):
        detail = "podConditionType and markerPolicy cannot be empty at the same time"
        raise _LastFault(invalid(_PROBES, text(probe.get("name")), detail))
    if not kind:
        return
    if kind in before:
        raise _LastFault(invalid(_PROBES, kind, "duplicated podConditionType in podProbeMarker."))
    before.add(kind)
    if problem := key_problem(kind):
        yield invalid("spec", kind, problem)


def _handler_faults(probe: Json) -> Iterator[Fault]:
    checks = {"exec": _exec_faults, "httpGet": _http_faults, "tcpSocket": _tcp_faults}
    found = 0
    for handler, faults_of in checks.items():
        if probe.get(handler) is None:
            continue
        found += 1
        if found > 1:
            yield forbidden(f"{_PROBE}.{handler}", "may not specify more than 1 handler type")
        else:
            yield from faults_of(member(probe, handler))
    if not found:
        yield required(_PROBE, "must specify a handler type")
    elif probe.get("grpc") is not None:
        yield forbidden(f"{_PROBE}.grpc", "may not specify more than 1 handler type")
    for name in _NUMBERS:
        number = probe.get(name)
        if isinstance(number, int) and number < 0:
            yield invalid(f"{_PROBE}.{name}", number, NON_NEGATIVE)


def _exec_faults(action: Json) -> Iterator[Fault]:
    if not sequence(action.get("command")):
        yield required(f"{_PROBE}.exec.command")


def _tcp_faults(action: Json) -> Iterator[Fault]:
    path = f"{_PROBE}.tcpSocket"
    yield from _port_faults(f"{path}.port", action.get("port"))
    if host := action.get("host"):
        yield invalid(f"{path}.host", host, _NO_HOST)


def _http_faults(action: Json) -> Iterator[Fault]:
    path = f"{_PROBE}.httpGet"
    asked, scheme = text(action.get("path")), text(action.get("scheme"))
    if not asked:
        yield required(f"{path}.path")
    elif problem := _path_problem(asked):
        yield invalid(f"{path}.path", asked, problem)
    yield from _port_faults(f"{path}.port", action.get("port"))
    if host := action.get("host"):
        yield invalid(f"{path}.host", host, _NO_HOST)
    for header in mappings(action.get("httpHeaders")):
        yield from _header_faults(f"{path}.httpHeaders", header)
    if scheme not in _SCHEMES:
        yield not_supported(f"{path}.scheme", scheme, _SCHEMES)


def _path_problem(asked: str) -> str:
    if _CONTROL.search(asked):
        return "invalid control character in URL"
    if _BAD_ESCAPE.search(asked):
        return "invalid URL escape"
    if ":" in asked.partition("/")[0]:
        return "first path segment in URL cannot contain colon"
    try:
        urlsplit(asked)
    except ValueError as problem:
        return str(problem)
    return ""


def _header_faults(path: str, header: Json) -> Iterator[Fault]:
    name, value = text(header.get("name")), text(header.get("value"))
    if not _HEADER.fullmatch(name):
        yield invalid(path, name, _NO_HEADER)
    elif name.lower() == "host":  # a rule of our own: the probe would reach another virtual host
        yield invalid(path, name, "host header in probes is not allowed")
    if _CONTROL.search(value):
        yield invalid(path, value, "the value of a header must not contain control characters")


def _port_faults(path: str, port: JsonValue) -> Iterator[Fault]:
    if isinstance(port, str):
        if problem := _port_name_problem(port):
            yield invalid(path, port, problem)
    elif not isinstance(port, int) or not 1 <= port <= _LAST_PORT:
        yield invalid(path, port, f"must be between 1 and {_LAST_PORT}, inclusive")


def _port_name_problem(name: str) -> str:
    if len(name) > _LONGEST_PORT_NAME:
        return f"must be no more than {_LONGEST_PORT_NAME} characters"
    if not _PORT_NAME.fullmatch(name):
        return "must contain only alphanumeric characters (a-z, 0-9), and hyphens (-), but not at its ends"
    if "--" in name:
        return "must not contain consecutive hyphens"
    return "" if any(letter.isalpha() for letter in name) else "must contain at least one letter (a-z)"


def _policy_faults(policies: list[Json]) -> Iterator[Fault]:
    """Yield the faults of the policies of one probe. Raises _LastFault."""
    states: set[str] = set()
    for policy in policies:
        state = text(policy.get("state"))
        yield from _state_faults(state, states)
        states.add(state)
        labels, annotations = strings(policy.get("labels")), strings(policy.get("annotations"))
        if not labels and not annotations:
            yield required(_POLICY, "podProbeMarker annotations, or labels can't be both empty")
        for key, value in labels.items():
            if problem := key_problem(key) or value_problem(value):
                yield invalid(f"{_POLICY}.labels", key, problem)
        yield from _annotation_faults(annotations)


def _state_faults(state: str, before: Set[str]) -> Iterator[Fault]:
    """Yield the fault of a policy's state. Raises _LastFault."""
    if state in before:
        raise _LastFault(invalid(_POLICY, state, "duplicated state in the markerPolicy of a probe"))
    if state not in _STATES:
        yield required(f"{_POLICY}.state", "podProbeMarker.markerPolicy.state must be 'Succeeded' or 'Failed'")


def _annotation_faults(annotations: dict[str, str]) -> Iterator[Fault]:
    path = f"{_POLICY}.annotations"
    for key in annotations:
        if problem := key_problem(key.lower()):
            yield invalid(path, key, problem)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_SIZE:
        yield Fault(path, f"Too long: may not be more than {ANNOTATIONS_SIZE} bytes")
