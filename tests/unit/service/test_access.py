"""The rights of a service, from what its parts declare."""

from typing import Any

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CLAIM, NODE, POD, SECRET, Resource
from flotilla_common.control.spec import EVENTS, LEASES, READ, ControllerSpec, Responder, access_of, read_rules
from flotilla_common.control.watches import AccessRule, Watch
from flotilla_common.installed import installed_components
from flotilla_insight.installation import rbac
from tests.unit.service.test_service_runner import PARTS, Thing

PRIMARY = Watch(CLONE_SET, Thing, writes=("patch",), subresources=("status",))


def declared(*watches: Watch[Any], access: tuple[AccessRule, ...] = ()) -> ControllerSpec[Any, Any]:
    return ControllerSpec(**PARTS | {"primary": PRIMARY, "watches": watches, "access": access})


def verbs(access: list[AccessRule], resource: Resource, subresource: str = "") -> set[str]:
    return {verb for one in access if (one.resource, one.subresource) == (resource, subresource) for verb in one.verbs}


def test_what_is_watched_is_read_and_what_is_written_is_granted() -> None:
    found = access_of([declared(Watch(POD, Thing, writes=("delete",), subresources=("status", "resize")))])
    assert verbs(found, CLONE_SET) == {*READ, "patch"}
    assert verbs(found, CLONE_SET, "status") == {"patch"}
    assert verbs(found, POD) == {*READ, "delete"}
    assert verbs(found, POD, "status") == verbs(found, POD, "resize") == {"patch"}
    assert {EVENTS, LEASES} <= set(found)
    assert verbs(found, CLAIM) == set()


@pytest.mark.parametrize(
    ("watch", "granted"),
    [
        pytest.param(Watch(POD, Thing, owner=CLONE_SET, writes=("create",)), True, id="what it makes for its objects"),
        pytest.param(Watch(POD, Thing, owner=CLONE_SET, writes=("patch",)), False, id="what it only changes"),
        pytest.param(Watch(POD, Thing, owner=NODE, writes=("create",)), False, id="of other owners"),
    ],
)
def test_who_makes_dependents_may_set_finalizers_of_their_owner(watch: Watch[Any], granted: bool) -> None:
    assert (verbs(access_of([declared(watch)]), CLONE_SET, "finalizers") == {"update"}) is granted


def test_a_private_kind_is_granted_in_its_namespace_only() -> None:
    more = AccessRule(SECRET, ("get",))
    found = access_of([declared(Watch(SECRET, Thing, writes=("create",), private="where"), access=(more,))])
    assert [one for one in found if one.resource == SECRET] == [
        more,
        AccessRule(SECRET, (*READ, "create"), namespace="where"),
    ]


def test_who_only_answers_reads() -> None:
    async def build(answering: object) -> None: ...

    server = Responder(name="d", watches=(Watch(NODE, Thing),), answers=("a",), off=lambda *_: "", build=build)
    assert access_of([server]) == [AccessRule(NODE, READ), EVENTS, LEASES]


def test_nothing_needs_no_rights() -> None:
    assert access_of([]) == []
    assert read_rules([NODE]) == (AccessRule(NODE, READ),)


def rules(kind: str, name: str) -> set[tuple[str, str, str]]:
    """Return (group, resource, verb) of a role."""
    (role,) = [one for one in rbac.objects() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("service", ["cloneset", "daemonset", "jobs", "policy", "sidecar", "statefulset", "topology"])
def test_roles_grant_what_specs_declare_and_nothing_else(service: str) -> None:
    declared = access_of(installed_components()[service])
    everywhere = {
        (one.resource.group, f"{one.resource.plural}/{one.subresource}".rstrip("/"), verb)
        for one in declared
        if not one.namespace
        for verb in one.verbs
    }
    granted = rules("ClusterRole", f"flotilla-{service}")
    if service == "sidecar":  # a role of its own, which the chart creates on request
        granted |= rules("ClusterRole", rbac.DISTRIBUTION)
    assert granted == everywhere


def test_copies_of_secrets_are_written_in_one_namespace() -> None:
    (role,) = [one for one in rbac.objects() if one["metadata"]["name"] == "kruise-daemon-secret-role"]
    assert role["metadata"]["namespace"] == "kruise-daemon-config"
    assert rules("Role", "kruise-daemon-secret-role") == {
        ("", "secrets", verb) for verb in (*READ, "create", "delete", "patch")
    }
    assert {verb for _, resource, verb in rules("ClusterRole", "flotilla-jobs") if resource == "secrets"} == {"get"}
