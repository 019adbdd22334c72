"""Active pod rules, and how they come into use (ADR 15)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.admission.review import ALLOWED, Answer, Named, Request, error
from flotilla_common.api.podrules import PodRule, decoded
from flotilla_common.kube.interface import ApiError
from flotilla_common.kube.reflector import HeadMeta
from flotilla_webhook.pods.activation import LINGER_SECONDS, Activation, ActiveRules
from flotilla_webhook.pods.admission import RULE_IN_USE, PodAdmission, PodChecks
from flotilla_webhook.pods.persistent import PersistentStates
from tests.support.fake_clock import FakeClock
from tests.testkit.admission import applied, configure, create
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

RULE = PodRule("a test", "true", "n")
WHITE_LIST = '{"workloads":[{"Group":"games.io","Version":"v1","Kind":"GameSet"}]}'


class World:
    """The pod webhook as PersistentPodStates need it."""

    def __init__(self) -> None:
        self.cluster, self.clock = FakeApi(), FakeClock()
        self.states = PersistentStates(self.cluster.api, self.clock, "kruise-system")
        self.active_rules = ActiveRules(self.clock)
        self.pods = PodAdmission([self.states.step()], self.active_rules)

    async def know(self, *namespaces: str) -> None:
        """List a PersistentPodState in each of the namespaces."""
        await self.states.namespaces.listing("pages")
        for namespace in namespaces:
            metadata = {"namespace": namespace, "name": "p", "uid": namespace, "resourceVersion": "1"}
            item = msgspec.Raw(msgspec.json.encode({"metadata": metadata}))
            await self.states.namespaces.listed(HeadMeta(namespace=namespace, name="p", uid=namespace), item)
        await self.states.namespaces.complete("1")


async def test_the_entries_follow_the_need() -> None:
    world = World()
    await world.know()
    assert await world.pods.entries("") == ([], "")
    await world.know("b", "a")
    (entry,), stored = await world.pods.entries("")
    assert {rule.namespace for rule in decoded(stored)} == {"a", "b"}
    ((condition,), (pods, probes)) = entry["matchConditions"], entry["rules"]
    assert (pods["resources"], probes["resources"]) == (["pods"], ["podtemplates"])
    assert 'request.namespace in ["a", "b"]' in condition["expression"]
    assert 'r.kind == "StatefulSet" && r.apiVersion.startsWith("apps/")' in condition["expression"]
    assert "games.io" not in condition["expression"]
    configure(world.cluster, PPS_Watch_Custom_Workload_WhiteList=WHITE_LIST)
    (wider,), _ = await world.pods.entries("")
    assert '(r.kind == "GameSet" && r.apiVersion.startsWith("games.io/"))' in wider["matchConditions"][0]["expression"]
    configure(world.cluster, PPS_Watch_Custom_Workload_WhiteList="{")
    assert await world.pods.entries("") == ([entry], stored)


async def test_what_is_armed_lingers() -> None:
    world = World()
    await world.know("a")
    entries, stored = await world.pods.entries("")
    await world.know()
    assert await world.pods.entries(stored) == (entries, stored)
    world.clock.time += LINGER_SECONDS + 1
    assert await world.pods.entries(stored) == ([], "")


async def test_what_is_armed_stays_until_it_is_known_what_there_is() -> None:
    world, stored = World(), ""
    world.active_rules.expect([RULE])
    for _ in range(3):
        _, stored = await world.pods.entries(stored)
        assert decoded(stored) == {RULE}
        world.clock.time += LINGER_SECONDS + 1


async def test_watching_what_comes_and_goes() -> None:
    world = World()
    await world.know("a")
    cache, told = world.states.namespaces, []
    cache.listen(lambda: told.append(cache.values()))

    async def see(kind: str, version: str, **metadata: Any) -> None:
        given = {"namespace": "b", "name": "q", "resourceVersion": version} | metadata
        item = msgspec.Raw(msgspec.json.encode({"metadata": given}))
        await cache.event(kind, HeadMeta(namespace="b", name="q", resource_version=version), item)

    await see("ADDED", "5")
    await see("MODIFIED", "6", deletionTimestamp="2026-03-01T12:00:00Z")  # one being deleted injects nothing any more
    await see("DELETED", "7")
    assert told == [["a", "b"], ["a"]], "what changes nothing is not told"


MANY = [f"n-{number}" for number in range(1000)]


async def test_a_thousand_namespaces_have_one_rule_and_keep_it() -> None:
    world, stored = World(), ""
    await world.know(*MANY)
    entries, stored = await world.pods.entries(stored)
    assert ([rule.namespace for rule in decoded(stored)], len(entries)) == ([""], 1)
    for _ in range(3):
        world.clock.time += LINGER_SECONDS + 1
        assert await world.pods.entries(stored) == (entries, stored)
    await world.know("a")
    assert await world.pods.entries(stored) == (entries, stored), "it lingers"
    world.clock.time += LINGER_SECONDS + 1
    _, stored = await world.pods.entries(stored)
    assert {rule.namespace for rule in decoded(stored)} == {"a"}


# Arming


class Apiserver(FakeApi):
    """Uses what was registered after some looks, and then sends probes to the pod webhook."""

    def __init__(self, pods: PodAdmission, looks: int) -> None:
        super().__init__()
        self.pods, self.looks, self.registered = pods, looks, 0
        self.dry_runs = 0

    async def register(self) -> None:
        self.registered += 1
        if self.registered == 1:
            raise ApiError(409, "Conflict", "another replica was faster")

    async def create(self, resource: Any, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        assert dry_run
        self.dry_runs += 1
        document = msgspec.json.decode(body)
        if self.dry_runs <= self.looks:
            return body
        request = create(document, "", dry_run=True, resource=Named(resource=resource.plural))
        return msgspec.json.encode(applied(document, await self.pods.mutate(request)))


class Armory:
    """A handler that arms the rule of the object's name."""

    def __init__(self, looks: int, inner: Answer = ALLOWED) -> None:
        self.world = World()
        self.server = Apiserver(self.world.pods, looks)
        self.admitted: list[Json] = []
        self.activation = Activation(
            api=self.server.api,
            clock=self.world.clock,
            active_rules=self.world.active_rules,
            register=self.server.register,
        )

        async def handler(_: Request) -> Answer:
            return inner

        async def rules_of(document: Json, namespace: str) -> list[PodRule]:
            return [PodRule(document["metadata"]["name"], "true", namespace)]

        self.handler = self.activation.before(handler, rules_of, self.admitted.append)

    async def ask(self, operation: str = "CREATE", old: Json | None = None, *, dry_run: bool = False) -> Answer:
        document = {"metadata": {"name": "p"}}
        request = Request(uid="u", operation=operation, namespace="n", object=document, old_object=old, dry_run=dry_run)
        return await self.handler(request)


async def test_creation_is_answered_once_the_rule_is_in_use() -> None:
    armory = Armory(looks=3)
    assert await armory.ask() == ALLOWED
    assert (armory.server.dry_runs, armory.server.registered) == (4, 3)
    assert [document["metadata"]["name"] for document in armory.admitted] == ["p"]
    _, stored = await armory.world.pods.entries("")
    assert decoded(stored) == {PodRule("p", "true", "n")}


async def test_a_thousand_rules_are_armed_by_one_write() -> None:
    armory = Armory(looks=2)
    assert await armory.activation.activate({PodRule("p", "true", name) for name in MANY})
    assert (armory.server.dry_runs, armory.server.registered) == (3, 2)
    assert await armory.activation.activate([PodRule("p", "true", "one-more")])
    assert (armory.server.dry_runs, armory.server.registered) == (4, 2)


async def test_what_takes_too_long_is_told() -> None:
    answer = await Armory(looks=10**6).ask()
    assert answer.allowed
    assert "may not call the webhook" in answer.warnings[0]


async def test_a_change_arms_what_is_new_in_it() -> None:
    armory = Armory(looks=0)
    assert await armory.ask("UPDATE", {"metadata": {"name": "p"}}) == ALLOWED
    assert armory.server.dry_runs == 0
    assert await armory.ask("UPDATE", {"metadata": {"name": "before"}}) == ALLOWED
    assert armory.server.dry_runs == 1


@pytest.mark.parametrize(("inner", "dry_run"), [(ALLOWED, True), (error(400, "no"), False)], ids=["dry run", "refused"])
async def test_nothing_is_armed(inner: Answer, dry_run: bool) -> None:
    armory = Armory(looks=0, inner=inner)
    assert await armory.ask(dry_run=dry_run) == inner
    assert armory.server.dry_runs == armory.server.registered == len(armory.admitted) == 0


async def test_a_check_marks_a_probe_by_refusing_it() -> None:
    armory = Armory(looks=0)
    checks = PodChecks(armory.server.api, [], ActiveRules(armory.world.clock))

    async def answered(resource: Any, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        asked = Named(resource=resource.plural)
        request = create(msgspec.json.decode(body), "", dry_run=dry_run, resource=asked)
        answer = await checks.validate(request)
        assert not answer.allowed
        raise ApiError(
            answer.code, answer.reason, f'admission webhook "vpod.kb.io" denied the request: {answer.message}'
        )

    armory.server.create = answered  # type: ignore[method-assign]
    assert await armory.activation.activate([RULE])


async def test_another_refusal_of_a_probe_is_no_mark() -> None:
    armory = Armory(looks=0)

    async def refused(*_: Any, **__: Any) -> bytes:
        raise ApiError(403, "Forbidden", "no")

    armory.server.create = refused  # type: ignore[method-assign]
    assert not await armory.activation.activate([RULE])


async def test_only_a_dry_run_is_a_probe() -> None:
    template = {"metadata": {"name": RULE.probe}, "template": {}}
    request = Request(uid="u", operation="CREATE", object=template, resource=Named(resource="podtemplates"))
    assert (await World().pods.mutate(request)).code == 400
    marked = await World().pods.mutate(msgspec.structs.replace(request, dry_run=True))
    assert applied(template, marked)["metadata"]["annotations"] == {RULE_IN_USE: "true"}
