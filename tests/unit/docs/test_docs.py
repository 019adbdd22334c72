"""The documents match the code: links lead somewhere, commands exist, and everything that users meet is described."""

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

from flotilla_cli.main import VERBS, main
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.advancedcronjob import validation as cron_rules
from flotilla_common.api.kinds.advancedcronjob.api import default_cron_job
from flotilla_common.api.kinds.broadcastjob import api as broadcast_rules
from flotilla_common.api.kinds.broadcastjob.api import default_broadcast_job
from flotilla_common.api.kinds.cloneset import validation as rules
from flotilla_common.api.kinds.cloneset.api import default_cloneset
from flotilla_common.api.kinds.containerrecreaterequest import admission as recreate_rules
from flotilla_common.api.kinds.ephemeraljob import api as ephemeral_rules
from flotilla_common.api.versions import V1BETA1
from flotilla_common.control.plan import Intent
from flotilla_common.gates import NAMES as GATES
from flotilla_common.gates import Gates
from flotilla_common.settings import known_flags
from tests.unit.docs import reason_states, settings_table

ROOT = Path(__file__).parents[3]
DOCS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "libs/*/README.md",
        "services/*/README.md",
        "cli/README.md",
        "devcluster/README.md",
    )
    for path in ROOT.glob(pattern)
)
SOURCES = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for folder in ("libs", "services", "cli", "devcluster")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_METRICS = ("Counter", "Gauge", "GaugeMetricFamily", "Histogram", "LegacyCounter")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def calls(*names: str) -> Iterator[ast.Call]:
    """Yield the calls of functions, methods or classes of these names in all sources."""
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in names:
                    yield node


def strings_in(node: ast.AST | None) -> set[str]:
    return {
        part.value
        for part in ast.walk(node or ast.Pass())
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def cause_codes() -> set[str]:
    """Return all codes of causes of pods: literals, and values assigned to the names used as codes."""
    codes = [keyword.value for call in calls("Cause") for keyword in call.keywords if keyword.arg == "code"]
    names = {code.id for code in codes if isinstance(code, ast.Name)}
    found = set[str]().union(*map(strings_in, codes))
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
                found |= strings_in(node.value)
    return {code for code in found if re.fullmatch(r"([A-Z][a-z]+)+", code)}


def finding_codes() -> set[str]:
    """Return all codes of `flotilla doctor`: given by name, as first argument of a check's helper, or in a tuple."""
    found: set[str] = set()
    for path, tree in SOURCES.items():
        if "doctor" in path.parts:
            found |= {
                one for one in strings_in(tree) if re.fullmatch(r"(CRD|[A-Z]+[a-z]+)([A-Z]+[a-z]+)+|Undecodable", one)
            }
    return found - _NO_FINDINGS


_NO_FINDINGS = {
    *(
        "ClusterRole",
        "ClusterRoleBinding",
        "RoleBinding",
        "ServiceAccount",
        "StatefulSet",
        "DaemonSet",
        "EndpointSlice",
    ),
    *("PodScheduled", "ContainerCreating", "PodInitializing", "ReplicaFailure", "NamesAccepted", "PreferNoSchedule"),
}
"""Words of Kubernetes in the same sources."""


def metric_names() -> set[str]:
    """Return the names under which metrics are shown: the client library ends counters in _total."""
    found: set[str] = set()
    for call in calls(*_METRICS):
        kind = call.func.id if isinstance(call.func, ast.Name) else ""
        name = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
        if isinstance(name, str) and name:
            found.add(f"{name.removesuffix('_total')}_total" if kind == "Counter" else name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path):
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in _LINK.findall(text):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} leads nowhere"
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), f"{target}: no such heading"


def anchors(text: str) -> set[str]:
    """Return the anchors that renderers make of headings."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands() -> list[tuple[str, str]]:
    """Return (page, command line) of every `flotilla …` in a fenced block."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        for language, block in _FENCE.findall(page.read_text(encoding="utf-8")):
            lines = block.splitlines() if language in ("", "sh", "console") else []
            found += [(named(page), line.removeprefix("$ ")) for line in lines if re.match(r"(\$ )?flotilla ", line)]
    return found


@pytest.mark.parametrize(("page", "line"), commands())
def test_commands_exist(page: str, line: str):
    words = shlex.split(line, comments=True)
    verb = words[1]
    assert verb in VERBS, f"{page}: {line}"
    context = click.Context(main)
    command = main.get_command(context, verb)
    if isinstance(command, click.Group):
        command = command.get_command(context, words[2])
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
    if verb == "run":
        known |= {f"--{name}" for flag, _, option, _ in known_flags() for name in (flag, *option.flags)}
        known |= {"--split", "--config"}
    used = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert used <= known, f"{page}: {line}"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_described(verb: str):
    assert any(f"flotilla {verb}" in text for text in DOCS.values())


def test_the_table_of_settings_is_that_of_the_schema():
    assert settings_table.current() == settings_table.table(), "run python -m tests.unit.docs.settings_table"


def test_the_table_of_reasons_is_that_of_the_sources():
    assert reason_states.current() == reason_states.table(), "run python -m tests.unit.docs.reason_states"


def test_every_reason_has_a_state():
    passed_on = {name for name, (state, _) in reason_states.CALLS.items() if isinstance(state, int)}
    assert [one.place for one in reason_states.given() if not one.states and one.function not in passed_on] == []


def test_no_reason_says_that_it_waits():
    """Its state does."""
    starts = {text for one in reason_states.given() for text in one.texts}
    assert len(starts) > 100
    assert {text for text in starts if text.lower().startswith("wait")} == set()


def test_reason_codes_are_explained():
    codes = {code for one in reason_states.given() for code in one.codes} | cause_codes()
    assert {"WaitingForMaxUnavailable", "WaitingForAvailability", "Undecodable"} <= codes
    described = set(re.findall(r"^\| `(\w+)` \|", "\n".join(DOCS.values()), re.MULTILINE))
    assert codes - described == set()


def test_intents_of_writes_are_explained():
    assert {intent for intent in Intent if f"`{intent}`" not in DOCS["bus.md"]} == set()


def test_metrics_are_described():
    names = metric_names()
    assert {"workqueue_depth", "flotilla_watcher_events_total"} <= names
    assert {name for name in names if f"`{name}`" not in DOCS["operations.md"]} == set()


def definitions() -> set[str]:
    """Return the names of classes and functions in all sources, methods also as `Class.method`."""
    found: set[str] = set()
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
                found |= {node.name, *(f"{node.name}.{method}" for method in methods)}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
    return found


def test_the_architecture_names_files_and_functions_that_exist():
    text = DOCS["architecture.md"]
    paths = {str(path.relative_to(ROOT)) for path in SOURCES}
    named_files = set(re.findall(r"`([\w/]+\.py)`", text))
    missing = {file for file in named_files if not any(path.endswith(f"/{file}") or path == file for path in paths)}
    assert missing == set()
    # A file is named together with what is in it: `file.py` (`name`, `name`), or `Class.method` anywhere.
    listed = " ".join(re.findall(r"\.py`\s+\(([^)]*)\)", text))
    functions = set(re.findall(r"`(_?[A-Za-z]\w+(?:\.\w+)?)`", listed)) | set(
        re.findall(r"`([A-Z]\w+\.[a-z_]+)`", text)
    )
    functions = {name for name in functions if not name.endswith(".py")}
    assert len(functions) > 30
    assert functions - definitions() == set()


def test_every_threshold_has_its_figure():
    names = tomllib.loads((ROOT / "tests" / "perf" / "thresholds.toml").read_text(encoding="utf-8")).keys()
    assert {name for name in names if f"`{name}`" not in DOCS["performance.md"]} == set()


def test_gates_that_are_named_exist():
    table = DOCS["cloneset.md"].partition("## Gates")[2].partition("\n## ")[0]
    named_gates = set(re.findall(r"`([A-Z]\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))))
    assert len(named_gates) > 5
    assert named_gates <= GATES


def manifests() -> list[Json]:
    """Return the CloneSets of the user's page; a fragment is merged into the first of them."""
    blocks = [block for language, block in _FENCE.findall(DOCS["cloneset.md"]) if language == "yaml"]
    documents = [msgspec.yaml.decode(block, type=Json) for block in blocks]
    return [document if "kind" in document else merged(documents[0], document) for document in documents]


def merged(base: Json, part: Json) -> Json:
    both = {key: merged(base[key], part[key]) for key in base.keys() & part.keys() if isinstance(part[key], dict)}
    return {**base, **part, **both}


@pytest.mark.parametrize("document", manifests(), ids=lambda document: ",".join(document["spec"]))
def test_examples_are_valid(document: Json):
    document = msgspec.json.decode(msgspec.json.encode(document))
    rules.check_types(document)
    assert document["apiVersion"] in (V1BETA1, "apps.kruise.io/v1alpha1")
    defaulted = default_cloneset(document, None, Gates.parse(""))
    assert not rules.validate(defaulted)


def requests() -> list[Json]:
    """Return the ContainerRecreateRequests of the user's page."""
    blocks = [block for language, block in _FENCE.findall(DOCS["containerrecreaterequest.md"]) if language == "yaml"]
    documents = [msgspec.yaml.decode(block, type=Json) for block in blocks]
    return [document for document in documents if "kind" in document]


@pytest.mark.parametrize("document", requests(), ids=lambda document: document["metadata"]["name"])
def test_examples_of_container_restarts_are_valid(document: Json):
    spec = recreate_rules.check_types(document).spec
    assert recreate_rules.spec_problem(spec) == ""
    assert set(document["spec"]) <= {field.encode_name for field in msgspec.structs.fields(spec)}
    assert set(document["spec"]["strategy"]) <= {field.encode_name for field in msgspec.structs.fields(spec.strategy)}


def examples(page: str) -> Iterator[Json]:
    """Yield the objects of a page; a fragment replaces members of the first one."""
    blocks = [block for language, block in _FENCE.findall(DOCS[page]) if language == "yaml"]
    first = msgspec.yaml.decode(blocks[0], type=Json)
    for block in blocks:
        yield {**first, **msgspec.yaml.decode(block, type=Json)}


def test_examples_of_jobs_are_valid():
    gates = Gates.parse("")
    for document in examples("broadcastjob.md"):
        broadcast_rules.check_types(document)
        assert not broadcast_rules.faults_of(default_broadcast_job(document, None, gates), "sweep")
    for document in examples("advancedcronjob.md"):
        cron_rules.check_types(document)
        assert not cron_rules.validate(default_cron_job(document, None, gates), "nightly-sweep")
    for document in examples("ephemeraljob.md"):
        ephemeral_rules.check_types(document)
        assert not ephemeral_rules.faults_of(document)


def test_documents_name_no_machine():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"/(root|work|home)/", text), named(page)


def test_every_finding_of_the_doctor_is_explained():
    explained = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|[^|]*\|", DOCS["doctor.md"], re.MULTILINE))))
    codes = finding_codes()
    assert len(codes) > 50
    assert codes == {code for code in explained if code[0].isupper()}
