"""The handlers of SidecarSets: what the cluster says about containers, revisions and other SidecarSets
(sidecarset.md §3, §4)."""

from typing import Any

import jsonpatch
import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.tools import Verdict
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.resources import CONFIG_MAP, REVISION
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_webhook.tools import kind_handlers
from tests.testkit.documents import Json
from tests.unit.webhook.fakes import FakeApi, tools

LOG = {"name": "log", "image": "l:1"}


class Case:
    """Admission over a fake cluster, which says `verdict` about every template."""

    def __init__(self, *others: Json, gates: str = "", verdict: Verdict | Exception | None = None) -> None:
        self.cluster = FakeApi()
        for other in others:
            self.cluster.put(SIDECAR_SET, other)
        self.judged: list[Json] = []
        self._verdict = verdict or Verdict()
        self.tools = tools(self.cluster, gates)
        self.tools.template_verdict = self.judge

    async def judge(self, namespace: str, template: Json, claims: list[Json]) -> Verdict:
        assert (namespace, claims) == ("kruise-system", [])
        self.judged.append(template)
        if isinstance(self._verdict, Exception):
            raise self._verdict
        return self._verdict

    def revision(self, name: str, number: int = 1, data: Any = None, **labels: str) -> None:
        metadata = {"name": name, "namespace": "kruise-system", "labels": labels}
        stored = {"metadata": metadata, "revision": number, "data": data or {"spec": {"containers": [LOG]}}}
        self.cluster.put(REVISION, stored)

    async def mutate(self, document: Json) -> Answer:
        request = Request(uid="u", operation="CREATE", object=document)
        return await kind_handlers(self.tools)["/mutate-apps-kruise-io-sidecarset"](request)

    async def validate(self, document: Json | None, old: Json | None = None) -> Answer:
        request = Request(uid="u", operation="UPDATE" if old else "CREATE", object=document, old_object=old)
        return await kind_handlers(self.tools)["/validate-apps-kruise-io-sidecarset"](request)


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
    answer = await Case().mutate(document)
    stored = jsonpatch.apply_patch(document, [operation.document() for operation in answer.patch])
    assert stored["apiVersion"] == f"apps.kruise.io/{version}"
    assert stored["spec"]["revisionHistoryLimit"] == 10
    assert set(stored["metadata"]["annotations"]) == {
        "kruise.io/sidecarset-hash",
        "kruise.io/sidecarset-hash-without-image",
    }
    assert not (await Case().mutate(stored)).patch


async def test_stale_hashes_are_written_over() -> None:
    document = sidecarset(metadata={"annotations": {"kruise.io/sidecarset-hash": "stale"}})
    (first, *_) = (await Case().mutate(document)).patch
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
    assert [(await Case().mutate(document)).code, (await Case().validate(document)).code] == [400, 400]


async def test_no_object() -> None:
    assert (await Case().validate(None)).code == 400


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_a_valid_one(version: str) -> None:
    case = Case(sidecarset("other", selector={"matchLabels": {"app": "b"}}))
    answer = await case.validate(sidecarset(version=version))
    assert (answer.allowed, list(answer.warnings)) == (True, [])
    (template,) = case.judged
    assert template["spec"]["restartPolicy"] == "Always"
    (judged,) = template["spec"]["containers"]
    assert judged["imagePullPolicy"] == "IfNotPresent", "with its defaults"
    assert "podInjectPolicy" not in judged, "as a pod knows it"


async def test_several_faults_are_one_message() -> None:
    answer = await Case().validate(sidecarset("my.side", selector=None))
    assert (answer.code, answer.reason) == (500, "")
    assert answer.message == (
        '[metadata.name: Invalid value: "my.side": must match [a-zA-Z0-9\\-]+, '
        "spec.selector: Required value: no selector defined]"
    )


async def test_the_namespace_of_v1alpha1_is_judged_as_a_selector() -> None:
    other = sidecarset("other", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "n"}})
    assert (await Case(other).validate(sidecarset(version="v1alpha1", namespace="m"))).allowed
    assert not (await Case(other).validate(sidecarset(version="v1alpha1", namespace="n"))).allowed


FAULT = Fault("spec.template.spec.containers[0].volumeMounts[0].name", 'Not found: "v"')


async def test_what_the_apiserver_says_is_said_in_paths_of_the_set() -> None:
    answer = await Case(verdict=Verdict([FAULT, Fault("spec.template", "Invalid value: x")])).validate(sidecarset())
    assert answer.message == '[spec.containers[0].volumeMounts[0].name: Not found: "v", spec: Invalid value: x]'
    dropped = Verdict(dropped=["spec.template.spec.containers[0].future"])
    warned = await Case(verdict=dropped).validate(sidecarset())
    assert warned.warnings == ['unknown field "spec.containers[0].future": pods will not have it']


async def test_init_containers_alone_are_judged_beside_another_container() -> None:
    case = Case()
    assert (await case.validate(sidecarset(containers=[], initContainers=[LOG]))).allowed
    (template,) = case.judged
    assert [one["name"] for one in template["spec"]["initContainers"]] == ["log"]
    assert len(template["spec"]["containers"]) == 1


async def test_only_what_is_new_is_judged() -> None:
    case, document = Case(verdict=Verdict([FAULT])), sidecarset()
    defaults = [operation.document() for operation in (await case.mutate(document)).patch]
    stored = jsonpatch.apply_patch(document, defaults)
    changed = stored | {"spec": stored["spec"] | {"updateStrategy": {"type": "NotUpdate"}}}
    assert (await case.validate(changed, stored)).allowed
    assert not case.judged
    again = stored | {"spec": stored["spec"] | {"containers": [LOG | {"image": "l:2"}]}}
    assert (await case.validate(again, stored)).code == 500


async def test_an_added_container_is_refused() -> None:
    answer = await Case().validate(sidecarset(containers=[LOG, LOG | {"name": "b"}]), sidecarset())
    assert answer.message == 'spec.containers.name: Invalid value: "b": containers cannot be added or renamed'


@pytest.mark.parametrize("failure", [ApiError(503, "ServiceUnavailable", "not now"), Unreachable("gone")])
async def test_without_an_answer_nothing_is_admitted(failure: Exception) -> None:
    answer = await Case(verdict=failure).validate(sidecarset())
    assert (answer.code, answer.message) == (500, f"cannot check the SidecarSet: {failure}")


async def test_conflicts_are_looked_for_last() -> None:
    case = Case(sidecarset("other"))
    answer = await case.validate(sidecarset())
    assert answer.message == 'spec.containers: Invalid value: "log": container log already exists in SidecarSet other'
    wrong = await case.validate(sidecarset(revisionHistoryLimit=1, selector={}))
    assert "already exists" not in wrong.message
    assert (await case.validate(sidecarset("other"))).allowed, "nobody is in his own way"


async def test_a_stored_set_that_cannot_be_read_is_said() -> None:
    answer = await Case(sidecarset("other", selector="app")).validate(sidecarset())
    assert answer.message.startswith("cannot check the SidecarSet: Expected `object`")


CANARY = {"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "mesh"}


async def test_a_canary_may_have_the_containers_of_its_base() -> None:
    canary = sidecarset(metadata={"annotations": CANARY}, updateStrategy={"type": "NotUpdate"})
    assert (await Case(sidecarset("mesh")).validate(canary)).allowed
    assert "base SidecarSet mesh not found" in (await Case().validate(canary)).message


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
    answer = await case.validate(revision(**choice))
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
        metadata = {"namespace": "kruise-system", "name": "kruise-configuration"}
        data = {"SidecarSet_PatchPodMetadata_WhiteList": white_list}
        case.cluster.put(CONFIG_MAP, {"metadata": metadata, "data": data})
    assert (await case.validate(sidecarset(**PATCHED))).allowed == allowed
