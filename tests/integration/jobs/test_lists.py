"""ImageListPullJobs as users run them (imagepull.md §7, examples 41 to 47)."""

import json

from tests.integration.jobs.conftest import PullSpace
from tests.support.fake_agents import FAIL
from tests.testkit.documents import Json


def images(*names: str, **spec: object) -> Json:
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ImageListPullJob",
        "metadata": {"name": "list"},
        "spec": {"images": list(names), "parallelism": 4, **spec},
    }


def children(space: PullSpace) -> dict[str, str]:
    """Return the names of the list's jobs by image."""
    items = space.read("imagepulljobs")["items"]
    return {item["spec"]["image"]: item["metadata"]["name"] for item in items}


def done(space: PullSpace, **fields: object) -> Json:
    return space.done("list", "ImageListPullJob", **fields)


def test_a_job_per_image(space: PullSpace):
    space.apply(images("a:1", "b:1"))
    status = done(space, desired=2, succeeded=2, completed=2)
    assert "completionTime" in status
    header, line = space.kubectl("get", "imagelistpulljob").splitlines()
    assert header.split() == ["NAME", "TOTAL", "SUCCEEDED", "COMPLETED", "AGE"]
    assert line.split()[:4] == ["list", "2", "2", "2"]
    made = space.read("imagepulljobs")["items"]
    assert {item["metadata"]["ownerReferences"][0]["kind"] for item in made} == {"ImageListPullJob"}
    assert all(item["metadata"]["name"].startswith("list-") for item in made)
    space.until(lambda: ("Normal", "Successful create ImagePullJob", "Create 2 ImagePullJob") in said(space))
    assert "a:1" in space.flotilla("get", "imagelistpulljob", "list")


def said(space: PullSpace) -> set[tuple[str, str, str]]:
    items = space.read("events", "--field-selector=involvedObject.kind=ImageListPullJob")["items"]
    return {(item["type"], item["reason"], item["message"]) for item in items}


def test_a_changed_list_keeps_what_it_still_wants(space: PullSpace):
    space.apply(images("a:2", "b:2", completionPolicy={"type": "Never"}))
    done(space, completed=2)
    before = children(space)
    space.apply(images("a:2", "c:2", completionPolicy={"type": "Never"}))
    space.until(lambda: children(space).keys() == {"a:2", "c:2"})
    assert children(space)["a:2"] == before["a:2"]
    done(space, completed=2, desired=2)
    assert "completionTime" not in space.job("list", "ImageListPullJob")


def test_failures_and_the_end_of_a_list(space: PullSpace):
    space.agents.answers[space.nodes[0], "bad:1"] = FAIL
    space.apply(images("good:1", "bad:1", completionPolicy={"ttlSecondsAfterFinished": 2}))
    status = done(space, completed=2, succeeded=1)
    assert [failure["name"] for failure in status["failedImageStatuses"]] == ["bad:1"]
    assert "completionTime" in status
    space.until(lambda: not space.seen("ImageListPullJob", "list") and not children(space), 40)
    space.until(lambda: all("good:1" not in space.tags(node) for node in space.nodes))


def test_refusals(space: PullSpace):
    assert "images cannot have duplicate values" in space.refuses(text(images("a", "a")), "apply")
    assert "image can not be empty" in space.refuses(text(images()), "apply")
    bad = images("a", parallelism="50%")
    assert "parallelism does not support percentage value" in space.refuses(text(bad), "apply")


def text(document: Json) -> str:
    return json.dumps(document)
