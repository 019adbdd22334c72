"""Every kind is everywhere, and a new one needs no more than its declaration to be where kinds are generated."""

from typing import Any

import jsonpatch
import pytest

from flotilla_common.api import crds
from flotilla_common.api.admission.review import Request
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.api.webhooks import mutating_entries, path_of, validating_entries
from flotilla_common.gates import Gates
from flotilla_common.installed import published
from flotilla_common.settings import SettingsError, load
from flotilla_insight.installation import rbac
from flotilla_insight.services import bus_permissions
from flotilla_webhook.kinds import kind_handlers
from tests.sample.added import added
from tests.sample.kind import KIND
from tests.testkit.admission import tools
from tests.testkit.apiserver import FakeApi
from tests.unit.kinds import places

GENERATED = places.OF_KINDS | places.OF_CONTROLLERS
EVERYWHERE = GENERATED | places.WRITTEN
DOCUMENT: dict[str, Any] = {"apiVersion": "policy.kruise.io/v1beta1", "kind": "Sample", "metadata": {"name": "s"}}
LARGE = DOCUMENT | {"spec": {"size": 10}}

__all__ = ["added"]


@pytest.mark.parametrize("kind", catalogue.KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_everywhere(kind: Kind) -> None:
    assert [place for place, has in EVERYWHERE.items() if not has(kind)] == []


def test_kinds_are_in_order_and_each_is_there_once() -> None:
    names = [kind.definition_name for kind in catalogue.KINDS]
    assert names == sorted(set(names))


def test_no_word_means_two_kinds() -> None:
    words = [word for kind in catalogue.KINDS for word in kind.words]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("place", GENERATED)
def test_a_new_kind_appears_by_itself(place: str, added: Kind) -> None:
    assert GENERATED[place](added)


@pytest.mark.parametrize("place", EVERYWHERE)
def test_what_is_in_no_catalogue_is_nowhere(place: str) -> None:
    """So each place can detect a missing kind."""
    assert not EVERYWHERE[place](KIND)


def test_the_definition_of_a_new_kind(added: Kind) -> None:
    (definition,) = (one for one in crds.manifests() if one["metadata"]["name"] == "samples.policy.kruise.io")
    spec = definition["spec"]
    assert (spec["group"], spec["scope"], spec["names"]["shortNames"]) == ("policy.kruise.io", "Namespaced", ["smp"])
    assert [(version["name"], version["storage"]) for version in spec["versions"]] == [
        ("v1alpha1", False),
        ("v1beta1", True),
    ]
    assert all("scale" in version["subresources"] for version in spec["versions"])
    assert spec["conversion"]["strategy"] == "Webhook"


def test_the_entries_of_a_new_kind(added: Kind) -> None:
    gates = Gates.parse("")
    entries = {entry["name"]: entry for entry in mutating_entries() + validating_entries(gates)}
    mutating, validating = entries["msample.kb.io"], entries["vsample.kb.io"]
    assert path_of(mutating) == "/mutate-policy-kruise-io-sample"
    assert path_of(validating) == "/validate-policy-kruise-io-sample"
    assert validating["rules"] == [
        {
            "apiGroups": ["policy.kruise.io"],
            "apiVersions": ["v1alpha1", "v1beta1"],
            "resources": ["samples"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "scope": "*",
        }
    ]


@pytest.mark.parametrize(
    ("gates", "refusal"),
    [
        pytest.param("", (422, "10 is more than 9"), id="on"),
        pytest.param("WorkloadSpread=false", (403, "feature-gate WorkloadSpread is not enabled"), id="off"),
    ],
)
async def test_the_admission_of_a_new_kind(gates: str, refusal: tuple[int, str], added: Kind) -> None:
    handlers = kind_handlers(tools(FakeApi(), gates))
    request = Request(uid="u", operation="CREATE", object=DOCUMENT)
    mutated = await handlers["/mutate-policy-kruise-io-v1alpha1-sample"](request)
    assert jsonpatch.apply_patch(DOCUMENT, [one.document() for one in mutated.patch])["spec"] == {"size": 1}
    large = Request(uid="u", operation="CREATE", object=LARGE)
    answer = await handlers["/validate-policy-kruise-io-sample"](large)
    assert (answer.code, answer.message) == refusal


def test_the_flag_of_a_new_kind(added: Kind) -> None:
    assert load({}, {}).workers_of(added) == 7
    assert load({"sample-workers": "9"}, {}).workers_of(added) == 9
    assert load({}, {"FLOTILLA_SAMPLE_WORKERS": "8"}).workers_of(added) == 8


def test_the_rights_of_a_new_controller(added: Kind) -> None:
    objects = rbac.objects()
    (role,) = (one for one in objects if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", "flotilla-samples"))
    rights = {
        (resource, verb)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if resource != "events"
    }
    assert rights == {
        *((resource, verb) for resource in ("configmaps", "clonesets", "samples") for verb in ("get", "list", "watch")),
        *(("configmaps", verb) for verb in ("create", "delete")),
        *(("clonesets", verb) for verb in ("create", "patch")),
        ("samples/status", "patch"),
        ("samples/finalizers", "update"),
    }
    assert "act.v1.samples.>" in bus_permissions()["samples"].publish
    assert CONFIG_MAP in published()


def test_a_flag_of_no_kind_is_unknown() -> None:
    with pytest.raises(SettingsError, match="unknown flag --sample-workers"):
        load({"sample-workers": "9"}, {})
