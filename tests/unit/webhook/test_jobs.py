"""The handlers of BroadcastJobs, AdvancedCronJobs and EphemeralJobs.

Codes, warnings, and when containers are validated by the apiserver.
"""

from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.handlers import Verdict
from flotilla_common.api.admission.review import Answer
from tests.testkit.admission import KindAdmission, applied, written
from tests.testkit.documents import Json
from tests.unit.admission.test_advancedcronjob_defaults import BROADCAST, JOB, PULLS, cron_job
from tests.unit.admission.test_broadcastjob import TEMPLATE, job
from tests.unit.admission.test_ephemeraljob import GOOD
from tests.unit.admission.test_ephemeraljob import job as ephemeral_job

PATHS = {"AdvancedCronJob": "advancedcronjob", "BroadcastJob": "broadcastjob", "EphemeralJob": "v1alpha1-ephemeraljob"}


class Case(KindAdmission):
    """Admission of jobs."""

    def __init__(self, verdict: Verdict | Exception | None = None) -> None:
        super().__init__("", verdict=verdict)

    async def ask(self, verb: str, document: Json, old: Json | None = None) -> Answer:
        self.kind = PATHS[document["kind"]]
        return await self.handle(verb, written(document, old))


ENV = "spec.template.spec.containers[0].env[0].name"
OWN_ENV = {"EphemeralJob": "ephemeralContainers[0].env[0].name"}
CODES = {"BroadcastJob": 500, "AdvancedCronJob": 422, "EphemeralJob": 400}
DOCUMENTS = [
    pytest.param(job(), id="BroadcastJob"),
    pytest.param(cron_job(JOB), id="AdvancedCronJob"),
    pytest.param(ephemeral_job(GOOD), id="EphemeralJob"),
]


@pytest.mark.parametrize("document", [job(), cron_job(BROADCAST), cron_job(PULLS)], ids=["bcj", "acj", "acj of images"])
async def test_mutation_is_a_patch_and_then_nothing(document: Json) -> None:
    stored = applied(document, await Case().ask("mutate", document))
    assert not (await Case().ask("mutate", stored, stored)).patch
    assert (await Case().ask("validate", stored)).allowed


@pytest.mark.parametrize("document", DOCUMENTS)
async def test_codes_of_refusals(document: Json) -> None:
    kind = document["kind"]
    answer = await Case(Verdict([Fault(ENV, "Required value")])).ask("validate", document)
    assert (answer.allowed, answer.code, answer.reason) == (False, CODES[kind], "")
    assert answer.message == f"{OWN_ENV.get(kind, ENV)}: Required value"
    undecodable = document | {"spec": document["spec"] | {"paused": "yes"}}
    assert (await Case().ask("validate", undecodable)).code == 400


async def test_a_broadcast_job_is_judged_when_it_is_new_and_when_its_template_changes() -> None:
    case = Case(Verdict(dropped=["spec.template.x"]))
    warnings = ['unknown field "spec.template.x": pods will not have it']
    assert (await case.ask("validate", job())).warnings == warnings
    assert (await case.ask("validate", job(paused=True), job())).warnings == []
    assert (await case.ask("validate", job(template=TEMPLATE | {"x": 1}), job())).warnings == warnings
    assert [template.get("x") for template in case.templates] == [None, 1]


RESTART = (
    "spec.template.jobTemplate.spec.template.spec.restartPolicy is neither Never nor OnFailure: "
    "no job can be created with it"
)
LONG = (
    "metadata.name has 53 characters: with more than 52 the names of its jobs get too long, and they cannot be created"
)


def ending(name: str = "a", **pod: Any) -> Json:
    """Return an AdvancedCronJob of Jobs whose pods end."""
    template = {"spec": {"restartPolicy": "Never", "containers": []} | pod}
    document = cron_job({"jobTemplate": {"spec": {"template": template}}}, concurrencyPolicy="Allow")
    return document | {"metadata": {"name": name, "namespace": "n"}}


@pytest.mark.parametrize(
    ("document", "dropped", "expected"),
    [
        pytest.param(ending("a" * 52), [], [], id="nothing to say"),
        pytest.param(
            ending(),
            ["spec.template.spec.x"],
            ['unknown field "spec.template.jobTemplate.spec.template.spec.x": pods will not have it'],
            id="unknown field",
        ),
        pytest.param(ending("a" * 53), [], [LONG], id="a long name, row 36"),
        pytest.param(ending(restartPolicy="Always"), [], [RESTART], id="pods that never end, row 33"),
        pytest.param(cron_job(PULLS, concurrencyPolicy="Forbid"), [], [], id="no pods"),
    ],
)
async def test_warnings_about_an_advanced_cron_job(document: Json, dropped: list[str], expected: list[str]) -> None:
    answer = await Case(Verdict(dropped=dropped)).ask("validate", document)
    assert (answer.allowed, answer.warnings) == (True, expected)
    assert (await Case().ask("validate", document, document)).warnings == []


async def test_the_pods_of_an_advanced_cron_job_are_judged_once() -> None:
    case = Case()
    assert (await case.ask("validate", ending())).allowed
    assert (await case.ask("validate", ending() | {"metadata": {"name": "a", "labels": {}}}, ending())).allowed
    assert [template["spec"]["restartPolicy"] for template in case.templates] == ["Never"]
    (await case.ask("validate", cron_job(PULLS, concurrencyPolicy="Forbid")))
    assert len(case.templates) == 1


async def test_an_update_of_an_advanced_cron_job_is_held_against_what_is_stored() -> None:
    answer = await Case().ask("validate", ending(restartPolicy="OnFailure"), ending())
    assert (answer.code, "are forbidden" in answer.message) == (422, True)


async def test_a_broadcast_job_stays_under_its_rules_at_an_update() -> None:
    never = job(completionPolicy={"type": "Never", "ttlSecondsAfterFinished": 1})
    answer = await Case().ask("validate", never, job())
    assert (answer.code, answer.allowed) == (500, False)


async def test_containers_of_an_ephemeral_job_are_judged_when_they_change() -> None:
    case, bad = Case(), ephemeral_job(GOOD | {"imagePullPolicy": ""})
    assert (await case.ask("validate", bad)).code == 400
    assert (await case.ask("validate", bad | {"metadata": {"name": "dump", "finalizers": []}}, bad)).allowed
    assert (await case.ask("validate", bad, ephemeral_job(GOOD))).code == 400
    assert len(case.templates) == 2


async def test_an_ephemeral_job_without_containers_asks_nobody() -> None:
    case = Case()
    assert (await case.ask("validate", ephemeral_job())).allowed
    assert case.templates == []


async def test_versions() -> None:
    document: dict[str, Any] = ephemeral_job(GOOD) | {"apiVersion": "apps.kruise.io/v1beta1"}
    assert (await Case().ask("validate", document)).code == 400
