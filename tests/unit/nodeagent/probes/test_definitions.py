"""The definitions in a NodePodProbe: read within limits, and refused with reasons (podprobemarker.md §2.2 and §3)."""

import msgspec
import pytest

from flotilla_common.api.kinds.nodepodprobe.types import PROBE_BYTES, PROBES_PER_NODE, PROBES_PER_POD, NodePodProbeSpec
from flotilla_nodeagent.probes.definitions import Exec, HttpGet, Probe, TcpSocket, digest, read_probes
from tests.testkit.documents import decoded


def spec(*probes: object, pods: int = 1) -> NodePodProbeSpec:
    """Return a spec that gives each pod these probes: JSON texts or documents."""
    written = [one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in probes]
    of_pod = [
        {"name": f"m#{n}", "containerName": "game", "probe": msgspec.Raw(one.encode())} for n, one in enumerate(written)
    ]
    listed = [
        {"name": f"p{n}", "namespace": "ns", "uid": f"u{n}", "IP": "10.0.0.1", "probes": of_pod} for n in range(pods)
    ]
    return decoded({"podProbes": listed}, NodePodProbeSpec)


def read(probe: object) -> Probe:
    return next(iter(read_probes(spec(probe))[0].values()))


def test_a_probe_with_everything() -> None:
    found = read(
        {
            "exec": {"command": ["sh", "-c", "true"]},
            "initialDelaySeconds": 5,
            "timeoutSeconds": 2,
            "periodSeconds": 3,
            "successThreshold": 4,
            "failureThreshold": 6,
            "grpc": {"port": 1},
        }
    )
    assert found == Probe(
        namespace="ns",
        pod="p0",
        uid="u0",
        ip="10.0.0.1",
        container="game",
        name="m#0",
        handler=Exec(("sh", "-c", "true")),
        delay=5,
        timeout=2,
        period=3,
        successes=4,
        failures=6,
    )


@pytest.mark.parametrize(
    ("probe", "handler"),
    [
        ({"httpGet": {"port": 80}}, HttpGet("", 80)),
        ({"httpGet": {"port": "8080", "path": "/a", "scheme": "HTTPS"}}, HttpGet("/a", 8080, True)),
        (
            {"httpGet": {"port": 80, "httpHeaders": [{"name": "A", "value": "b\tc"}, {"name": "A", "value": ""}]}},
            HttpGet("", 80, False, (("A", "b\tc"), ("A", ""))),
        ),
        ({"tcpSocket": {"port": 65535}}, TcpSocket(65535)),
        ({"tcpSocket": {"port": 1}, "exec": {"command": ["a"]}}, Exec(("a",))),
    ],
)
def test_handlers(probe: object, handler: object) -> None:
    assert read(probe).handler == handler


@pytest.mark.parametrize(
    ("probe", "why"),
    [
        ({"tcpSocket": {"port": 1, "host": "10.0.0.9"}}, "host field"),
        ({"httpGet": {"port": 1, "host": "localhost"}}, "host field"),
        ({"httpGet": {"port": 1, "scheme": "FILE"}}, "protocol scheme"),
        *(
            ({"httpGet": {"port": 1, "httpHeaders": [{"name": name, "value": "x"}]}}, "Host header")
            for name in ("Host", "host", "HOST", " hOst ", "host\r\n", "Host\t")
        ),
        *(
            ({"httpGet": {"port": 1, "httpHeaders": [{"name": name, "value": "x"}]}}, "header field name")
            for name in ("", "a b", "a:b", "a\r\nHost: x", "Hos\u0074\u0131", "H\x00")
        ),
        *(
            ({"httpGet": {"port": 1, "httpHeaders": [{"name": "A", "value": value}]}}, "header field value")
            for value in ("a\r\nHost: b", "a\nb", "\x00", "\x7f", "a\rb")
        ),
        ('{"exec": {"command": null}}', "cannot be read"),
        ('{"periodSeconds": "soon"}', "cannot be read"),
        ("null", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"exec": {"command": ["' + "x" * PROBE_BYTES + '"]}}', "longer than"),
        ('{"x": ' + "[" * 15_000 + "]" * 15_000 + "}", "cannot be read"),
    ],
)
def test_refused(probe: object, why: str) -> None:
    found = read_deep(probe) if isinstance(probe, str) else read(probe)
    assert why in found.refused
    assert found.handler is None


def read_deep(text: str) -> Probe:
    """Read a probe as it is in memory: a deep one does not pass the reader of copies."""
    given = spec({})
    one = msgspec.structs.replace(given.pod_probes[0].probes[0], probe=msgspec.Raw(text.encode()))
    pod = msgspec.structs.replace(given.pod_probes[0], probes=[one])
    return next(iter(read_probes(NodePodProbeSpec(pod_probes=[pod]))[0].values()))


@pytest.mark.parametrize(
    ("probe", "why"),
    [
        ({}, "no handler"),
        ({"grpc": {"port": 1}}, "no handler"),
        ({"exec": {}}, "no command"),
        *(({"tcpSocket": {"port": port}}, "no port") for port in (0, -1, 65536, 10**30, "http", "", "1e3", "٣")),
    ],
)
def test_what_cannot_be_carried_out(probe: object, why: str) -> None:
    found = read(probe)
    assert why in found.problem
    assert (found.handler, found.refused) == (None, "")


@pytest.mark.parametrize(("given", "read_as"), [(0, 1), (-5, 1), (7, 7), (10**30, 1 << 31)])
def test_numbers(given: int, read_as: int) -> None:
    assert read({"exec": {"command": ["a"]}, "timeoutSeconds": given}).timeout == read_as


def test_a_pod_has_no_more_than_its_share() -> None:
    probe = {"exec": {"command": ["a"]}}
    found, left_out = read_probes(spec(*[probe] * (PROBES_PER_POD + 3), pods=2))
    assert [name for uid, name in found if uid == "u0"] == [f"m#{n}" for n in range(PROBES_PER_POD)]
    assert (len(found), left_out) == (2 * PROBES_PER_POD, 6)


def test_nor_has_the_node() -> None:
    found, left_out = read_probes(spec({"exec": {"command": ["a"]}}, pods=PROBES_PER_NODE + 5))
    assert (len(found), left_out) == (PROBES_PER_NODE, 5)


def test_the_digest_is_that_of_the_handler() -> None:
    assert digest(Exec(("a",))) == digest(Exec(("a",))) != digest(Exec(("b",)))
    assert digest(TcpSocket(1)) != digest(HttpGet("", 1))
    assert digest(None) == digest(None)
