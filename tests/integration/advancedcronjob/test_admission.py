"""AdvancedCronJobs as kubectl writes and reads them (advancedcronjob.md §1 to §3).

Covers the words of refusals, allowed edits, both versions, and columns.
"""

import json

from tests.support.cron import NAME, YEARLY, broadcasts, cronjob, jobs, lists
from tests.support.workspace import Workspace
from tests.testkit.documents import Json

ONLY = "updates to advancedcronjob spec for fields other than"


def idle(template: Json | None = None, schedule: str = YEARLY, **arguments: object) -> Json:
    """Return an AdvancedCronJob that is not due."""
    return cronjob(jobs() if template is None else template, schedule, **arguments)


def test_refusals(space: Workspace):
    """Rows 21, 22, 24 and 29."""
    rows: list[tuple[Json, str]] = [
        (idle(schedule="0 0 * * 7"), "spec.schedule: Invalid value"),
        (idle(schedule="@reboot", version="v1alpha1"), "spec.schedule: Invalid value"),
        (idle(timeZone="Mars/One"), "unknown time zone"),
        (idle(concurrencyPolicy="Sometimes"), 'Unsupported value: "Sometimes"'),
        (idle({}), "spec must have one template"),
    ]
    for document, message in rows:
        assert message in space.refuses(document), document


def test_refusals_of_image_lists(space: Workspace):
    """Rows 30 and 31."""
    said = space.refuses(idle(lists("nginx:1", "nginx:1")))
    assert "spec.template.imageListPullJobTemplate.spec" in said
    said = space.refuses(idle(lists("nginx:1"), concurrencyPolicy="Allow"))
    assert "concurrencyPolicy should be Replace or Forbid" in said


def test_what_may_be_edited(space: Workspace):
    """Rows 27 and 28."""
    space.apply(idle())
    changes: dict[str, object] = {
        "timeZone": "Europe/Berlin",
        "startingDeadlineSeconds": 9,
        "concurrencyPolicy": "Forbid",
        "paused": True,
        "failedJobsHistoryLimit": 7,
    }
    spec = space.patch({"spec": changes}, NAME)["spec"]
    assert changes.items() <= spec.items()
    other = {"jobTemplate": {"spec": {"parallelism": 2}}}
    said = space.refused("patch", "acj", NAME, "--type=merge", "-p", body(other))
    assert "spec: Forbidden" in said
    assert ONLY in said
    switched = {"jobTemplate": None} | broadcasts()
    assert ONLY in space.refused("patch", "acj", NAME, "--type=merge", "-p", body(switched))
    space.kubectl("delete", "acj", NAME)
    space.apply(idle(lists("nginx:1")))
    edited = space.apply(idle(lists("nginx:2")))["spec"]
    assert edited["template"]["imageListPullJobTemplate"]["spec"]["images"] == ["nginx:2"]
    assert edited["concurrencyPolicy"] == "Replace"


def body(template: Json) -> str:
    return json.dumps({"spec": {"template": template}})


def test_defaults_in_both_versions(space: Workspace):
    space.apply(idle(broadcasts(), version="v1alpha1"))
    old, new = (space.read(f"advancedcronjobs.{version}.apps.kruise.io", NAME) for version in ("v1alpha1", "v1beta1"))
    assert old["spec"] == new["spec"]
    spec = new["spec"]
    assert (spec["concurrencyPolicy"], spec["paused"]) == ("Allow", False)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    made = spec["template"]["broadcastJobTemplate"]["spec"]
    assert made["template"]["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert "parallelism" not in made
    assert space.apply(idle(broadcasts()))["metadata"]["generation"] == 1


def test_image_lists_in_the_older_version(space: Workspace):
    """Lists are unknown there: the template looks empty.

    An object that was read can be written back; without it there is no template (docs/adr/0034).
    """
    space.apply(idle(lists("nginx:1")))
    version = "advancedcronjobs.v1alpha1.apps.kruise.io"
    old = space.write_back(version, NAME, lambda read: read["spec"].update(schedule="@monthly"))
    assert old["spec"]["template"] == {}
    assert len(space.read(version)["items"]) == 1
    new = space.read("acj", NAME)["spec"]
    assert new["template"]["imageListPullJobTemplate"]["spec"]["images"] == ["nginx:1"]
    assert new["schedule"] == "@monthly"
    del old["metadata"]["annotations"], old["metadata"]["resourceVersion"]
    assert "spec must have one template" in space.refuses(old, "replace")


def test_columns_and_words(space: Workspace):
    space.apply(idle(schedule="0 9 1 1 *", template=broadcasts()))
    space.until(lambda: space.clone(NAME).get("status", {}).get("type") == "BroadcastJob")
    for word in ("acj", "advancedcronjob", "advancedcronjobs.v1alpha1.apps.kruise.io"):
        header, line = space.kubectl("get", word).splitlines()
        assert header.split() == ["NAME", "SCHEDULE", "TYPE", "LASTSCHEDULETIME", "AGE"]
        assert line.split()[:7] == [NAME, "0", "9", "1", "1", "*", "BroadcastJob"]
        assert len(line.split()) == 8  # never run
    assert "seconds" in space.kubectl("explain", "acj.spec.startingDeadlineSeconds").lower()
