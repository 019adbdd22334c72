"""Validation of AdvancedCronJobs: each line of advancedcronjob.md §3.2 and §3.3 is a row, with Kubernetes' wording."""

import copy
from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.kinds.advancedcronjob.api import default_cron_job
from flotilla_common.api.kinds.advancedcronjob.validation import check_types, validate
from flotilla_common.gates import Gates
from tests.testkit.documents import Json
from tests.unit.admission.test_advancedcronjob_defaults import BROADCAST, JOB, PULLS, cron_job
from tests.unit.workload import openkruise

NOT_NEGATIVE = "must be greater than or equal to 0"
BOTH_ZONES = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
EXPLICIT = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
ONE_OF = "one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate"


def stored(template: Json, **spec: Any) -> Json:
    """Return an object with its defaults."""
    return default_cron_job(cron_job(template, **spec), None, Gates.parse(""))


def texts(document: Json, old: Json | None = None, name: str = "a") -> list[str]:
    return [str(fault) for fault in validate(document, name, old)]


@pytest.mark.parametrize("template", [JOB, BROADCAST, PULLS], ids=["Job", "BroadcastJob", "ImageListPullJob"])
def test_plain_ones_are_valid(template: Json) -> None:
    assert texts(stored(template)) == []


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param("my.job", "must consist of alphanumeric characters or '-'", id="a dot"),
        pytest.param("a" * 64, "must be no more than 63 characters", id="too long"),
        pytest.param("a" * 60, "", id="row 36"),
    ],
)
def test_names(name: str, fault: str) -> None:
    found = texts(stored(BROADCAST), name=name)
    assert found == ([f'metadata.name: Invalid value: "{name}": {fault}'] if fault else [])


SCHEDULES = ["0 0 * * 7", "* * * *", "* * * * * *", "@reboot", "*/0 * * * *", "TZ=Asia/Tokyo", "TZ=Mars/One 0 0 * * *"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_unparsable_schedules_row_24(schedule: str) -> None:
    (fault,) = texts(stored(JOB, schedule=schedule))
    assert fault.startswith(f'spec.schedule: Invalid value: "{schedule}": ')


@pytest.mark.parametrize("schedule", ["0 9 * * ?", "@every 90s", "CRON_TZ=Asia/Tokyo 0 9 * * ?", "0 0 1 * 1", "@daily"])
def test_schedules(schedule: str) -> None:
    assert texts(stored(JOB, schedule=schedule)) == []


def test_an_empty_schedule_is_two_faults() -> None:
    own, parsers = texts(stored(JOB, schedule=""))
    assert own.startswith('spec.schedule: Invalid value: "": schedule cannot be empty')
    assert parsers.startswith('spec.schedule: Invalid value: "": ')


SPEC_ROWS = [
    pytest.param(
        {"schedule": "TZ=Asia/Tokyo 0 9 * * ?", "timeZone": "Asia/Tokyo"},
        [f'spec.schedule: Invalid value: "TZ=Asia/Tokyo 0 9 * * ?": {BOTH_ZONES}'],
        id="two zones, row 21",
    ),
    pytest.param({"timeZone": "Asia/Tokyo"}, [], id="a zone"),
    pytest.param(
        {"timeZone": ""},
        ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'],
        id="empty zone, row 22",
    ),
    pytest.param({"timeZone": "local"}, [f'spec.timeZone: Invalid value: "local": {EXPLICIT}'], id="local, row 22"),
    pytest.param(
        {"timeZone": "Mars/One"},
        ["spec.timeZone: Invalid value: \"Mars/One\": unknown time zone 'Mars/One'"],
        id="no zone, row 22",
    ),
    *(
        pytest.param({name: -1}, [f"spec.{name}: Invalid value: -1: {NOT_NEGATIVE}"], id=name)
        for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    ),
    pytest.param({"startingDeadlineSeconds": 0, "successfulJobsHistoryLimit": 0}, [], id="zeros"),
]


@pytest.mark.parametrize(("spec", "expected"), SPEC_ROWS)
def test_spec(spec: Json, expected: list[str]) -> None:
    assert texts(stored(JOB, **spec)) == expected


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        pytest.param({}, f"spec must have one template: {ONE_OF}", id="none, row 29"),
        pytest.param({"jobTemplate": None}, f"spec must have one template: {ONE_OF}", id="null is none"),
        pytest.param(JOB | BROADCAST, f"spec can have only one template: {ONE_OF}", id="two, row 29"),
        pytest.param(JOB | BROADCAST | PULLS, f"spec can have only one template: {ONE_OF}", id="three"),
    ],
)
def test_one_template(template: Json, fault: str) -> None:
    assert texts(stored(template)) == [f"spec.template: Forbidden: {fault}"]


def test_lists_of_images_do_not_overlap_row_30() -> None:
    detail = "concurrencyPolicy should be Replace or Forbid with imageListPullJobTemplate"
    path = "spec.spec.concurrencyPolicy"
    assert texts(stored(PULLS, concurrencyPolicy="Allow")) == [f'{path}: Invalid value: "Allow": {detail}']
    assert texts(stored(PULLS, concurrencyPolicy="Forbid")) == []
    assert stored(PULLS)["spec"]["concurrencyPolicy"] == "Replace"


BAD_LABEL = {"matchLabels": {"a/b/c": "d"}}
EXISTS = {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}
PULL_ROWS = [
    pytest.param(
        {"selector": {"names": ["n"], "matchLabels": {"a": "b"}}, "images": []},
        "selector",
        "can not set both names and labelSelector",
        id="1: names and labels",
    ),
    pytest.param({"selector": {"names": ["n", "n"]} | BAD_LABEL}, "selector", "can not set both", id="1 before 2"),
    pytest.param({"selector": BAD_LABEL}, "selector", "invalid selector: ", id="2: labels"),
    pytest.param({"selector": {"names": ["n", "n"]}}, "selector", "duplicated name", id="3: a name twice"),
    pytest.param({"selector": {}, "podSelector": {}}, "selector", "can not set both selector and", id="4: both"),
    pytest.param({"podSelector": EXISTS, "images": []}, "selector", "invalid podSelector: ", id="5: labels of pods"),
    pytest.param({"images": [], "completionPolicy": {}}, "images", "image can not be empty", id="6: no images"),
    pytest.param({"images": ["i"] * 256}, "images", "the maximum number of images cannot > 255", id="7: too many"),
    pytest.param({"images": ["i", "i"]}, "images", "images cannot have duplicate values", id="8: an image twice"),
    pytest.param({"images": ["i", "A:b:c"]}, "images", "invalid image A:b:c", id="9: no image"),
    pytest.param(
        {"completionPolicy": {"type": "Never", "ttlSecondsAfterFinished": 1}},
        "completionPolicy",
        "type must be Always",
        id="10: never ends",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 90000}},
        "completionPolicy",
        "activeDeadlineSeconds must be less than or equal to 86400",
        id="11: more than a day",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 10}, "pullPolicy": {"timeoutSeconds": 11}},
        "completionPolicy",
        "activeDeadlineSeconds must be greater than or equal to pullPolicy.timeoutSeconds",
        id="12: less than one try",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 0}},
        "completionPolicy",
        "ttlSecondsAfterFinished is not supported",
        id="13: ttl",
    ),
]


@pytest.mark.parametrize(("given", "member", "fault"), PULL_ROWS)
def test_the_first_fault_of_a_list_of_images(given: Json, member: str, fault: str) -> None:
    template = copy.deepcopy(PULLS)
    template["imageListPullJobTemplate"]["spec"] |= given
    (found,) = validate(cron_job(template, concurrencyPolicy="Forbid"), "a")
    assert found.path == f"spec.template.imageListPullJobTemplate.spec.{member}"
    assert fault in found.body


@pytest.mark.parametrize("deadline", [600, 86400])
def test_deadlines_of_lists(deadline: int) -> None:
    policy = {"type": "Always", "activeDeadlineSeconds": deadline}
    spec = {"images": ["i:1"], "completionPolicy": policy, "pullPolicy": {"timeoutSeconds": 600}}
    assert texts(stored({"imageListPullJobTemplate": {"spec": spec}})) == []


def test_order() -> None:
    spec = {"schedule": "x", "timeZone": "local", "startingDeadlineSeconds": -1, "concurrencyPolicy": "Allow"}
    pulls = {"imageListPullJobTemplate": {"spec": {"images": []}}}
    judged = [Fault("spec.template.spec.containers", "Required value")]
    faults = validate(cron_job(JOB | pulls, **spec), "a.b", stored(JOB), judged)
    assert [fault.path for fault in faults] == [
        "metadata.name",
        "spec.schedule",
        "spec.timeZone",
        "spec.startingDeadlineSeconds",
        "spec.template",
        "spec.template.spec.containers",
        "spec.spec.concurrencyPolicy",
        "spec.template.imageListPullJobTemplate.spec.images",
        "spec",
    ]


FORBIDDEN = (
    "spec: Forbidden: updates to advancedcronjob spec for fields other than 'schedule', 'timeZone', "
    "'startingDeadlineSeconds', 'concurrencyPolicy', 'paused', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit', "
    "'imageListPullJobTemplate' are forbidden"
)


def edited(template: Json, name: str, /, **spec: Any) -> Json:
    changed = copy.deepcopy(template)
    changed[name]["spec"] |= spec
    return changed


POD = {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(JOB, edited(JOB, "jobTemplate", template=POD), id="an image of a Job, row 27"),
        pytest.param(JOB, edited(JOB, "jobTemplate", backoffLimit=0), id="a number of a Job"),
        pytest.param(JOB, {"jobTemplate": JOB["jobTemplate"] | {"metadata": {"labels": {"a": "b"}}}}, id="its labels"),
        pytest.param(
            BROADCAST, edited(BROADCAST, "broadcastJobTemplate", template=POD), id="an image of a BroadcastJob, row 27"
        ),
        pytest.param(BROADCAST, edited(BROADCAST, "broadcastJobTemplate", parallelism=0), id="its parallelism"),
        pytest.param(
            BROADCAST,
            edited(BROADCAST, "broadcastJobTemplate", completionPolicy={"ttlSecondsAfterFinished": 0}),
            id="its end",
        ),
        pytest.param(JOB, BROADCAST, id="another kind"),
        pytest.param(PULLS, JOB, id="another kind than images"),
        pytest.param(BROADCAST, PULLS, id="another kind, images"),
    ],
)
def test_what_never_changes(before: Json, after: Json) -> None:
    assert texts(stored(after), stored(before)) == [FORBIDDEN]


NEW = {
    "schedule": "@daily",
    "timeZone": "Asia/Tokyo",
    "startingDeadlineSeconds": 5,
    "concurrencyPolicy": "Forbid",
    "paused": True,
    "successfulJobsHistoryLimit": 7,
    "failedJobsHistoryLimit": 7,
}


@pytest.mark.parametrize("template", [JOB, BROADCAST, PULLS], ids=["Job", "BroadcastJob", "ImageListPullJob"])
def test_what_may_change(template: Json) -> None:
    assert texts(stored(template, **NEW), stored(template)) == []


def test_lists_of_images_may_change_row_28() -> None:
    changed = edited(PULLS, "imageListPullJobTemplate", images=["i:2"], parallelism=3)
    assert texts(stored(changed), stored(PULLS)) == []


def test_a_list_that_an_old_client_does_not_see_cannot_be_written_back() -> None:
    seen = stored({}) | {"apiVersion": "apps.kruise.io/v1alpha1"}
    faults = texts(seen, seen | {"spec": stored(PULLS)["spec"]})
    assert faults == [f"spec.template: Forbidden: spec must have one template: {ONE_OF}", FORBIDDEN]


EQUAL = [
    pytest.param({"metadata": None, "spec": {}}, id="no metadata"),
    pytest.param({"spec": {"paused": False, "failurePolicy": None, "completionPolicy": {"type": ""}}}, id="zeros"),
    pytest.param({"spec": {"failurePolicy": {"restartLimit": 0}}}, id="a limit of 0"),
]


@pytest.mark.parametrize("written", EQUAL)
def test_what_go_clients_leave_out_is_no_change(written: Json) -> None:
    (old,) = openkruise.documents("advancedcronjobs")
    new = copy.deepcopy(old)
    template = new["spec"]["template"]["broadcastJobTemplate"]
    template |= written | {"spec": template["spec"] | written["spec"]}
    pod = template["spec"]["template"]
    del pod["metadata"]["creationTimestamp"]
    pod["spec"] |= {"hostNetwork": False, "nodeName": ""}
    pod["spec"]["containers"][0] |= {"resources": None, "stdin": False}
    assert template["spec"]["completionPolicy"] is not None
    new["spec"]["paused"] = True
    if "completionPolicy" in written["spec"]:
        template["spec"]["completionPolicy"] = {"ttlSecondsAfterFinished": 300, "type": "Always"}
    assert texts(new, old) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"paused": "yes"},
        {"schedule": 5},
        {"template": {"jobTemplate": {"spec": "x"}}},
        {"template": {"jobTemplate": {"spec": {"template": []}}}},
        {"template": {"broadcastJobTemplate": {"spec": {"paused": "yes"}}}},
        {"template": {"imageListPullJobTemplate": {"spec": {"images": "i"}}}},
    ],
)
def test_types(spec: Json) -> None:
    with pytest.raises(ValueError, match=r"\$|spec\.template\."):
        check_types(cron_job(spec.get("template", {})) | {"spec": spec})
    check_types(stored(BROADCAST))


def test_members_that_are_null_are_not_there() -> None:
    check_types(cron_job({"jobTemplate": {"metadata": None, "spec": {"template": {"metadata": None}}}}))
