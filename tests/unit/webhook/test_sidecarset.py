"""The handlers of SidecarSets: the cluster's answers about containers, revisions and others (sidecarset.md §3, §4)."""

from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.handlers import Verdict
from flotilla_common.api.admission.review import Answer
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.resources import REVISION
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.testkit.admission import KindAdmission, applied, configure, create, written
from tests.testkit.documents import Json

LOG = {"name": "log", "image": "l:1"}


class Case(KindAdmission):
    """Admission of SidecarSets beside others."""

    def __init__(self, *others: Json, gates: str = "", verdict: Verdict | Exception | None = None) -> None:
        super().__init__("sidecarset", gates=gates, verdict=verdict)
        for other in others:
            self.cluster.put(SIDECAR_SET, other)

    async def check_template(self, namespace: str, template: Json, claims: list[Json]) -> Verdict:
        assert (namespace, claims) == ("kruise-system", [])
        return await super().check_template(namespace, template, claims)

    def revision(self, name: str, number: int = 1, data: Any = None, **labels: str) -> None:
        metadata = {"name": name, "namespace": "kruise-system", "labels": labels}
        stored = {"metadata": metadata, "revision": number, "data": data or {"spec": {"containers": [LOG]}}}
        self.cluster.put(REVISION, stored)

    async def mutation(self, document: Json) -> Answer:
        return await self.mutate(create(document, ""))

    async def validation(self, document: Json | None, old: Json | None = None) -> Answer:
        return await self.validate(written(document, old, ""))


def sidecarset(name: str = "side", version: str = "v1beta1", *, metadata: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "SidecarSet",
        "metadata": {"name": name} | (metadata or {}),
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "containers": [LOG]} | spec,
    }


def revision(**choice: str) -> Json:
    return sidecarset(injectionStrategy={"revision": choice})


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_mutation_is_a_patch_and_then_nothing(version: str) -> None:
    document = sidecarset(version=version)
    answer = await Case().mutation(document)
    stored = applied(document, answer)
    assert stored["apiVersion"] == f"apps.kruise.io/{version}"
    assert stored["spec"]["revisionHistoryLimit"] == 10
    assert set(stored["metadata"]["annotations"]) == {
        "kruise.io/sidecarset-hash",
        "kruise.io/sidecarset-hash-without-image",
    }
    assert not (await Case().mutation(stored)).patch


async def test_stale_hashes_are_written_over() -> None:
    document = sidecarset(metadata={"annotations": {"kruise.io/sidecarset-hash": "stale"}})
    (first, *_) = (await Case().mutation(document)).patch
    assert (first.op, first.path) == ("replace", "/metadata/annotations/kruise.io~1sidecarset-hash")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"selector": []}, id="selector"),
        pytest.param({"containers": [{"name": 1}]}, id="container"),
        pytest.param({"volumes": ["v"]}, id="volume"),
        pytest.param({"containers": [LOG | {"shareVolumePolicy": True}]}, id="a bare boolean"),
        pytest.param({"containers": [LOG | {"resources": {"limits": {"cpu": "much"}}}]}, id="quantity"),
    ],
)
async def test_what_cannot_be_read(spec: Json) -> None:
    document = sidecarset(**spec)
    assert [(await Case().mutation(document)).code, (await Case().validation(document)).code] == [400, 400]


async def test_no_object() -> None:
    assert (await Case().validation(None)).code == 400


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_a_valid_one(version: str) -> None:
    case = Case(sidecarset("other", selector={"matchLabels": {"app": "b"}}))
    answer = await case.validation(sidecarset(version=version))
    assert (answer.allowed, list(answer.warnings)) == (True, [])
    (template,) = case.templates
    assert template["spec"]["restartPolicy"] == "Always"
    (judged,) = template["spec"]["containers"]
    assert judged["imagePullPolicy"] == "IfNotPresent", "with its defaults"
    assert "podInjectPolicy" not in judged, "as a pod knows it"


async def test_several_faults_are_one_message() -> None:
    answer = await Case().validation(sidecarset("my.side", selector=None))
    assert (answer.code, answer.reason) == (500, "")
    assert answer.message == (
        '[metadata.name: Invalid value: "my.side": must match [a-zA-Z0-9\\-]+, '
        "spec.selector: Required value: no selector defined]"
    )


async def test_the_namespace_of_v1alpha1_is_judged_as_a_selector() -> None:
    other = sidecarset("other", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "n"}})
    assert (await Case(other).validation(sidecarset(version="v1alpha1", namespace="m"))).allowed
    assert not (await Case(other).validation(sidecarset(version="v1alpha1", namespace="n"))).allowed


FAULT = Fault("spec.template.spec.containers[0].volumeMounts[0].name", 'Not found: "v"')


async def test_what_the_apiserver_says_is_said_in_paths_of_the_set() -> None:
    answer = await Case(verdict=Verdict([FAULT, Fault("spec.template", "Invalid value: x")])).validation(sidecarset())
    assert answer.message == '[spec.containers[0].volumeMounts[0].name: Not found: "v", spec: Invalid value: x]'
    dropped = Verdict(dropped=["spec.template.spec.containers[0].future"])
    warned = await Case(verdict=dropped).validation(sidecarset())
    assert warned.warnings == ['unknown field "spec.containers[0].future": pods will not have it']


async def test_init_containers_alone_are_judged_beside_another_container() -> None:
    case = Case()
    assert (await case.validation(sidecarset(containers=[], initContainers=[LOG]))).allowed
    (template,) = case.templates
    assert [one["name"] for one in template["spec"]["initContainers"]] == ["log"]
    assert len(template["spec"]["containers"]) == 1


async def test_only_what_is_new_is_judged() -> None:
    case, document = Case(verdict=Verdict([FAULT])), sidecarset()
    stored = applied(document, await case.mutation(document))
    changed = stored | {"spec": stored["spec"] | {"updateStrategy": {"type": "NotUpdate"}}}
    assert (await case.validation(changed, stored)).allowed
    assert not case.templates
    again = stored | {"spec": stored["spec"] | {"containers": [LOG | {"image": "l:2"}]}}
    assert (await case.validation(again, stored)).code == 500


async def test_an_added_container_is_refused() -> None:
    answer = await Case().validation(sidecarset(containers=[LOG, LOG | {"name": "b"}]), sidecarset())
    assert answer.message == 'spec.containers.name: Invalid value: "b": containers cannot be added or renamed'


@pytest.mark.parametrize("failure", [ApiError(503, "ServiceUnavailable", "not now"), Unreachable("gone")])
async def test_without_an_answer_nothing_is_admitted(failure: Exception) -> None:
    answer = await Case(verdict=failure).validation(sidecarset())
    assert (answer.code, answer.message) == (500, f"cannot check the SidecarSet: {failure}")


async def test_conflicts_are_looked_for_last() -> None:
    case = Case(sidecarset("other"))
    answer = await case.validation(sidecarset())
    assert answer.message == 'spec.containers: Invalid value: "log": container log already exists in SidecarSet other'
    wrong = await case.validation(sidecarset(revisionHistoryLimit=1, selector={}))
    assert "already exists" not in wrong.message
    assert (await case.validation(sidecarset("other"))).allowed, "nobody is in his own way"


async def test_a_stored_set_that_cannot_be_read_is_said() -> None:
    answer = await Case(sidecarset("other", selector="app")).validation(sidecarset())
    assert answer.message.startswith("cannot check the SidecarSet: Expected `object`")


CANARY = {"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "mesh"}


async def test_a_canary_may_have_the_containers_of_its_base() -> None:
    canary = sidecarset(metadata={"annotations": CANARY}, updateStrategy={"type": "NotUpdate"})
    assert (await Case(sidecarset("mesh")).validation(canary)).allowed
    assert "base SidecarSet mesh not found" in (await Case().validation(canary)).message


MISSING = "cannot find specific ControllerRevision"


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        pytest.param({"revisionName": "side-1"}, True, id="by name"),
        pytest.param({"revisionName": "side-9"}, False, id="no such name"),
        pytest.param({"revisionName": ""}, False, id="an empty name"),
        pytest.param({"customVersion": "1"}, True, id="by version"),
        pytest.param({"customVersion": "2"}, False, id="the version of another set"),
        pytest.param({"revisionName": "side-9", "customVersion": "1"}, False, id="the name wins"),
        pytest.param({"revisionName": "broken"}, False, id="one that cannot be read"),
        pytest.param({"customVersion": "3"}, False, id="the newest of a version cannot be read"),
    ],
)
async def test_the_revision_that_is_named(choice: Json, found: bool) -> None:
    case, broken = Case(), {"spec": {"containers": [{"name": 1}]}}
    names = {"kruise.io/sidecarset-name": "side"}
    version = "apps.kruise.io/sidecarset-custom-version"
    case.revision("side-1", **names, **{version: "1"})
    case.revision("other-1", **{"kruise.io/sidecarset-name": "other", version: "2"})
    case.revision("broken", 3, broken, **names, **{version: "3"})
    case.revision("side-2", 2, **names, **{version: "3"})
    answer = await case.validation(revision(**choice))
    assert (answer.allowed, MISSING in answer.message) == (found, not found)


PATCHED = {"patchPodMetadata": [{"annotations": {"mesh": "on"}}]}
LISTED = '{"rules":[{"allowedAnnotationKeyExprs":["^mesh$"]}]}'


@pytest.mark.parametrize(
    ("gates", "white_list", "allowed"),
    [
        pytest.param("", None, False, id="nothing allows it"),
        pytest.param("SidecarSetPatchPodMetadataDefaultsAllowed=true", None, True, id="the gate does"),
        pytest.param("", LISTED, True, id="the white list does"),
        pytest.param("", LISTED.replace("mesh", "other"), False, id="the white list does not"),
    ],
)
async def test_annotations_need_a_white_list(gates: str, white_list: str | None, allowed: bool) -> None:
    case = Case(gates=gates)
    if white_list is not None:
        configure(case.cluster, SidecarSet_PatchPodMetadata_WhiteList=white_list)
    assert (await case.validation(sidecarset(**PATCHED))).allowed == allowed
