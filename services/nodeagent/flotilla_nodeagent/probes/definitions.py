"""Parses the probes of a NodePodProbe, within limits and with reasons for those that the agent does not run.

Anyone who may write NodePodProbes decides what an agent runs, so nothing in one is trusted. A probe reaches its own pod
and no other place: `host` and a `Host` header are refused here, even if admission let them pass (podprobemarker.md §3).
"""

import hashlib
import re
from collections.abc import Iterator

import msgspec

from flotilla_common.api.kinds.nodepodprobe.types import (
    PROBE_BYTES,
    PROBES_PER_NODE,
    PROBES_PER_POD,
    ExecAction,
    HttpAction,
    NodePodProbeSpec,
    NodeProbe,
    PodProbe,
    ProbeSpec,
    TcpAction,
)
from flotilla_common.api.numbers import integer

MOST_SECONDS = 1 << 31
"""Limit of periods and timeouts, the largest number in the API."""

_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

_decode = msgspec.json.Decoder(ProbeSpec).decode


class Exec(msgspec.Struct, frozen=True, tag="exec"):
    """A command in the container."""

    command: tuple[str, ...]


class HttpGet(msgspec.Struct, frozen=True, tag="http"):
    """A GET request to the pod."""

    path: str
    port: int
    secure: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class TcpSocket(msgspec.Struct, frozen=True, tag="tcp"):
    """A connection to the pod."""

    port: int


Handler = Exec | HttpGet | TcpSocket

Key = tuple[str, str]
"""Key of a probe: the uid of its pod, and its name."""


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One probe of one container. Times are whole seconds."""

    namespace: str
    pod: str
    uid: str
    ip: str
    container: str
    name: str
    handler: Handler | None = None
    refused: str = ""  # why the agent does not run it, which becomes its result
    problem: str = ""  # why it cannot be carried out; it has no result then
    delay: int = 1
    timeout: int = 1
    period: int = 1
    successes: int = 1
    failures: int = 1

    @property
    def key(self) -> Key:
        """Return the key of the probe on the node: the uid of its pod, and its name."""
        return self.uid, self.name


class ProbeRejected(Exception):
    """The agent does not run such a probe; the text gives the reason."""


class Impossible(Exception):
    """The probe is incomplete and cannot be carried out; the text names the missing part."""


def read_probes(spec: NodePodProbeSpec) -> tuple[dict[Key, Probe], int]:
    """Return the probes to run by key, and the number of those over the limits of the pod or the node."""
    probes: dict[Key, Probe] = {}
    of_pod: dict[str, int] = {}
    left_out = 0
    for pod in spec.pod_probes:
        for probe in pod.probes:
            if (pod.uid, probe.name) in probes:
                continue
            if of_pod.get(pod.uid, 0) >= PROBES_PER_POD or len(probes) >= PROBES_PER_NODE:
                left_out += 1
                continue
            of_pod[pod.uid] = of_pod.get(pod.uid, 0) + 1
            probes[pod.uid, probe.name] = _probe(pod, probe)
    return probes, left_out


def digest(handler: Handler | None) -> str:
    """Return a digest of the handler that is stable between processes."""
    return hashlib.sha256(msgspec.json.encode(handler)).hexdigest()[:16]


def _probe(pod: PodProbe, probe: NodeProbe) -> Probe:
    spec, handler, refused, problem = ProbeSpec(), None, "", ""
    try:
        spec = _read(probe.probe)
        handler = _handler(spec)
    except ProbeRejected as error:
        refused = str(error)
    except Impossible as error:
        problem = str(error)
    return Probe(
        namespace=pod.namespace,
        pod=pod.name,
        uid=pod.uid,
        ip=pod.ip,
        container=probe.container_name,
        name=probe.name,
        handler=handler,
        refused=refused,
        problem=problem,
        delay=_number(spec.initial_delay_seconds),
        timeout=_number(spec.timeout_seconds),
        period=_number(spec.period_seconds),
        successes=_number(spec.success_threshold),
        failures=_number(spec.failure_threshold),
    )


def _read(raw: msgspec.Raw) -> ProbeSpec:
    if len(raw) > PROBE_BYTES:
        raise ProbeRejected(f"the probe is longer than {PROBE_BYTES} bytes")
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProbeRejected(f"the probe cannot be read: {error}") from error


def _number(value: int) -> int:
    return max(1, min(value, MOST_SECONDS))


def _handler(spec: ProbeSpec) -> Handler:
    if spec.exec is not None:
        return _exec(spec.exec)
    if spec.http_get is not None:
        return _http(spec.http_get)
    if spec.tcp_socket is not None:
        return _tcp(spec.tcp_socket)
    raise Impossible("the probe has no handler that is supported")


def _exec(action: ExecAction) -> Exec:
    if not action.command:
        raise Impossible("the probe has no command")
    return Exec(tuple(action.command))


def _http(action: HttpAction) -> HttpGet:
    if action.host:
        raise ProbeRejected("host field in probes is not allowed")
    scheme = action.scheme.lower() or "http"
    if scheme not in {"http", "https"}:
        raise ProbeRejected(f"unsupported protocol scheme {scheme[:20]!r}")
    return HttpGet(action.path, _port(action.port), scheme == "https", tuple(_headers(action)))


def _headers(action: HttpAction) -> Iterator[tuple[str, str]]:
    for header in action.http_headers:
        if header.name.strip().lower() == "host":
            raise ProbeRejected("a Host header in probes is not allowed")
        if not _HEADER_NAME.fullmatch(header.name):
            raise ProbeRejected(f"invalid header field name {header.name[:64]!r}")
        if _CONTROL.search(header.value):
            raise ProbeRejected(f"invalid header field value for {header.name[:64]!r}")
        yield header.name, header.value


def _tcp(action: TcpAction) -> TcpSocket:
    if action.host:
        raise ProbeRejected("host field in probes is not allowed")
    return TcpSocket(_port(action.port))


def _port(port: int | str) -> int:
    number = port if isinstance(port, int) else integer(port)
    if number is None or not 0 < number < 65536:
        raise Impossible(f"no port {str(port)[:64]!r}")
    return number
