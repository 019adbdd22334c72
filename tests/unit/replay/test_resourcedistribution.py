"""`flotilla bundle` of ResourceDistributions: reasons and writes, and nothing of what is distributed."""

from flotilla_cli.bundle.capture import Interest
from flotilla_cli.replay.recording import RecordedTables
from flotilla_common.api.resources import CONFIG_MAP, NAMESPACE, SECRET
from flotilla_common.control.keystate import Memory
from flotilla_common.control.replay_controller import Planning, ReplayController
from flotilla_sidecar.resourcedistribution.controller import CONTROLLER
from tests.support.fake_clock import START, FakeClock

KEY = ("", "login")


def test_writes_are_heard_of_in_all_namespaces() -> None:
    assert Interest(CONTROLLER, *KEY).act_filters == [
        "act.v1.*.*._.*",
        "act.v1.*.secrets.*.*",
        "act.v1.*.configmaps.*.*",
    ]


def test_no_stream_of_secrets_is_asked_for() -> None:
    assert not {SECRET, CONFIG_MAP, NAMESPACE} & {*Interest(CONTROLLER, *KEY).others.values()}


def test_nothing_is_planned_again() -> None:
    offline = ReplayController(CONTROLLER, RecordedTables(()), Planning(), FakeClock())
    assert offline.decide(KEY, Memory(), START) is None
