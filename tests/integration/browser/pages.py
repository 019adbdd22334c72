"""The pages of the console, as far as all of them have something in common."""

from dataclasses import dataclass

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_console import paths
from tests.integration.browser.site.scene import CRASHING, EVIL, LAIR, SHOP, WEB


@dataclass(frozen=True)
class Listed:
    """A page: its path, and a text that shows that it was built."""

    path: str
    says: str


def workload(namespace: str, name: str, *rest: str) -> str:
    """Return the path of a CloneSet's page."""
    return paths.workload(CLONE_SET.group, CLONE_SET.plural, namespace, name, *rest)


PAGES = {
    "fleet": Listed(paths.FLEET, "ledger"),
    "workload": Listed(workload(SHOP, WEB), CRASHING),
    "timeline": Listed(workload(SHOP, WEB, "timeline"), CRASHING),
    "action": Listed(workload(SHOP, WEB, "action", "pause"), WEB),
    "pod": Listed(paths.pod(SHOP, CRASHING), "no such table: orders"),
    "nodes": Listed("/nodes", "node-3"),
    "node": Listed(paths.node("node-2"), CRASHING),
    "bus": Listed("/bus", "cloneset"),
    "doctor": Listed("/doctor", "Doctor"),
    "topology": Listed("/topology", "web-spread"),
}

EVIL_PAGES = {
    "fleet": paths.FLEET,
    "workload": workload(LAIR, EVIL),
    "timeline": workload(LAIR, EVIL, "timeline"),
    "pod": paths.pod(LAIR, "evil-pod"),
    "node": paths.node(EVIL),
    "nodes": "/nodes",
    "topology": "/topology",
    "search": "/?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E&namespace=%22%3E%3Csvg%20onload%3Dalert(1)%3E",
    "missing": "/pods/shop/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
}
"""Pages that show texts of an attacker."""
