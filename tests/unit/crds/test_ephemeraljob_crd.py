"""The CRD of EphemeralJob: names, columns, fields (ephemeraljob.md §1, §2)."""

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.ephemeraljob.kind import KIND
from tests.unit.crds.test_crds import walk

SPEC = definition(KIND)["spec"]
(VERSION,) = SPEC["versions"]
COLUMNS = [
    ("STATUS", "string", ".status.phase"),
    ("MATCH", "integer", ".status.match"),
    ("SUCCEED", "integer", ".status.succeeded"),
    ("FAILED", "integer", ".status.failed"),
    ("RUNNING", "integer", ".status.running"),
    ("WAITING", "integer", ".status.waiting"),
    ("AGE", "date", ".metadata.creationTimestamp"),
]


def test_names_scope_and_version():
    assert SPEC["names"] == {
        "kind": "EphemeralJob",
        "listKind": "EphemeralJobList",
        "plural": "ephemeraljobs",
        "singular": "ephemeraljob",
        "shortNames": ["ejob"],
    }
    assert (SPEC["group"], SPEC["scope"], SPEC["conversion"]) == ("apps.kruise.io", "Namespaced", {"strategy": "None"})
    assert (VERSION["name"], VERSION["served"], VERSION["storage"]) == ("v1alpha1", True, True)
    assert VERSION["subresources"] == {"status": {}}


def test_columns():
    columns = VERSION["additionalPrinterColumns"]
    assert [(one["name"], one["type"], one["jsonPath"]) for one in columns] == COLUMNS


def test_fields():
    known = dict(walk(VERSION["schema"]["openAPIV3Schema"]))
    assert known[".spec"]["required"] == ["selector", "template"]
    assert known[".spec.template"]["required"] == ["ephemeralContainers"]
    assert known[".spec.template.ephemeralContainers[]"]["x-kubernetes-preserve-unknown-fields"] is True
    assert [path for path, node in known.items() if {"enum", "minimum", "maximum", "default"} & node.keys()] == []
