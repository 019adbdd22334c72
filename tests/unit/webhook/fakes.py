"""The records of budgets over fakes."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Journal
from flotilla_webhook.budgets.reports import COMPONENT, BudgetRecords
from flotilla_webhook.metrics import Metrics
from tests.support.dice import Dice
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi


def records(
    cluster: FakeApi, bus: FakeBus | None = None, log: Callable[[bytes], None] = lambda _: None
) -> BudgetRecords:
    """Return the records of budgets over a fake cluster and a fake bus."""
    clock = FakeClock()
    journal, events = Journal(bus or FakeBus(), clock, "webhook", "1"), Recorder(cluster.api, clock, Dice(), COMPONENT)
    return BudgetRecords(journal, events, Metrics(CollectorRegistry()), log)
