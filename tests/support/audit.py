"""The apiserver's audit log: all writes with their clients, independent of Flotilla's own counts."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import yaml

WRITES = ("create", "update", "patch", "delete", "deletecollection")
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
    "rules": [{"level": "Metadata", "verbs": list(WRITES)}, {"level": "None"}],
}
OURS = "kruise-manager/"
"""Prefix of the user agents of Flotilla's services."""


class Reference(msgspec.Struct, frozen=True, rename="camel"):
    """The object of a request."""

    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class _Response(msgspec.Struct, frozen=True):
    code: int = 0


class Write(msgspec.Struct, frozen=True, rename="camel"):
    """One write, refused ones included."""

    verb: str
    request_uri: str = msgspec.field(default="", name="requestURI")
    user_agent: str = ""
    object_ref: Reference = Reference()
    response_status: _Response = _Response()

    @property
    def ours(self) -> bool:
        """Report whether Flotilla made the write, and not as a dry run."""
        return self.user_agent.startswith(OURS) and "dryRun=" not in self.request_uri

    @property
    def what(self) -> str:
        """Return verb, resource and subresource: `patch pods/status`."""
        reference = self.object_ref
        return f"{self.verb} {reference.resource}{'/' * bool(reference.subresource)}{reference.subresource}"


class AuditLog:
    """The audit log of one apiserver."""

    def __init__(self, folder: Path) -> None:
        self._policy = folder / "audit-policy.yaml"
        self._log = folder / "audit.log"
        self._policy.write_text(yaml.safe_dump(POLICY), encoding="utf-8")
        self._read = 0

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the flags that the apiserver needs for the log."""
        return (
            f"--audit-policy-file={self._policy}",
            f"--audit-log-path={self._log}",
            "--audit-log-mode=blocking-strict",  # a write is in the log before its client has the answer
        )

    def ours(self) -> list[Write]:
        """Return Flotilla's writes since the last call."""
        return [write for write in self._new() if write.ours]

    def _new(self) -> Iterator[Write]:
        with self._log.open("rb") as log:
            log.seek(self._read)
            lines = log.readlines()
        for line in lines:
            if line.endswith(b"\n"):
                self._read += len(line)
                yield msgspec.json.decode(line, type=Write)


def on(writes: Iterable[Write], *resources: str) -> list[Write]:
    """Return the writes to these resources."""
    return [write for write in writes if write.object_ref.resource in resources]


def said(writes: list[Write]) -> str:
    """Count the writes by verb and resource, for messages of failures."""
    return str(Counter(write.what for write in writes))
