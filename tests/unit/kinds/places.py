"""The places where a kind has to appear, by name. Each function reports whether it does.

Places `OF_KINDS` are generated from the catalogue, those `OF_CONTROLLERS` from the specs that installed services list.
For `WRITTEN` ones an author writes a file.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from click.shell_completion import ShellComplete

from flotilla_cli.main import main
from flotilla_cli.options import find_kind
from flotilla_common.api import crds, kinds
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.resources import Resource
from flotilla_common.api.webhooks import mutating_entries, paths, validating_entries
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.gates import Gates
from flotilla_common.installed import published
from flotilla_common.settings import known_flags
from flotilla_common.settings.load import WORKERS
from flotilla_insight import views
from flotilla_insight.installation import rbac
from flotilla_insight.installation.manifests import manifests
from flotilla_insight.services import bus_permissions, controllers, installed
from flotilla_insight.traffic import LineReader
from flotilla_watcher.routes import routes
from flotilla_webhook import access
from flotilla_webhook.kinds import kind_handlers
from flotilla_webhook.server.reviews import convert
from tests.simulation.world import services
from tests.testkit.admission import tools
from tests.testkit.apiserver import FakeApi

ROOT = Path(__file__).parents[3]
ENTRIES = {"mutate": mutating_entries, "validate": lambda: validating_entries(Gates.parse(""))}
Place = Callable[[Kind], bool]


def crd(kind: Kind) -> bool:
    return kind.definition_name in {manifest["metadata"]["name"] for manifest in crds.manifests()}


def installation(kind: Kind) -> bool:
    return kind.definition_name in {document["metadata"]["name"] for document in manifests(Gates.parse(""))}


def webhook_entries(kind: Kind) -> bool:
    return all(_asks(ENTRIES[verb](), kind) for verb in kind.rules().admission.handlers)


def _asks(entries: Iterable[Json], kind: Kind) -> bool:
    asked = [(rule["apiGroups"], rule["resources"]) for entry in entries for rule in entry["rules"]]
    return ([kind.resource.group], [kind.resource.plural]) in asked


def webhook_paths(kind: Kind) -> bool:
    served = kind_handlers(tools(FakeApi()))
    return all(path in served for verb in kind.rules().admission.handlers for path in paths(kind, verb))


def conversion(kind: Kind) -> bool:
    """Report whether the CRD requests conversion and the webhook supports it, or neither is the case."""
    definition = next((one for one in crds.manifests() if one["metadata"]["name"] == kind.definition_name), None)
    if definition is None:
        return False
    asked = definition["spec"]["conversion"]["strategy"] == "Webhook"
    document = {"apiVersion": kind.api_versions[0], "kind": kind.name, "metadata": {"name": "x"}, "spec": {}}
    request = {"uid": "u", "desiredAPIVersion": kind.api_versions[-1], "objects": [document]}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "request": request}
    answer = msgspec.json.decode(convert(msgspec.json.encode(review)))["response"]
    return asked == (answer["result"]["status"] == "Success")


def conversion_is_kept_right(kind: Kind) -> bool:
    return (kind.definition_name in access.converted()) == (kind.rules().convert is not None)


def view_role(kind: Kind) -> bool:
    """Report whether the role for viewing has the kind; one that holds Secrets is in none."""
    found = [rule for rule in rbac.view_role()["rules"] if rule["apiGroups"] == [kind.resource.group]]
    return any(kind.resource.plural in rule["resources"] for rule in found) is not kind.confidential


def user_roles(kind: Kind) -> bool:
    names = {role["metadata"]["name"] for role in rbac.user_roles()}
    return {f"kruise-{kind.singular}-{who}-role" for who in ("editor", "viewer")} <= names


def watcher(kind: Kind) -> bool:
    return kind.resource in published()


def node_copies(kind: Kind) -> bool:
    return (kind.resource in routes()) == (kind.node_route is not None)


def worker_flag(kind: Kind) -> bool:
    flags = {flag: default for flag, _, _, default in known_flags()}
    return not kind.workers.flag or flags.get(f"{kind.workers.flag}-workers") == kind.workers.default


def words(kind: Kind) -> bool:
    try:
        return {find_kind(word) for word in (kind.name, *kind.words)} == {kind.resource}
    except click.BadParameter:
        return False


def completion(kind: Kind) -> bool:
    offered = ShellComplete(main, {}, "flotilla", "_FLOTILLA_COMPLETE").get_completions(["get"], "")
    return {kind.singular, *kind.short_names} <= {item.value for item in offered}


def tail(kind: Kind) -> bool:
    return _named_in_tail(kind.resource)


def _named_in_tail(resource: Resource) -> bool:
    message = Message(subject=subjects.kube(resource, "", "x"), data=b"{}", headers={"op": "ADDED"})
    line = LineReader().read(message, datetime(2026, 1, 1, tzinfo=UTC))
    return line is not None and line.kind == resource.kind


OF_KINDS: dict[str, Place] = {
    "CRDs (api/crds)": crd,
    "objects of an installation (cli/install/manifests.py)": installation,
    "webhook entries (api/webhooks.py)": webhook_entries,
    "webhook paths (webhook/kinds.py)": webhook_paths,
    "conversion (webhook/server/reviews.py)": conversion,
    "CRDs whose conversion is kept right (webhook/access.py)": conversion_is_kept_right,
    "view role (cli/install/rbac.py)": view_role,
    "roles for its users (cli/install/rbac.py)": user_roles,
    "what the watcher publishes (installed.py)": watcher,
    "what nodes get copies of (watcher/routes.py)": node_copies,
    "flag for its workers (settings)": worker_flag,
    "words of the command line (cli/kinds.py)": words,
    "shell completion (cli/kinds.py)": completion,
    "names in tail (cli/traffic.py)": tail,
}


def service(kind: Kind) -> bool:
    return kind.service in installed()


def planned(kind: Kind) -> bool:
    return kind.resource in controllers()


def role(kind: Kind) -> bool:
    """Report whether the service's account may read the kind."""
    name = rbac.account(kind.service)
    objects = rbac.objects()
    roles = [one for one in objects if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", name)]
    rules = [rule for one in roles for rule in one["rules"] if kind.resource.group in rule["apiGroups"]]
    return any(kind.resource.plural in rule["resources"] and "watch" in rule["verbs"] for rule in rules)


def on_the_bus(kind: Kind) -> bool:
    return kind.service in bus_permissions()


def mirrors(kind: Kind) -> bool:
    """Return the watcher publishes what its controller reads."""
    spec = controllers().get(kind.resource)
    return spec is not None and {watch.resource for watch in spec.all_watches if not watch.direct} <= {*published()}


def dependents_in_tail(kind: Kind) -> bool:
    spec = controllers().get(kind.resource)
    return spec is not None and all(_named_in_tail(watch.resource) for watch in spec.all_watches if not watch.direct)


def simulated(kind: Kind) -> bool:
    return kind.service in services()


OF_CONTROLLERS: dict[str, Place] = {
    "the service that it names (an entry point of flotilla.services)": service,
    "its controller: bundle and replay (an entry point of flotilla.parts)": planned,
    "role of its service (cli/install/rbac.py)": role,
    "permissions of its service on the bus (cli/services.py)": on_the_bus,
    "what its controller reads, from the watcher (installed.py)": mirrors,
    "names of its dependents in tail (cli/traffic.py)": dependents_in_tail,
    "processes of the simulation (tests/simulation/world.py)": simulated,
}


def folder(kind: Kind) -> bool:
    """Report whether the kind has all its files. A small kind has one for schema, admission and conversion."""
    place = Path(kinds.__path__[0]) / kind.singular
    rules = ["api"] if (place / "api.py").is_file() else ["crd", "admission"]
    complete = all((place / f"{part}.py").is_file() for part in ("types", "kind", *rules))
    return complete and (kind.rules().convert is None or _converts(place, rules[-1]))


def _converts(place: Path, admission: str) -> bool:
    """Report whether there is a conversion, beside the types or admission."""
    texts = [(place / f"{part}.py").read_text(encoding="utf-8") for part in ("types", admission)]
    return any(" = Conversion(" in text for text in texts)


def flag_of_the_reference(kind: Kind) -> bool:
    return not kind.workers.flag or kind.workers.flag in WORKERS


def kind_view(kind: Kind) -> bool:
    return views.has_view(kind.resource)


def page(kind: Kind) -> bool:
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in (ROOT / "docs").glob("*.md")]
    return any(kind.name in title for title in titles)


def scenario(kind: Kind) -> bool:
    files = (ROOT / "tests" / "simulation" / "scenarios").glob("*.py")
    return any(f"kinds.{kind.singular}." in path.read_text(encoding="utf-8") for path in files)


WRITTEN: dict[str, Place] = {
    "its folder (api/kinds)": folder,
    "flags of install.md §4 (settings/load.py)": flag_of_the_reference,
    "what the command line knows of it (cli/views)": kind_view,
    "a page of its own, or its name in the title of one (docs)": page,
    "scenarios (tests/simulation/scenarios)": scenario,
}
