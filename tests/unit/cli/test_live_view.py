"""The state of `get -w` while resources cannot be followed."""

from datetime import UTC, datetime

from flotilla_cli.tree.live import LiveView
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.resources import POD, REVISION
from flotilla_common.clock import ManualClock
from flotilla_insight.views import view_of
from tests.testkit.apiserver import FakeApi

NOW = datetime(2026, 3, 1, 8, 2, 0, tzinfo=UTC)


def test_trouble_with_one_resource_is_shown_while_others_are_followed() -> None:
    live = LiveView(FakeApi().api, ManualClock(NOW), view_of(UNITED_DEPLOYMENT), "shop", "web")
    live.set_trouble(POD, "pods are forbidden")
    live.set_trouble(REVISION, "")
    assert live.trouble == "pods are forbidden"
    live.changed.clear()
    live.set_trouble(POD, "")
    assert (live.trouble, live.changed.is_set()) == ("", True)
    live.changed.clear()
    live.set_trouble(POD, "")
    assert not live.changed.is_set()
