"""JSON from users: garbage and depth are ValueErrors, wherever it is parsed."""

import sys
from collections.abc import Callable, Iterator

import msgspec
import pytest

from flotilla_common.api.documents import Json
from flotilla_common.api.jsontext import DEEPEST, Reader, is_too_deep, read_as_deep_as_the_apiserver, read_json
from flotilla_common.api.kinds.persistentpodstate.types import WHITE_LIST, custom_workloads
from flotilla_common.api.kinds.sidecarset.pods import patched_annotations, records
from flotilla_common.api.kinds.sidecarset.types import MERGE_PATCH_JSON, PatchPodMetadata
from flotilla_common.api.podtemplate import canonical_template
from flotilla_common.workload.placement import Placement
from flotilla_common.workload.revision_codec import canonical_template_data
from flotilla_common.workload.strict_placement import StrictPlacement


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def merged(text: str) -> object:
    entry = PatchPodMetadata(annotations={"a": text}, patch_policy=MERGE_PATCH_JSON)
    return patched_annotations({"a": "{}"}, [entry])


READERS: list[Callable[[str], object]] = [
    records,
    merged,
    lambda text: read_json(text, Json),
    lambda text: custom_workloads({WHITE_LIST: text}),
    lambda text: canonical_template(f'{{"spec":{text}}}'.encode()),
    lambda text: canonical_template_data(text.encode()),
    lambda text: Placement.of_daemons(text.encode()),
    lambda text: StrictPlacement.of(text.encode()),
]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("text", [deep(150), deep(1_000), deep(50_000), "[" * 100_000, "{"])
def test_what_cannot_be_read_is_a_value_error(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(text)


def test_what_is_written_in_earnest_is_read() -> None:
    flat = msgspec.json.encode([{"a": [index]} for index in range(1_000)])
    assert len(read_json(flat, list[Json])) == 1_000
    assert Reader(dict[str, int]).read('{"a": 1}') == {"a": 1}
    assert not is_too_deep(msgspec.json.decode(deep(DEEPEST - 1)))
    assert is_too_deep(msgspec.json.decode(deep(DEEPEST + 1)))


@pytest.fixture
def recursion_limit() -> Iterator[None]:
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("recursion_limit")
def test_processes_decode_whatever_the_apiserver_stores() -> None:
    read_as_deep_as_the_apiserver()
    document = msgspec.json.decode(f'{{"b": 1, "c": {deep(9_990)}}}', type=dict[str, msgspec.Raw])
    assert bytes(document["b"]) == b"1"
    assert is_too_deep(msgspec.json.decode(deep(9_990)))
