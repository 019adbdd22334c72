"""Objects are read, created and patched by the requests that kubectl sends for the same words."""

import json

import pytest

from tests.support.objects import LAST_APPLIED, Objects
from tests.support.rest import JSON_PATCH, Refused, Rest
from tests.testkit.documents import Json


def entry(plural: str, kind: str, version: str, *short: str, group: str = "", scope: str = "Namespaced") -> Json:
    shape = {"group": group, "version": version, "kind": kind}
    return {
        "resource": plural,
        "responseKind": shape,
        "singularResource": kind.lower(),
        "scope": scope,
        "shortNames": list(short),
    }


def group(name: str, **versions: list[Json]) -> Json:
    found = [{"version": version, "resources": entries} for version, entries in versions.items()]
    return {"metadata": {"name": name}, "versions": found}


DISCOVERED: dict[str, Json] = {
    "/api": {
        "items": [group("", v1=[entry("pods", "Pod", "v1", "po"), entry("nodes", "Node", "v1", "no", scope="Cluster")])]
    },
    "/apis": {
        "items": [
            group("apps", v1=[entry("statefulsets", "StatefulSet", "v1", "sts")]),
            group(
                "apps.kruise.io",
                v1beta1=[entry("statefulsets", "StatefulSet", "v1beta1", "asts")],
                v1alpha1=[entry("statefulsets", "StatefulSet", "v1alpha1", "asts"), entry("jobs", "Job", "v1alpha1")],
            ),
            {"metadata": {"name": "stale.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
        ]
    },
}

POD: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


class Server(Rest):
    """An apiserver with these answers; nothing else is there."""

    def __init__(self, **answers: Json) -> None:
        self._answers = DISCOVERED | {path.replace("_", "/"): answer for path, answer in answers.items()}
        self.sent: list[tuple[str, str, object, str]] = []

    def send(self, method: str, path: str, body: object = None, content_type: str = "", *, accept: str = "") -> Json:
        if path not in ("/api", "/apis"):
            self.sent.append((method, path, body, content_type))
        if method == "GET" and path not in self._answers:
            raise Refused(404, "not found", "NotFound")
        return self._answers.get(path, {"made": "yes"})


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ("pods", "/api/v1/namespaces/web/pods"),
        ("po a", "/api/v1/namespaces/web/pods/a"),
        ("pod/a", "/api/v1/namespaces/web/pods/a"),
        ("Pod a -n other", "/api/v1/namespaces/other/pods/a"),
        ("pods -A -l app=x", "/api/v1/pods?labelSelector=app%3Dx"),
        ("pods --field-selector=metadata.name=a", "/api/v1/namespaces/web/pods?fieldSelector=metadata.name%3Da"),
        ("node a", "/api/v1/nodes/a"),
        ("asts", "/apis/apps.kruise.io/v1beta1/namespaces/web/statefulsets"),
        ("job a", "/apis/apps.kruise.io/v1alpha1/namespaces/web/jobs/a"),
        ("statefulsets.v1alpha1.apps.kruise.io a", "/apis/apps.kruise.io/v1alpha1/namespaces/web/statefulsets/a"),
        ("statefulsets.apps", "/apis/apps/v1/namespaces/web/statefulsets"),
    ],
)
def test_words_have_the_meaning_that_kubectl_gives_them(arguments: str, path: str) -> None:
    query = Objects(Server(), "web").query(arguments.split())
    assert query is not None
    assert query.path == path


@pytest.mark.parametrize("arguments", ["statefulsets", "unknown", "pods,nodes", "pods a --ignore-not-found", "po a b"])
def test_what_only_kubectl_knows_is_left_to_it(arguments: str) -> None:
    assert Objects(Server(), "web").query(arguments.split()) is None


def test_items_of_a_list_have_their_kind_and_no_managed_fields() -> None:
    item: Json = {"metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]}}
    objects = Objects(Server(_api_v1_namespaces_web_pods={"items": [item]})).within("web")
    query = objects.query(["pods"])
    assert query is not None
    assert objects.get(query)["items"] == [POD]


class Reinitializing(Server):
    """An apiserver that sets up the storage of pods when it is first asked."""

    def send(self, method: str, path: str, body: object = None, content_type: str = "", *, accept: str = "") -> Json:
        answer = super().send(method, path, body, content_type, accept=accept)
        if len(self.sent) == 1:
            raise Refused(429, "storage is (re)initializing", "TooManyRequests")
        return answer


def test_a_request_is_repeated_while_the_storage_of_a_kind_is_set_up() -> None:
    server = Reinitializing(_api_v1_namespaces_web_pods_a=POD)
    objects = Objects(server, "web")
    query = objects.query(["pod", "a"])
    assert query is not None
    assert objects.get(query) == POD
    assert len(server.sent) == 2


def test_a_refusal_fails_the_test() -> None:
    objects = Objects(Server(), "web")
    query = objects.query(["pod", "a"])
    assert query is not None
    with pytest.raises(AssertionError, match="NotFound"):
        objects.get(query)


def test_what_is_new_is_applied_as_kubectl_would() -> None:
    server = Server()
    assert Objects(server, "web").first_apply(POD) == {"made": "yes"}
    (_, asked, *_), (method, path, body, _) = server.sent
    assert (asked, method) == ("/api/v1/namespaces/web/pods/a", "POST")
    assert path == "/api/v1/namespaces/web/pods?fieldValidation=Strict&fieldManager=kubectl-client-side-apply"
    assert isinstance(body, dict)
    metadata: Json = body["metadata"]
    applied = json.loads(metadata["annotations"][LAST_APPLIED])
    assert applied == POD | {"metadata": {"annotations": {}, "name": "a", "namespace": "web"}}


def test_what_exists_is_left_to_kubectl() -> None:
    server = Server(_api_v1_namespaces_web_pods_a=POD)
    assert Objects(server, "web").first_apply(POD) is None
    assert [method for method, *_ in server.sent] == ["GET"]


def test_patches_name_their_kind_and_subresource() -> None:
    server = Server()
    Objects(server, "web").patch("po", "a", [], kind=JSON_PATCH, subresource="status")
    path = "/api/v1/namespaces/web/pods/a/status?fieldManager=kubectl-patch"
    assert server.sent == [("PATCH", path, [], JSON_PATCH)]
