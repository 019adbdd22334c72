"""The changes of an apply, without values that may be secret."""

from flotilla_common.api.documents import Json
from flotilla_insight.preview.dryrun import LAST_APPLIED
from flotilla_insight.preview.report import changes_of


def sample(**container: object) -> Json:
    return {
        "metadata": {"name": "web", "labels": {"a": "1"}, "annotations": {"note": "one", LAST_APPLIED: "{}"}},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "main", **container}]}}},
    }


def told(before: Json, after: Json) -> list[tuple[str, object, object, bool]]:
    return [(one.path, one.before, one.after, one.hidden) for one in changes_of(before, after)]


def test_fields_are_named_with_their_values():
    before, after = sample(image="nginx:1"), sample(image="nginx:2")
    after["spec"]["replicas"] = 2
    after["metadata"]["labels"] = {"b": "2"}
    assert told(before, after) == [
        ("metadata.labels.a", "1", None, False),
        ("metadata.labels.b", None, "2", False),
        ("spec.replicas", 1, 2, False),
        ("spec.template.spec.containers[main].image", "nginx:1", "nginx:2", False),
    ]


def test_what_may_be_secret_is_only_named():
    before = sample(env=[{"name": "A", "value": "one"}], args=["--x"])
    after = sample(env=[{"name": "A", "value": "two"}], args=["--y"])
    after["metadata"]["annotations"] = {"note": "two"}
    assert told(before, after) == [
        ("metadata.annotations.note", None, None, True),
        ("spec.template.spec.containers[main].args[0]", None, None, True),
        ("spec.template.spec.containers[main].env[A].value", None, None, True),
    ]


def test_nothing_secret_hides_in_a_new_value():
    after = sample()
    after["spec"]["template"]["spec"]["initContainers"] = [
        {"name": "i", "image": "i:1", "env": [{"name": "A", "value": "x"}]}
    ]
    (change,) = changes_of(sample(), after)
    assert change.after == [{"name": "i", "image": "i:1", "env": "…"}]


def test_the_annotation_of_kubectl_is_no_change():
    after = sample()
    after["metadata"]["annotations"] = after["metadata"]["annotations"] | {LAST_APPLIED: "{…}"}
    after["status"] = {"replicas": 3}
    assert changes_of(sample(), after) == ()
