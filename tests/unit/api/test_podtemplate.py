"""The canonical form of pod templates.

`podtemplate_vectors.json` was made by decoding each template into, and encoding it from, the Go types of k8s.io/api
v0.36.3, with the `creationTimestamp: null` put back that these newer types omit.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.podtemplate import canonical_object, canonical_template

VECTORS = json.loads(Path(__file__).with_name("podtemplate_vectors.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_as_go_writes_it(vector: dict[str, Any]) -> None:
    canonical = canonical_template(json.dumps(vector["template"]).encode())
    assert canonical == vector["canonical"]
    assert canonical_template(json.dumps(canonical).encode()) == canonical


def test_members_come_in_the_order_of_the_types() -> None:
    claim = b'{"resources":{"requests":{"storage":"1Gi"}},"volumeMode":"Block","accessModes":["ReadWriteOnce"]}'
    assert list(canonical_object("PersistentVolumeClaimSpec", claim)) == ["accessModes", "resources", "volumeMode"]


@pytest.mark.parametrize(
    "template",
    [
        b"[]",
        b"1",
        b"{",
        b'{"spec":[]}',
        b'{"spec":{"containers":{}}}',
        b'{"spec":{"hostNetwork":"yes"}}',
        b'{"spec":{"priority":true}}',
        b'{"spec":{"priority":1.5}}',
        b'{"metadata":{"labels":{"a":1}}}',
        b'{"spec":{"containers":[{"resources":{"limits":{"cpu":"much"}}}]}}',
        b'{"spec":{"containers":[{"livenessProbe":{"tcpSocket":{"port":[]}}}]}}',
    ],
)
def test_wrong_types_are_refused(template: bytes) -> None:
    with pytest.raises(ValueError, match=r"not JSON|should be of type|is not a quantity"):
        canonical_template(template)


TEXT = st.text("aZ0-<\u2028\n", max_size=4)
CONTAINERS = st.fixed_dictionaries(
    {"name": TEXT},
    optional={
        "image": st.none() | TEXT,
        "env": st.none() | st.lists(st.fixed_dictionaries({"name": TEXT}, optional={"value": TEXT}), max_size=2),
        "resources": st.none() | st.fixed_dictionaries({"limits": st.dictionaries(TEXT, st.integers(0, 5000))}),
        "stdin": st.booleans(),
        "securityContext": st.none() | st.fixed_dictionaries({}, optional={"privileged": st.booleans()}),
        "unknown": st.integers(),
    },
)
TEMPLATES = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.none() | st.fixed_dictionaries({"labels": st.none() | st.dictionaries(TEXT, TEXT)}),
        "spec": st.fixed_dictionaries({"containers": st.lists(CONTAINERS, max_size=3)}),
    },
)


@given(TEMPLATES)
def test_canonical_of_canonical_is_itself(template: dict[str, Any]) -> None:
    once = canonical_template(json.dumps(template).encode())
    assert canonical_template(json.dumps(once).encode()) == once
