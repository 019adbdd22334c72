"""Formats a run line by line: time, writer, change, and the new values of fields.

12.031  cloneset-0   update pods web-x2k9d   spec.containers[main].image=two metadata.labels.…state=Updating
"""

from collections.abc import Iterable, Iterator, Mapping

from flotilla_common.api.changes import changed_paths
from flotilla_common.api.resources import EVENT, LEASE, POD, REVISION
from flotilla_common.control.plan import Json
from tests.simulation.history import Call, History, Version
from tests.simulation.oracles.paths import at

_DULL = (
    "metadata.annotations.lifecycle",
    "status.hostIP",
    "status.podIP",
    "status.startTime",
    "status.conditions[Cont",
)


def format_history(history: History, since: int = 0, marks: Mapping[float, str] | None = None) -> Iterator[str]:
    """Yield lines for the versions from number `since` on, failed writes, and `marks` (texts by time), in order."""
    versions = history.versions[since:]
    began = versions[0].at if versions else 0.0
    failed = [call for call in history.calls if call.outcome != "ok" and call.verb != "watch" and call.until >= began]
    lines = [*_versions(versions), *((call.until, _call(call)) for call in failed)]
    lines += [(at, f">>> {text}") for at, text in (marks or {}).items()]
    return (f"{at:9.3f}  {text}" for at, text in sorted(lines, key=lambda line: line[0]))


def _versions(versions: Iterable[Version]) -> Iterator[tuple[float, str]]:
    for version in versions:
        if version.resource == EVENT or (version.resource == LEASE and not _holder_changed(version)):
            continue
        yield (
            version.at,
            f"{version.writer:12} {version.verb} {version.resource.plural} {version.name}  {_what(version)}",
        )


def _call(call: Call) -> str:
    what = f"{call.verb} {call.resource.plural} {call.name}"
    return f"{call.writer:12} {what}: {call.outcome}{' (but it took effect)' if call.revision else ''}"


def _what(version: Version) -> str:
    before, after = version.before, version.after
    if before is None and after is not None:
        return _born(version, after)
    if before is None or after is None:
        return ""
    paths = [path for path in changed_paths(before, after) if not path.startswith(_DULL)]
    return " ".join(f"{_short(path)}={at(after, path)}" for path in paths)


def _born(version: Version, document: Json) -> str:
    if version.resource == POD:
        revision = document["metadata"].get("labels", {}).get("controller-revision-hash", "")
        return f"image={document['spec']['containers'][0]['image']} revision={revision}"
    return f"revision={document.get('revision')}" if version.resource == REVISION else ""


def _holder_changed(version: Version) -> bool:
    before = (version.before or {}).get("spec", {}).get("holderIdentity")
    return before != (version.after or {}).get("spec", {}).get("holderIdentity")


def _short(path: str) -> str:
    return path.removeprefix("metadata.").removeprefix("status.conditions")
