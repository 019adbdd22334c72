"""Rights of users and requests as users, as a real apiserver decides them."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack

import msgspec
import pytest

from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.clock import SystemClock
from flotilla_common.control.watches import AccessRule
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import ApiConfig, load_config
from flotilla_common.settings import Settings
from flotilla_console.access.acting import Acting, Refused, UserApi, without_credentials
from flotilla_console.access.identity import Identity, authenticated
from flotilla_console.access.reviews import TokenReviews
from flotilla_console.access.rights import Question, Rights
from tests.integration.console.impersonation import constrained, plain
from tests.support.cluster import Cluster
from tests.support.fleet import Fleet
from tests.support.workspace import new_namespace
from tests.testkit.documents import Json

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]  # the first one waits for the control plane, too

RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}
CHANGE = b'{"data":{"by":"jane"}}'
REVIEWS: Json = {
    "apiGroups": ["authorization.k8s.io", "authentication.k8s.io"],
    "resources": ["subjectaccessreviews", "tokenreviews"],
    "verbs": ["create"],
}


class Token:
    """The credential of a service account of the test."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def authorization(self) -> str:
        return f"Bearer {self._token}"

    def reject(self) -> None:
        """Do nothing: the token is valid for as long as the test."""


class Scene:
    """A namespace where the group `dev` may change ConfigMaps, and consoles with service accounts of their own."""

    def __init__(self, cluster: Cluster, namespace: str, bare: ApiConfig, stack: AsyncExitStack) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._bare = bare
        self._stack = stack
        self.bearer = self._client(bare)
        self.jane = authenticated("jane", (f"dev-{namespace}",))
        rule: Json = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "patch", "delete"]}
        role = {"kind": "Role", "metadata": {"name": "dev", "namespace": namespace}, "rules": [rule]}
        cluster.create(RBAC | role, self._binding("dev", {"kind": "Group", "name": f"dev-{namespace}"}, "Role", "dev"))
        cluster.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sample", "namespace": namespace}}
        )

    def console(self, name: str, rules: Iterable[AccessRule] = ()) -> KubeClient:
        """Return the client of a console that may ask for reviews, and has these rights in the cluster."""
        cluster_name = f"{self.namespace}-{name}"
        role = {"kind": "ClusterRole", "metadata": {"name": cluster_name}, "rules": [REVIEWS, *map(_rule, rules)]}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
        binding = self._binding(cluster_name, subject, "ClusterRole", cluster_name, kind="ClusterRoleBinding")
        self.account(name)
        self.cluster.create(RBAC | role, binding)
        token = self.token(name)
        config = msgspec.structs.replace(self._bare, credential=Token(token))
        return self._client(config)

    def account(self, name: str) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        self.cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})

    def token(self, name: str) -> str:
        return self.cluster.kubectl("create", "token", name, "-n", self.namespace).strip()

    def grant(self, account: str) -> None:
        """Let a service account do what `dev` may do."""
        subject = {"kind": "ServiceAccount", "name": account, "namespace": self.namespace}
        self.cluster.create(self._binding(account, subject, "Role", "dev"))

    def user(self, api: KubeClient, identity: Identity | None = None) -> UserApi:
        return Acting(api, self.bearer).client(identity or self.jane)

    def _client(self, config: ApiConfig) -> KubeClient:
        client = KubeClient(config, user_agent="flotilla-console-test")
        self._stack.push_async_callback(client.close)
        return client

    def _binding(self, name: str, subject: Json, role_kind: str, role: str, *, kind: str = "RoleBinding") -> Json:
        where = {"namespace": self.namespace} if kind == "RoleBinding" else {}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role}
        return RBAC | {"kind": kind, "metadata": {"name": name, **where}, "subjects": [subject], "roleRef": reference}


def _rule(rule: AccessRule) -> Json:
    plural = f"{rule.resource.plural}/{rule.subresource}" if rule.subresource else rule.resource.plural
    return {"apiGroups": [rule.resource.group], "resources": [plural], "verbs": list(rule.verbs)}


@pytest.fixture
def namespace(request: pytest.FixtureRequest, shared: Fleet) -> Iterator[str]:
    name = new_namespace(shared.cluster, request.node.nodeid)
    yield name
    for kind in ("clusterrolebindings", "clusterroles"):
        found = shared.cluster.read(kind)["items"]
        ours = [item["metadata"]["name"] for item in found if item["metadata"]["name"].startswith(f"{name}-")]
        if ours:
            shared.cluster.kubectl("delete", kind, *ours)


@pytest.fixture
async def scene(namespace: str, shared: Fleet) -> AsyncIterator[Scene]:
    admin = await load_config(Settings(kubeconfig=str(shared.cluster.kubeconfig)))
    async with AsyncExitStack() as stack:
        yield Scene(shared.cluster, namespace, without_credentials(admin), stack)


async def test_rights_of_a_user_with_one_namespace(scene: Scene):
    rights = Rights(scene.console("reviewer"), SystemClock())
    mine = Question("list", "", "configmaps", scene.namespace)
    others = [Question("list", "", "configmaps", "default"), Question("list", "", "configmaps")]
    others += [Question("list", "", "secrets", scene.namespace), Question("create", "", "configmaps", scene.namespace)]
    table = await rights.table(scene.jane, [mine, *others])
    assert table.granted == {mine}
    assert table.error == ""
    admin = authenticated("root", ("system:masters",))
    assert all((await rights.allowed(admin, [mine, *others])).values())


async def test_a_console_without_the_right_to_review_grants_nothing(scene: Scene):
    table = await Rights(scene.bearer, SystemClock()).table(scene.jane, [Question("list", "", "configmaps")])
    assert not table.granted
    assert "system:anonymous" in table.error


async def test_impersonation_needs_its_right_and_grants_no_more_than_the_user_has(scene: Scene):
    with pytest.raises(Refused, match=r"powerless.* cannot impersonate"):
        await scene.user(scene.console("powerless")).patch(CONFIG_MAP, scene.namespace, "sample", CHANGE)
    able = scene.console("able", plain())
    await scene.user(able).patch(CONFIG_MAP, scene.namespace, "sample", CHANGE)
    assert scene.cluster.read("configmap", "sample", "-n", scene.namespace)["data"] == {"by": "jane"}
    with pytest.raises(Refused, match='User "jane" cannot patch resource "configmaps"') as refused:
        await scene.user(able).patch(CONFIG_MAP, "default", "kube-root-ca.crt", CHANGE)
    assert refused.value.code == 403


async def test_constrained_impersonation_allows_the_named_verbs_only(scene: Scene):
    rules = constrained("patch", CONFIG_MAP)
    user = scene.user(scene.console("constrained", rules))
    await user.patch(CONFIG_MAP, scene.namespace, "sample", CHANGE)
    with pytest.raises(Refused, match='User "jane" cannot patch'):
        await user.patch(CONFIG_MAP, "default", "kube-root-ca.crt", CHANGE)
    with pytest.raises(Refused, match="impersonate") as refused:
        await user.delete(CONFIG_MAP, scene.namespace, "sample")
    assert refused.value.code == 403
    scene.cluster.read("configmap", "sample", "-n", scene.namespace)


async def test_a_pasted_token_is_its_users(scene: Scene):
    scene.account("robot")
    tokens = TokenReviews(scene.console("reviewer"), SystemClock())
    robot = await tokens.identity(scene.token("robot"))
    assert robot is not None
    assert robot.user == f"system:serviceaccount:{scene.namespace}:robot"
    assert "system:authenticated" in robot.groups
    with pytest.raises(Refused, match="robot"):
        await scene.user(scene.bearer, robot).patch(CONFIG_MAP, scene.namespace, "sample", CHANGE)
    scene.grant("robot")
    await scene.user(scene.bearer, robot).patch(CONFIG_MAP, scene.namespace, "sample", CHANGE)
    assert await tokens.identity("no-token") is None
