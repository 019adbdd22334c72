"""Admission of NodeImages, ImagePullJobs and ImageListPullJobs (imagepull.md §3, examples 5, 22, 24, 25, 40, 48)."""

from typing import Any

import pytest

from flotilla_common.api.admission.review import Answer
from tests.testkit.admission import KindAdmission, applied, written
from tests.testkit.documents import Json


async def ask(verb: str, document: Json, old: Json | None = None, gates: str = "") -> Answer:
    """Return the answer of the webhook of the object's kind."""
    return await KindAdmission(document["kind"].lower(), gates=gates).handle(verb, written(document, old, ""))


def job(version: str = "v1beta1", **spec: Any) -> Json:
    given = {"image": "nginx:1.25"} | spec
    meta = {"name": "j", "namespace": "n"}
    return {"apiVersion": f"apps.kruise.io/{version}", "kind": "ImagePullJob", "metadata": meta, "spec": given}


def list_job(**spec: Any) -> Json:
    given = {"images": ["nginx:1.25"]} | spec
    return job() | {"kind": "ImageListPullJob", "spec": given}


def node_image(images: Json, **rest: Any) -> Json:
    meta = {"name": "n1"}
    whole = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "NodeImage", "metadata": meta, "spec": {"images": images}}
    return whole | rest


def result(document: Json, answer: Answer) -> Json:
    """Return the document with the answer's patch."""
    assert answer.allowed, answer.message
    return applied(document, answer)


DEFAULTS = {
    "completionPolicy": {"type": "Always"},
    "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3},
    "imagePullPolicy": "IfNotPresent",
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, DEFAULTS, id="everything"),
        pytest.param({"completionPolicy": None, "pullPolicy": None}, DEFAULTS, id="null is absent"),
        pytest.param(
            {
                "completionPolicy": {"type": "Never"},
                "pullPolicy": {"timeoutSeconds": 0, "backoffLimit": 0},
                "imagePullPolicy": "Always",
            },
            {
                "completionPolicy": {"type": "Never"},
                "pullPolicy": {"timeoutSeconds": 0, "backoffLimit": 0},
                "imagePullPolicy": "Always",
            },
            id="what is set stays",
        ),
    ],
)
async def test_defaults_of_a_job(given: Json, expected: Json):
    document = job(**given)
    mutated = result(document, await ask("mutate", document))
    assert mutated["spec"] == {"image": "nginx:1.25"} | expected
    assert "finalizers" not in mutated["metadata"]
    again = await ask("mutate", mutated)
    assert not again.patch


@pytest.mark.parametrize(
    ("version", "updating", "finalizers"),
    [("v1alpha1", False, ["apps.kruise.io/deletion-protection"]), ("v1alpha1", True, None), ("v1beta1", False, None)],
)
async def test_finalizer_of_a_job(version: str, updating: bool, finalizers: list[str] | None):
    document = job(version)
    mutated = result(document, await ask("mutate", document, document if updating else None))
    assert mutated["metadata"].get("finalizers") == finalizers


async def test_defaults_of_a_list():
    document = list_job()
    mutated = result(document, await ask("mutate", document))
    expected = {key: value for key, value in DEFAULTS.items() if key != "imagePullPolicy"}
    assert mutated["spec"] == {"images": ["nginx:1.25"]} | expected


async def test_defaults_of_a_node_image():
    document = node_image(
        {"nginx": {"tags": [{"tag": "b", "createdAt": "2025-01-01T00:00:00Z"}, {"tag": "a", "pullPolicy": {}}]}},
        status={"desired": 2, "imageStatuses": {"nginx": {"tags": [{"tag": "b"}, {"tag": "a"}]}}},
    )
    mutated = result(document, await ask("mutate", document))
    limits = {"timeoutSeconds": 600, "backoffLimit": 3}
    assert mutated["spec"]["images"]["nginx"]["tags"] == [
        {"tag": "a", "createdAt": "2026-01-01T00:00:00Z", "pullPolicy": limits},
        {"tag": "b", "createdAt": "2025-01-01T00:00:00Z", "pullPolicy": limits},
    ]
    assert [tag["tag"] for tag in mutated["status"]["imageStatuses"]["nginx"]["tags"]] == ["a", "b"]


ALWAYS_600 = {"type": "Always", "activeDeadlineSeconds": 600}
BOTH_SELECTORS = "can not set both names and labelSelector in this spec.selector"
SELECTION = [
    pytest.param({"selector": {"names": ["a"], "matchLabels": {"a": "b"}}}, BOTH_SELECTORS, id="names and labels"),
    pytest.param(
        {"selector": {"names": ["a"], "matchExpressions": [{"key": "a", "operator": "Exists"}]}},
        BOTH_SELECTORS,
        id="names and expressions",
    ),
    pytest.param({"selector": {"names": []}}, "", id="no names"),
    pytest.param({"selector": {}}, "", id="empty selector"),
    pytest.param({"selector": {"names": ["a", "b"]}}, "", id="names"),
    pytest.param({"selector": {"matchLabels": {"a b": ""}}}, "invalid selector: ", id="bad selector"),
    pytest.param({"selector": {"names": ["a", "a"]}}, "duplicated name in selector names", id="duplicated name"),
    pytest.param(
        {"selector": {}, "podSelector": {}}, "can not set both selector and podSelector", id="both kinds of selector"
    ),
    pytest.param(
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
        "invalid podSelector: ",
        id="bad podSelector",
    ),
    pytest.param({"parallelism": 0}, "", id="paused"),
    pytest.param({"parallelism": "4"}, "", id="example 5: a number as text"),
    pytest.param({"parallelism": "50%"}, "parallelism does not support percentage value", id="example 5: percentage"),
    pytest.param({"parallelism": "four"}, "parallelism must be a valid integer: ", id="no number"),
    pytest.param({"parallelism": "4294967296"}, "parallelism must be a valid integer: ", id="too large"),
    pytest.param({"parallelism": -1}, "parallelism must be non-negative", id="negative"),
    pytest.param({"parallelism": "-1"}, "parallelism must be non-negative", id="negative text"),
    pytest.param(
        {"completionPolicy": {"type": "Never", "ttlSecondsAfterFinished": 10}},
        "activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always CompletionPolicyType",
        id="example 25",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Never", "activeDeadlineSeconds": 10}},
        "activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always CompletionPolicyType",
        id="Never with a deadline",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Perhaps"}}, "unknown type of completionPolicy: Perhaps", id="unknown type"
    ),
    pytest.param({"completionPolicy": ALWAYS_600}, "", id="example 24: equal to the timeout"),
    pytest.param(
        {"completionPolicy": ALWAYS_600 | {"activeDeadlineSeconds": 599}},
        "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(default 600)",
        id="example 24: below the timeout",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 60}, "pullPolicy": {"timeoutSeconds": 60}},
        "",
        id="a shorter timeout",
    ),
]


@pytest.mark.parametrize(("spec", "problem"), SELECTION)
async def test_rules_of_both_kinds_of_jobs(spec: Json, problem: str):
    for answer in (await ask("validate", job(**spec)), await ask("validate", list_job(**spec))):
        assert answer.allowed == (not problem), answer.message
        assert answer.message.startswith(problem)
        assert answer.code == (400 if problem else 200)


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        ("", "image can not be empty"),
        ("Nginx", "invalid image Nginx: "),
        ("a b", "invalid image a b: "),
        ("reg.example/a@sha256:" + "0" * 64, ""),
    ],
)
async def test_image(image: str, problem: str):
    answer = await ask("validate", job(image=image))
    assert (answer.allowed, answer.message[: len(problem)]) == (not problem, problem)


@pytest.mark.parametrize(
    ("images", "problem"),
    [
        ([], "image can not be empty"),
        (["a", "a"], "images cannot have duplicate values"),
        ([f"a{number}" for number in range(256)], "the maximum number of images cannot > 255"),
        ([f"a{number}" for number in range(255)], ""),
        (["a", "B"], "invalid image B: "),
        pytest.param(["nginx", "nginx:latest"], "", id="example 48"),
    ],
)
async def test_images_of_a_list(images: list[str], problem: str):
    answer = await ask("validate", list_job(images=images))
    assert (answer.allowed, answer.message[: len(problem)]) == (not problem, problem)


async def test_a_list_that_is_there_stays_writable_although_its_jobs_are_refused():
    document = list_job(completionPolicy={"type": "Always", "activeDeadlineSeconds": 5})
    assert not (await ask("validate", document)).allowed
    assert (await ask("validate", document, document)).allowed


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        pytest.param(["s1"], ["s2"], False, id="example 22"),
        pytest.param(["s1"], None, False, id="removed"),
        pytest.param(None, [], True, id="empty is none"),
        pytest.param(["s1"], ["s1"], True, id="the same"),
    ],
)
async def test_pull_secrets_are_immutable(old: list[str] | None, new: list[str] | None, allowed: bool):
    answer = await ask("validate", job(pullSecrets=new or []), job(pullSecrets=old or []))
    assert answer.allowed == allowed
    if not allowed:
        assert (answer.code, answer.reason, answer.message) == (403, "Forbidden", "spec.pullSecrets is immutable")
    assert (await ask("validate", list_job(pullSecrets=new or []), list_job())).allowed


@pytest.mark.parametrize(
    ("gates", "node_images", "jobs"),
    [
        ("", "", ""),
        ("KruiseDaemon=false", "KruiseDaemon", "KruiseDaemon"),
        ("ImagePullJobGate=false", "", "ImagePullJobGate"),
    ],
)
async def test_gates(gates: str, node_images: str, jobs: str):
    for answer, gate in (
        (await ask("validate", node_image({}), gates=gates), node_images),
        (await ask("validate", job(), job(), gates), jobs),
        (await ask("validate", list_job(), gates=gates), jobs),
    ):
        assert answer.allowed == (not gate)
        if gate:
            assert (answer.code, answer.message) == (403, f"feature-gate {gate} is not enabled")


TAG = {"tag": "1", "createdAt": "2026-01-01T00:00:00Z", "pullPolicy": {"ttlSecondsAfterFinished": 1}}


@pytest.mark.parametrize(
    ("images", "problem"),
    [
        pytest.param({"nginx": {"tags": [TAG, TAG | {"tag": "2"}]}}, "", id="good"),
        pytest.param(
            {f"i{number}": {"tags": []} for number in range(257)},
            "spec.images cannot have more than 256 images",
            id="example 40",
        ),
        pytest.param({"": {"tags": []}}, "image name cannot be empty", id="no image name"),
        pytest.param({"a": {"tags": [TAG | {"tag": ""}]}}, "invalid image a: tag cannot be empty", id="empty tag"),
        pytest.param({"a": {"tags": [TAG, TAG]}}, "invalid image a: duplicated tag 1", id="tag twice"),
        pytest.param(
            {"a": {"tags": [TAG | {"createdAt": None}]}}, "invalid image a: tag 1: createdAt", id="no creation time"
        ),
        pytest.param({"a": {"tags": [TAG | {"version": -1}]}}, "invalid image a: tag 1: version", id="version"),
        pytest.param({"a": {"tags": [TAG | {"pullPolicy": None}]}}, "invalid image a: tag 1: pullPolicy", id="policy"),
        pytest.param(
            {"a": {"tags": [TAG | {"pullPolicy": {}}]}},
            "invalid image a: tag 1: pullPolicy.ttlSecondsAfterFinished must be set",
            id="no TTL",
        ),
    ],
)
async def test_rules_of_node_images(images: Json, problem: str):
    answer = await ask("validate", node_image(images))
    assert answer.allowed == (not problem)
    assert answer.message.startswith(problem)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(job(selector=["a"]), id="selector is a list"),
        pytest.param(job() | {"apiVersion": "apps.kruise.io/v2"}, id="unknown version"),
        pytest.param(job(image=5), id="image is a number"),
    ],
)
async def test_unreadable_objects_are_refused(document: Json):
    answer = await ask("mutate", document)
    assert (answer.allowed, answer.code) == (False, 400)
