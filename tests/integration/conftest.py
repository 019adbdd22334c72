"""One control plane with all services, shared by the tests that affect only their own namespaces.

A test gets it as `shared`. All others have a control plane of their own, one per file or per folder: those that kill or
wipe something, install or remove, or need flags.
"""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.support.fleet import Fleet
from tests.support.schedule import Units, file_of
from tests.support.shared_plane import shared_plane

HERE = Path(__file__).parent
SPREAD = (
    "advancedcronjob/test_admission.py",
    "advancedcronjob/test_runs.py",
    "advancedcronjob/test_seed_documents.py",
    "advancedcronjob/test_verbs.py",
    "broadcastjob/test_admission.py",
    "broadcastjob/test_jobs.py",
    "broadcastjob/test_seed_documents.py",
    "broadcastjob/test_verbs.py",
    "chart/test_accepted.py",
    "clients/test_autoscalers.py",
    "clients/test_game_servers.py",
    "clients/test_kubectl_kruise.py",
    "clients/test_rollouts.py",
    "cloneset/test_claims.py",
    "cloneset/test_clients.py",
    "cloneset/test_lifecycle.py",
    "cloneset/test_ownership.py",
    "cloneset/test_scaling.py",
    "cloneset/test_seed_documents.py",
    "cloneset/test_status.py",
    "cloneset/test_updates.py",
    "console/test_rights.py",
    "daemonset/test_admission.py",
    "daemonset/test_pods.py",
    "daemonset/test_seed_documents.py",
    "daemonset/test_updates.py",
    "daemonset/test_verbs.py",
    "ephemeraljob/test_admission.py",
    "ephemeraljob/test_jobs.py",
    "ephemeraljob/test_refusals.py",
    "ephemeraljob/test_verbs.py",
    "podprobemarker/test_admission.py",
    "podprobemarker/test_markers.py",
    "podprobemarker/test_verbs.py",
    "podunavailablebudget/test_budgets.py",
    "podunavailablebudget/test_neighbours.py",
    "podunavailablebudget/test_verbs.py",
    "recreate/test_faults.py",
    "recreate/test_refusals.py",
    "recreate/test_restarts.py",
    "resourcedistribution/test_distribution.py",
    "sidecarset/test_admission.py",
    "sidecarset/test_rollouts.py",
    "statefulset/test_admission.py",
    "statefulset/test_claims.py",
    "statefulset/test_ownership.py",
    "statefulset/test_persistent_pod_state.py",
    "statefulset/test_seed_documents.py",
    "statefulset/test_updates.py",
    "test_bus_watched.py",
    "test_gitops_health.py",
    "test_plan.py",
    "test_read_verbs.py",
    "test_state_metrics.py",
    "uniteddeployment/test_admission.py",
    "uniteddeployment/test_subsets.py",
    "workloadspread/test_places.py",
)
"""Files whose tests share the plane and need nothing of each other: any worker may run any of them at any time."""
TOGETHER = (
    "browser/",
    "console/test_actions.py",
    "console/test_outages.py",
    "console/test_own_machine.py",
    "console/test_pages.py",
    "faults/test_bad_objects.py",
    "faults/test_outages.py",
    "faults/test_rollout_kills.py",
    "faults/test_shards.py",
    "faults/test_users.py",
    "gates/",
    "jobs/",
    "kube/",
    "policies/",
)
"""Files that share the control plane of their folder, or its browser, one after the other."""
LONG = (
    "test_install.py",
    "faults/",
    "console/",
    "chart/",
    "test_doctor.py",
    "test_service_life.py",
    "kube/",
    "resourcedistribution/test_kills.py",
    "policies/",
    "jobs/",
    "daemonset/test_nodes.py",
    "broadcastjob/test_nodes.py",
    "test_injection.py",
    "adopt/",
    "gates/",
)
"""Minutes each, the longest first: they begin in this order, so that none is left alone at the end."""
PATIENT = (
    "advancedcronjob",
    "broadcastjob",
    "clients",
    "cloneset",
    "daemonset",
    "ephemeraljob",
    "gates",
    "jobs",
    "podprobemarker",
    "podunavailablebudget",
    "policies",
    "recreate",
    "statefulset",
    "uniteddeployment",
    "workloadspread",
)
"""Folders whose tests have five minutes each."""
WHOLE_FILES = 3
"""Workers at files with planes of their own, as long as there is something else to do."""


def unit(nodeid: str) -> str:
    """Return what a worker gets with this test: the test alone, its file, or the files that share a plane."""
    file = file_of(nodeid)
    path = file.partition(f"/{HERE.name}/")[2]
    if path in SPREAD:
        return nodeid
    return path.partition("/")[0] if path.startswith(TOGETHER) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    return Units(config, log, unit, WHOLE_FILES) if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests, long files first and freely assignable tests last, and give scenarios more time.

    The first scenario of a file waits for its control plane, too; on a busy machine that takes half a minute.
    """

    def order(item: pytest.Item) -> int:
        if unit(item.nodeid) == item.nodeid:
            return len(LONG) + 1
        path = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
        return next((position for position, long in enumerate(LONG) if path.startswith(long)), len(LONG))

    items.sort(key=order)
    for item in items:
        if item.path.parent.name in PATIENT and item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Yield the control plane and services that all tests of this run share, on any worker.

    Its tests have namespaces of their own, and kill, install and remove nothing.
    """
    folder = tmp_path_factory.getbasetemp()
    run = folder.parent if hasattr(request.config, "workerinput") else folder
    with shared_plane(run / "shared") as flotilla:
        yield flotilla


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the state of the shared services to the report of a test that failed with them."""
    report = yield
    flotilla = getattr(item, "funcargs", {}).get("shared")
    if report.failed and isinstance(flotilla, Fleet):
        report.sections.append(("shared services", flotilla.state()))
    return report
