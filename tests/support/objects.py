"""Reads, creates and patches objects by the words that kubectl accepts, without starting a program.

A kubectl costs a tenth of a second of CPU time. Tests whose subject is what users type call it; what prepares a test or
looks at its result uses these requests, which are those that kubectl sends.
"""

import http.client
import json
import time
from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec

from flotilla_common.api.resources import Resource
from tests.support.rest import JSON, MERGE, PATIENCE, RETRY_SECONDS, Refused, Rest
from tests.testkit.documents import Json

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Query(msgspec.Struct):
    """The arguments of a `kubectl get`."""

    resource: Resource
    name: str = ""
    namespace: str = ""
    everywhere: bool = False
    selectors: dict[str, str] = {}

    @property
    def path(self) -> str:
        """Return the path with its query."""
        where = self.resource.path("" if self.everywhere else self.namespace, self.name)
        return f"{where}?{urlencode(self.selectors)}" if self.selectors else where


class Objects:
    """The objects of one cluster; those with a namespace are looked for in `namespace`."""

    def __init__(self, rest: Rest, namespace: str = "default", words: dict[str, Resource | None] | None = None) -> None:
        self._rest = rest
        self._namespace = namespace
        self._words: dict[str, Resource | None] = {} if words is None else words

    def within(self, namespace: str) -> "Objects":
        """Return the objects with another namespace."""
        return Objects(self._rest, namespace, self._words)

    def query(self, arguments: Sequence[str]) -> Query | None:
        """Return the meaning of arguments of `kubectl get`; None if only kubectl has it."""
        words: list[str] = []
        options: dict[str, str] = {}
        rest = iter(arguments)
        for argument in rest:
            flag, equals, value = argument.partition("=")
            if not argument.startswith("-"):
                words.append(argument)
            elif flag not in _FLAGS:
                return None
            else:
                options[_FLAGS[flag]] = value if equals or _FLAGS[flag] == "everywhere" else next(rest, "")
        if len(words) == 1 and "/" in words[0]:
            words = words[0].split("/")
        resource = self.resource(words[0]) if 1 <= len(words) <= 2 else None
        if resource is None:
            return None
        where = options.pop("namespace", self._namespace)
        everywhere = options.pop("everywhere", None) is not None
        return Query(resource, "".join(words[1:]), where, everywhere, options)

    def get(self, query: Query) -> Json:
        """Return an object, or a list as kubectl prints it. Raises AssertionError."""
        found = self._send("GET", query.path)
        if query.name:
            return _shown(found)
        items: list[Json] = [query.resource.type_meta | _shown(item) for item in found["items"]]
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def create(self, document: Json) -> Json:
        """Create an object. Raises AssertionError."""
        resource = self._resource_of(document)
        where = document["metadata"].get("namespace", self._namespace)
        return _shown(self._send("POST", f"{resource.path(where)}?{_STRICT}&fieldManager=kubectl-create", document))

    def first_apply(self, document: Json) -> Json | None:
        """Create an object as `kubectl apply` does; None if it exists. Raises AssertionError."""
        resource = self._resource_of(document)
        metadata: Json = {"annotations": {}, **document["metadata"]}
        if resource.namespaced:
            metadata = {"namespace": self._namespace, **metadata}
        applied = json.dumps(document | {"metadata": metadata}, sort_keys=True, separators=(",", ":")) + "\n"
        annotations = metadata["annotations"] | {LAST_APPLIED: applied}
        body = document | {"metadata": metadata | {"annotations": annotations}}
        where = metadata.get("namespace", "")
        try:
            self._rest.send("GET", resource.path(where, metadata["name"]))
        except Refused as refusal:
            if refusal.status == 404:
                path = f"{resource.path(where)}?{_STRICT}&fieldManager=kubectl-client-side-apply"
                return _shown(self._send("POST", path, body))
        return None

    def _resource_of(self, document: Json) -> Resource:
        group, _, version = document["apiVersion"].rpartition("/")
        resource = self.resource(f"{document['kind']}.{version}.{group}")
        assert resource is not None, f"no kind {document['kind']} in {document['apiVersion']}"
        return resource

    def patch(self, word: str, name: str, body: object, *, kind: str = MERGE, subresource: str = "") -> Json:
        """Patch an object. Raises AssertionError."""
        resource = self.resource(word)
        assert resource is not None, f"no resource {word}"
        path = resource.path(self._namespace, name, subresource)
        return _shown(self._send("PATCH", f"{path}?fieldManager=kubectl-patch", body, kind))

    def resource(self, word: str) -> Resource | None:
        """Return the resource that a word means to kubectl; None for an unknown word, or one of several groups."""
        word = word.lower().rstrip(".")
        if word not in self._words:
            self._words.clear()
            self._words.update(self._discovered())
        return self._words.get(word)

    def _discovered(self) -> dict[str, Resource | None]:
        """Return the resources by their words. The first version of a group that serves one is preferred."""
        words: dict[str, Resource | None] = {}
        for path in ("/api", "/apis"):
            for group in self._send("GET", path, accept=DISCOVERY)["items"]:
                own: dict[str, Resource] = {}
                for version in group["versions"]:
                    for entry in version.get("resources", ()):
                        _enter(own, group["metadata"].get("name", ""), version["version"], entry)
                for word, resource in own.items():
                    several = word in words and words[word] != resource
                    core = several and (words[word] or resource).group == ""
                    words[word] = words[word] if core else None if several else resource
        return words

    def _send(self, method: str, path: str, body: object = None, kind: str = JSON, *, accept: str = JSON) -> Json:
        try:
            return self._repeated(method, path, body, kind, accept)
        except Refused as refusal:
            raise AssertionError(f"{method} {path}: ({refusal.reason}) {refusal.message}") from refusal
        except (OSError, http.client.HTTPException) as error:
            raise AssertionError(f"{method} {path}: {error!r}") from error

    def _repeated(self, method: str, path: str, body: object, kind: str, accept: str) -> Json:
        """Send a request, and again while the storage of a kind is set up because its CRD has just changed."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._rest.send(method, path, body, kind, accept=accept)
            except Refused as refusal:
                if refusal.status != 429 or time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_SECONDS)


_FLAGS = {
    "-n": "namespace",
    "--namespace": "namespace",
    "-A": "everywhere",
    "--all-namespaces": "everywhere",
    "-l": "labelSelector",
    "--selector": "labelSelector",
    "--field-selector": "fieldSelector",
}
_STRICT = "fieldValidation=Strict"


def _shown(document: Json) -> Json:
    """Return the object without the members that kubectl does not print unless it is asked for them."""
    document.get("metadata", {}).pop("managedFields", None)
    return document


def _enter(words: dict[str, Resource], group: str, version: str, entry: Json) -> None:
    """Enter a resource under its words, unless an earlier version has them."""
    kind = entry["responseKind"]["kind"]
    resource = Resource(group, version, entry["resource"], kind, entry["scope"] == "Namespaced")
    for name in {entry["resource"], entry.get("singularResource", ""), kind.lower(), *entry.get("shortNames", ())}:
        for word in (name, f"{name}.{group}", f"{name}.{version}.{group}"):
            words.setdefault(word.rstrip("."), resource)
