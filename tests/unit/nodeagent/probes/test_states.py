"""One probe's result, step by step (nodeagent.md §6.2 and its examples 27 to 29)."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from flotilla_nodeagent.cri.types import CONTAINER_NAME_LABEL, Container, State
from flotilla_nodeagent.probes import states
from flotilla_nodeagent.probes.definitions import Exec, Probe
from flotilla_nodeagent.probes.states import Outcome, Progress, Result

START = datetime(2026, 1, 1, tzinfo=UTC)
PROBE = Probe(namespace="ns", pod="p", uid="u", ip="", container="game", name="m#idle", handler=Exec(("true",)))
OK, BAD = Outcome(True, "0 players"), Outcome(False, "busy")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def container(number: int = 0, state: State = State.RUNNING) -> Container:
    return Container(id=f"c{number}", state=state, labels={CONTAINER_NAME_LABEL: "game"})


def rounds(letters: str, successes: int = 1, failures: int = 1) -> str:
    """Play outcomes: S and F are rounds, r a container that restarts. Returns the first letters of the results."""
    probe = msgspec.structs.replace(PROBE, successes=successes, failures=failures)
    progress, number, shown = states.seen(Progress(), container(), START), 0, ""
    for second, letter in enumerate(letters):
        if letter == "r":
            number += 1
            progress = states.seen(progress, container(number), at(second))
        else:
            progress = states.probed(progress, probe, OK if letter == "S" else BAD, at(second))
        assert progress.result is not None
        shown += progress.result.state[0]
    return shown


@pytest.mark.parametrize(
    ("letters", "successes", "failures", "shown"),
    [
        ("SFS", 1, 1, "SFS"),
        ("FFSFFF", 1, 3, "UUSSSF"),  # example 28
        ("SFFSFFF", 1, 3, "SSSSSSF"),
        ("SSS", 3, 1, "UUS"),
        ("FSSFSSS", 3, 1, "FFFFFFS"),
        ("SrS", 1, 1, "SUS"),  # example 29
        ("FFrFFF", 1, 3, "UUUUUF"),  # what another instance did does not count
    ],
)
def test_outcomes_in_a_row(letters: str, successes: int, failures: int, shown: str) -> None:
    assert rounds(letters, successes, failures) == shown


def test_a_first_look_makes_the_result_unknown() -> None:
    progress = states.seen(Progress(), container(), at(1.9))
    assert progress == Progress(container_id="c0", result=Result(state="Unknown", probed=at(1), since=at(1)))
    assert states.seen(progress, container(), at(50)) is progress


def test_a_container_that_does_not_run() -> None:
    progress = states.probed(states.seen(Progress(), container(), START), PROBE, OK, at(1))
    for state in (State.EXITED, State.CREATED, State.UNKNOWN):
        stopped = states.seen(progress, container(state=state), at(2))
        message = "Container(game) is Non-running"
        assert stopped.result == Result(state="Failed", message=message, probed=at(2), since=at(2))
        assert states.seen(stopped, container(state=state), at(3)) is stopped


def test_a_new_message_is_stored_without_a_transition() -> None:
    progress = states.probed(states.seen(Progress(), container(), START), PROBE, OK, at(1))
    again = states.probed(progress, PROBE, OK, at(2))
    assert again.result == progress.result
    other = states.probed(again, PROBE, Outcome(True, "1 player"), at(3))
    assert other.result == Result(state="Succeeded", message="1 player", probed=at(3), since=at(1))
    refreshed = states.probed(other, PROBE, Outcome(True, "1 player"), at(4), refresh=True)
    assert refreshed.result == Result(state="Succeeded", message="1 player", probed=at(4), since=at(1))


def test_another_handler_begins_anew() -> None:
    progress = states.probed(states.seen(Progress(), container(), START), PROBE, OK, at(1))
    anew = states.redefined(progress, at(2))
    assert anew.container_id == "c0"
    assert anew.in_a_row == 0
    assert anew.result == Result(state="Unknown", probed=at(2), since=at(2))
    assert states.redefined(Progress(), at(2)) == Progress()


@pytest.mark.parametrize(
    ("probed", "started", "kept"), [(10, 5.0, True), (10, 10.0, True), (10, 10.1, False), (10, 0.0, False)]
)
def test_a_reported_result_of_an_unknown_container(probed: float, started: float, kept: bool) -> None:
    """Keep the result only if the container had started by then; times are whole seconds, rounded down."""
    known = Progress(result=Result(state="Succeeded", message="0 players", probed=at(probed), since=at(1)))
    since = started and at(started).timestamp()
    progress = states.seen(states.placed(known, container(), since), container(), at(20))
    assert progress.result is not None
    assert progress.result.state == ("Succeeded" if kept else "Unknown")


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1024),
        ("ä" * 1000, "ä" * 512),
        ("a" + "ä" * 1000, "a" + "ä" * 511),
        ("tab\tline\nend\r", "tab\tline\nend\r"),
        ("\x00\x1b", "\ufffd\ufffd"),
        ("\ud800", "?"),
    ],
)
def test_messages_are_cut(message: str, kept: str) -> None:
    assert states.cut(message) == kept
