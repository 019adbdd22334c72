"""What a pod remembers of the SidecarSets that it was injected with (sidecarset.md §6.10, §6.13)."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from flotilla_common.api.documents import Json, strings, text
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import (
    SIDECAR_SET_HASH,
    SIDECAR_SET_HASH_WITHOUT_IMAGE,
    SIDECAR_SET_INJECTED,
    SIDECAR_SET_WORKING_CONTAINER,
    SIDECAR_VERSION,
    SIDECAR_VERSION_ALT,
)
from flotilla_common.api.kinds.sidecarset.names import is_hot
from flotilla_common.api.kinds.sidecarset.records import Record, injected, injected_list, records, written
from flotilla_webhook.injection.source import Source


def marks(annotations: Mapping[str, str], sources: Sequence[Source], now: str) -> dict[str, str]:
    """The annotations to set. `now` as RFC 3339, in UTC. Raises ValueError for records that cannot be read."""
    full: dict[str, Record] = {}
    without: dict[str, Record] = {}
    for source in sources:
        hash_, plain = source.hashes
        revision = source.revision or msgspec.UNSET
        full[source.name] = _record(source, hash_, now, revision)
        without[source.name] = _record(source, plain, now, msgspec.UNSET)
    names = [*injected(annotations), *(source.name for source in sources)]
    return {
        SIDECAR_SET_HASH: _merged(annotations.get(SIDECAR_SET_HASH, ""), full),
        SIDECAR_SET_HASH_WITHOUT_IMAGE: _merged(annotations.get(SIDECAR_SET_HASH_WITHOUT_IMAGE, ""), without),
        SIDECAR_SET_INJECTED: injected_list(names),
    }


def hot_marks(annotations: Mapping[str, str], containers: Iterable[Json]) -> dict[str, str]:
    """The annotations of containers that were injected as two: the first one works, at version 1. Raises ValueError for
    those of earlier ones that cannot be read."""
    hot = [text(one.get("name")) for one in containers if is_hot(one)]
    if not hot:
        return {}
    held = annotations.get(SIDECAR_SET_WORKING_CONTAINER)
    working = strings(read_json(held, object)) if held else {}
    working |= {name: f"{name}-1" for name in hot}
    made = {SIDECAR_SET_WORKING_CONTAINER: msgspec.json.encode(working, order="sorted").decode()}
    for name in hot:
        for number, (version, other) in ((1, ("1", "0")), (2, ("0", "1"))):
            made[f"{SIDECAR_VERSION}{name}-{number}"] = version
            made[f"{SIDECAR_VERSION_ALT}{name}-{number}"] = other
    return made


def _record(source: Source, hash_: str, now: str, revision: str | msgspec.UnsetType) -> Record:
    return Record(
        update_timestamp=now,
        hash=hash_,
        sidecar_set_name=source.name,
        sidecar_list=source.listed,
        controller_revision=revision,
    )


def _merged(held: str, new: Mapping[str, Record]) -> str:
    """The annotation's value with the new records. One that says the same already keeps its time, so that a pod that is
    seen for the second time stays as it is."""
    known = records(held)
    for name, record in new.items():
        before = known.get(name)
        if before is None or msgspec.structs.replace(before, update_timestamp=record.update_timestamp) != record:
            known[name] = record
    return written(known)
