"""Probes from the NodePodProbe's spec to its status (nodeagent.md §6, podprobemarker.md §6 and its examples)."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.nodepodprobe.types import (
    NODE_POD_PROBE,
    NodePodProbe,
    NodePodProbeSpec,
    NodeProbe,
    PodProbe,
    PodProbeStatus,
    ProbeState,
)
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.settings import Settings
from flotilla_nodeagent.cri.errors import CriError
from flotilla_nodeagent.cri.types import Executed
from tests.support.node_hub import NODE
from tests.support.node_scene import Scene, play

IDLE, BUSY = Executed(0, b"0 players"), Executed(1, b"", b"busy")
UNKNOWN = ("Unknown", "")


def probe(name: str = "idle", container: str = "game", *, command: str = "", **fields: Any) -> NodeProbe:
    """Return a probe whose command is answered by the machine."""
    document = {"exec": {"command": ["probe", command or name]}} | fields
    return NodeProbe(name=f"m#{name}", container_name=container, probe=msgspec.Raw(msgspec.json.encode(document)))


def pod(uid: str, *probes: NodeProbe, ip: str = "") -> PodProbe:
    return PodProbe(name=f"pod-{uid}", namespace="ns", uid=uid, ip=ip, probes=list(probes))


def want(scene: Scene, *pods: PodProbe) -> None:
    """Set the spec to these probes."""
    held = scene.hub.objects.get(("nodepodprobes", "", NODE), NodePodProbe(metadata=ObjectMeta(name=NODE, uid="n1")))
    scene.hub.put(NODE_POD_PROBE, msgspec.structs.replace(held, spec=NodePodProbeSpec(pod_probes=list(pods))))


def entry(scene: Scene, name: str = "idle", uid: str = "u") -> ProbeState | None:
    """Return what is reported of a probe."""
    pods = [one for one in scene.hub.probes().status.pod_probe_statuses if one.uid == uid]
    return next((one for of_pod in pods for one in of_pod.probe_states if one.name == f"m#{name}"), None)


def shown(scene: Scene, name: str = "idle", uid: str = "u") -> tuple[str, str]:
    """Return its state and message."""
    found = entry(scene, name, uid)
    return (found.state, found.message) if found is not None else ("", "")


def history(scene: Scene, name: str = "idle") -> list[tuple[str, str]]:
    """Return all states and messages that were reported, without repetitions."""
    told: list[tuple[str, str]] = []
    for report in scene.hub.said("nodepodprobes"):
        for of_pod in report.status.pod_probe_statuses:
            told += [(one.state, one.message) for one in of_pod.probe_states if one.name == f"m#{name}"]
    return [one for before, one in pairwise([("", ""), *told]) if one != before]


def rounds(scene: Scene, name: str = "idle") -> list[float]:
    """Return when the command was run."""
    return [at for at, _, one in scene.machine.probes if one == name]


async def begun(scene: Scene, *pods: PodProbe, after: float = 20.0) -> None:
    """Begin with an agent that has run for some time, and then one container with these probes, or one."""
    scene.start()
    await scene.at(after)
    scene.machine.start("u", "game")
    scene.machine.answers.setdefault("idle", IDLE)
    want(scene, *(pods or (pod("u", probe()),)))


def test_the_first_result_is_unknown_and_then_the_outcome(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene)
        await scene.until(lambda: shown(scene) == UNKNOWN, within=1)
        await scene.until(lambda: shown(scene) == ("Succeeded", "0 players"), within=2)
        found = entry(scene)
        assert found is not None
        assert found.last_probe_time == found.last_transition_time
        assert history(scene) == [UNKNOWN, ("Succeeded", "0 players")]
        await scene.at(scene.loop.time() + 1)
        assert [(one.reason, one.message, one.uid) for one in scene.hub.events] == [
            ("KruiseProbeFailed", "", "u"),
            ("KruiseProbeSucceeded", "0 players", "u"),
        ]
        assert {(one.component, one.type, one.kind) for one in scene.hub.events} == {
            ("kruise-daemon-podprobe", "Normal", "Pod")
        }

    play(tmp_path, story)


def test_changes_are_reported_at_once_and_nothing_else_is(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene)
        await scene.until(lambda: shown(scene)[0] == "Succeeded", within=3)
        said = len(scene.hub.said("nodepodprobes"))
        await scene.at(60)
        assert len(scene.hub.said("nodepodprobes")) == said
        scene.machine.answers["idle"] = BUSY
        await scene.until(lambda: shown(scene) == ("Failed", "busy"), within=1.5)
        before = entry(scene)
        scene.machine.answers["idle"] = Executed(2, b"", b"very busy")
        await scene.until(lambda: shown(scene) == ("Failed", "very busy"), within=1.5)
        after = entry(scene)
        assert before is not None
        assert after is not None
        assert after.last_transition_time == before.last_transition_time
        assert len(scene.hub.said("nodepodprobes")) == said + 2

    play(tmp_path, story)


def test_a_round_per_period_without_drift(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.probe_takes["idle"] = 0.7
        await begun(scene, pod("u", probe(periodSeconds=3)))
        await scene.at(83)
        times = rounds(scene)
        assert 19 <= len(times) <= 22
        assert all(2.9 < later - earlier < 3.1 for earlier, later in pairwise(times[1:]))

    play(tmp_path, story)


def test_first_rounds_after_a_start_are_spread(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        for number in range(60):
            scene.machine.start(f"u{number}", "game")
        want(scene, *(pod(f"u{number}", probe(periodSeconds=60)) for number in range(60)))
        await scene.at(10)
        scene.start()
        await scene.at(30)
        times = rounds(scene)
        assert len(times) == 60
        assert 8 < times[-1] - times[0] < 11

    play(tmp_path, story)


@pytest.mark.parametrize(("delay", "least"), [(0, 1.0), (5, 5.0)])
def test_a_restarted_container(tmp_path: Path, delay: int, least: float) -> None:
    """Follow examples 21 and 29: Unknown, and the outcome of the new instance after its initial delay."""

    async def story(scene: Scene) -> None:
        await begun(scene, pod("u", probe(periodSeconds=2, initialDelaySeconds=delay)))
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        old = scene.machine.newest("u", "game")
        scene.machine.exit(old.id)
        await scene.until(lambda: shown(scene) == UNKNOWN, within=5)
        await scene.until(lambda: shown(scene)[0] == "Succeeded", within=10)
        new = scene.machine.newest("u", "game")
        started = scene.machine.started[new.id] - scene.machine.started[old.id] + 20.0
        first = min(at for at, container, _ in scene.machine.probes if container == new.id)
        assert least <= first - started < least + 1
        assert history(scene)[1:] in (
            [("Succeeded", "0 players"), UNKNOWN, ("Succeeded", "0 players")],
            [("Succeeded", "0 players"), NOT_RUNNING, UNKNOWN, ("Succeeded", "0 players")],
        )

    play(tmp_path, story)


NOT_RUNNING = ("Failed", "Container(game) is Non-running")


def test_a_container_that_stays_down(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.restarts = False
        await begun(scene)
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        scene.machine.exit(scene.machine.newest("u", "game").id)
        await scene.until(lambda: shown(scene) == NOT_RUNNING, within=2)
        count = len(rounds(scene))
        await scene.at(scene.loop.time() + 20)
        assert len(rounds(scene)) <= count + 1
        scene.machine.start("u", "game")
        await scene.until(lambda: shown(scene)[0] == "Succeeded", within=5)

    play(tmp_path, story)


def test_an_outcome_of_a_container_that_has_ended_meanwhile_does_not_count(tmp_path: Path) -> None:
    """End a container while its command runs, and start another one before the command fails."""

    async def story(scene: Scene) -> None:
        await begun(scene)
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        scene.machine.probe_takes["idle"] = 0.95
        count = len(rounds(scene))
        await scene.until(lambda: len(rounds(scene)) > count)
        scene.machine.exit(scene.machine.newest("u", "game").id)
        await scene.until(lambda: shown(scene)[0] == "Unknown", within=5)
        assert ("Failed", "") not in history(scene)

    play(tmp_path, story)


def test_thresholds(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene, pod("u", probe(failureThreshold=3, successThreshold=2)))
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        scene.machine.answers["idle"] = BUSY
        began = scene.loop.time()
        failed = await scene.until(lambda: shown(scene)[0] == "Failed")
        assert 2 < failed - began < 4
        scene.machine.answers["idle"] = IDLE
        again = await scene.until(lambda: shown(scene)[0] == "Succeeded")
        assert 1 < again - failed < 3

    play(tmp_path, story)


def test_a_command_that_takes_too_long_and_one_that_cannot_be_run(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene, pod("u", probe(), probe("other")))
        await scene.until(lambda: shown(scene)[0] == shown(scene, "other")[0] == "Succeeded")
        scene.machine.probe_takes["idle"] = 5
        scene.machine.answers["other"] = CriError("executable file not found in $PATH")
        await scene.until(lambda: shown(scene)[0] == "Failed", within=5)
        assert "timeout 1s exceeded" in shown(scene)[1]
        await scene.at(scene.loop.time() + 10)
        assert shown(scene, "other")[0] == "Succeeded"

    play(tmp_path, story)


def test_two_probes_of_one_container(tmp_path: Path) -> None:
    """Follow example 19: neither hides the other."""

    async def story(scene: Scene) -> None:
        scene.machine.answers["full"] = BUSY
        await begun(scene, pod("u", probe(), probe("full")))
        await scene.until(
            lambda: (shown(scene), shown(scene, "full")) == (("Succeeded", "0 players"), ("Failed", "busy"))
        )
        assert len(scene.hub.probes().status.pod_probe_statuses) == 1

    play(tmp_path, story)


def test_changed_definitions(tmp_path: Path) -> None:
    """Another command resets the result (example 9), another period or threshold is applied at once."""

    async def story(scene: Scene) -> None:
        scene.machine.answers["full"] = BUSY
        await begun(scene, pod("u", probe(periodSeconds=100)))
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        want(scene, pod("u", probe(periodSeconds=100, command="full")))
        await scene.until(lambda: shown(scene) == UNKNOWN, within=1)
        await scene.until(lambda: shown(scene) == ("Failed", "busy"), within=1)
        want(scene, pod("u", probe(periodSeconds=2, command="full")))
        count = len(rounds(scene, "full"))
        await scene.at(scene.loop.time() + 10)
        assert count + 3 <= len(rounds(scene, "full")) <= count + 6
        assert len([one for one in history(scene) if one == UNKNOWN]) == 2

    play(tmp_path, story)


def test_what_is_no_longer_asked_for_leaves_the_status(tmp_path: Path) -> None:
    """Follow examples 14, 15 and 30: a probe, a pod, a pod of the same name."""

    async def story(scene: Scene) -> None:
        await begun(scene, pod("u", probe(), probe("other")))
        await scene.until(lambda: shown(scene)[0] == shown(scene, "other")[0] == "Succeeded")
        want(scene, pod("u", probe()))
        await scene.until(lambda: entry(scene, "other") is None, within=2)
        scene.machine.start("u2", "game")
        want(scene, msgspec.structs.replace(pod("u2", probe()), name="pod-u"))
        await scene.until(lambda: entry(scene) is None and shown(scene, uid="u2")[0] == "Succeeded", within=4)
        count = len(scene.machine.probes)
        want(scene)
        await scene.until(lambda: not scene.hub.probes().status.pod_probe_statuses, within=3)
        await scene.at(scene.loop.time() + 5)
        assert len(scene.machine.probes) <= count + 2

    play(tmp_path, story)


def test_a_container_that_does_not_exist_has_no_result(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene, pod("u", probe(), probe("other", container="none")))
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        await scene.at(60)
        assert entry(scene, "other") is None
        scene.machine.start("u", "none")
        await scene.until(lambda: shown(scene, "other")[0] == "Succeeded", within=4)

    play(tmp_path, story)


def test_results_are_refreshed_together(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene, *(pod("u", *(probe(f"p{n}", periodSeconds=n + 1) for n in range(8))),))
        await scene.until(lambda: all(shown(scene, f"p{n}")[0] == "Succeeded" for n in range(8)))
        said, first = len(scene.hub.said("nodepodprobes")), entry(scene, "p0")
        await scene.at(1250)
        assert said + 2 <= len(scene.hub.said("nodepodprobes")) <= said + 16
        last = entry(scene, "p0")
        assert first is not None
        assert last is not None
        assert last.last_probe_time is not None
        assert first.last_probe_time is not None
        assert 1100 < (last.last_probe_time - first.last_probe_time).total_seconds() < 1250
        assert last.last_transition_time == first.last_transition_time
        assert len(scene.hub.events) == 16

    play(tmp_path, story)


async def restarted(scene: Scene, seconds: float = 3.0) -> None:
    scene.kill()
    await scene.at(scene.loop.time() + seconds)
    scene.start()


def test_a_restart_of_the_agent_changes_nothing(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.answers["full"] = BUSY
        await begun(scene, pod("u", probe(), probe("full", periodSeconds=30)))
        await scene.until(lambda: shown(scene)[0] == "Succeeded" and shown(scene, "full")[0] == "Failed", within=40)
        told, said = history(scene), len(scene.hub.said("nodepodprobes"))
        events = len(scene.hub.events)
        for _ in range(3):
            await restarted(scene)
            await scene.at(scene.loop.time() + 20)
        assert (history(scene), len(scene.hub.said("nodepodprobes"))) == (told, said)
        assert len(scene.hub.events) == events
        scene.machine.answers["idle"] = BUSY
        await scene.until(lambda: shown(scene) == ("Failed", "busy"), within=3)

    play(tmp_path, story)


def test_a_container_that_was_restarted_while_the_agent_was_away(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene, pod("u", probe(initialDelaySeconds=8)))
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        scene.kill()
        scene.machine.exit(scene.machine.newest("u", "game").id)
        scene.machine.answers["idle"] = BUSY
        await scene.at(scene.loop.time() + 2)
        scene.start()
        await scene.until(lambda: shown(scene) == UNKNOWN, within=4)
        await scene.until(lambda: shown(scene) == ("Failed", "busy"), within=12)

    play(tmp_path, story)


def test_a_command_that_was_changed_while_the_agent_was_away(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.answers["full"] = BUSY
        await begun(scene)
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        scene.kill()
        want(scene, pod("u", probe(command="full", failureThreshold=4)))
        scene.start()
        await scene.until(lambda: shown(scene) == UNKNOWN, within=3)
        await scene.until(lambda: shown(scene) == ("Failed", "busy"), within=8)

    play(tmp_path, story)


def test_without_its_folder_the_agent_goes_by_the_status(tmp_path: Path) -> None:
    """Keep results that were probed after the container had started, and none that may be about another instance."""

    async def story(scene: Scene) -> None:
        await begun(scene, pod("u", probe(failureThreshold=9)))
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        await scene.at(40)
        scene.kill()
        (tmp_path / "probes" / "results.json").unlink()
        scene.machine.answers["idle"] = BUSY
        scene.start()
        await scene.at(46)
        assert shown(scene)[0] == "Succeeded"
        scene.kill()
        (tmp_path / "probes" / "results.json").write_bytes(b"{")
        scene.machine.exit(scene.machine.newest("u", "game").id)
        await scene.at(50)
        scene.start()
        await scene.until(lambda: shown(scene) == UNKNOWN, within=4)

    play(tmp_path, story)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "probes").write_text("no folder")

    async def story(scene: Scene) -> None:
        await begun(scene)
        await scene.until(lambda: shown(scene)[0] == "Succeeded")

    play(tmp_path, story)


def test_reports_are_repeated_until_they_are_accepted(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene)
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        scene.hub.lose_answers = 2  # of the report, and of the event
        scene.machine.answers["idle"] = BUSY
        await scene.until(lambda: scene.hub.lose_answers == 0)
        scene.machine.answers["idle"] = Executed(1, b"", b"very busy")
        await scene.until(lambda: shown(scene) == ("Failed", "very busy"), within=15)
        scene.hub.up = False
        scene.machine.answers["idle"] = IDLE
        await scene.at(scene.loop.time() + 100)
        assert shown(scene)[0] == "Failed"
        scene.hub.up = True
        await scene.until(lambda: shown(scene)[0] == "Succeeded", within=15)

    play(tmp_path, story)


def test_a_status_that_somebody_else_changed_is_set_right(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene)
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        right = scene.hub.probes()
        forged = ProbeState(name="m#idle", state="Failed", message="no")
        status = PodProbeStatus(name="pod-u", namespace="ns", uid="u", probe_states=[forged])
        wrong = msgspec.structs.replace(right.status, pod_probe_statuses=[status])
        scene.hub.put(NODE_POD_PROBE, msgspec.structs.replace(right, status=wrong))
        await scene.until(lambda: scene.hub.probes().status == right.status, within=2)

    play(tmp_path, story)


def test_the_runtime_is_away(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene)
        await scene.until(lambda: shown(scene)[0] == "Succeeded")
        scene.machine.up = False
        await scene.at(scene.loop.time() + 60)
        assert history(scene) == [UNKNOWN, ("Succeeded", "0 players")]
        scene.machine.up = True
        scene.machine.answers["idle"] = BUSY
        await scene.until(lambda: shown(scene) == ("Failed", "busy"), within=5)

    play(tmp_path, story)


def test_with_the_gate_off_nothing_is_read_or_run(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begun(scene)
        await scene.at(60)
        assert scene.machine.probes == []
        assert scene.hub.said("nodepodprobes") == []
        assert "probe" not in scene.status.report()

    play(tmp_path, story, Settings(feature_gates="PodProbeMarkerGate=false"))


def test_another_pods_container(tmp_path: Path) -> None:
    """Refuse a NodePodProbe that gives a pod another one's uid."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.at(5)
        labels = {"io.kubernetes.pod.namespace": "other", "io.kubernetes.pod.name": "pod-u"}
        scene.machine.start("u", "game", labels=labels)
        want(scene, pod("u", probe()))
        await scene.at(30)
        assert (scene.machine.probes, entry(scene)) == ([], None)

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("ip", "known", "document", "message"),
    [
        ("10.0.0.9", ("10.0.0.7",), {"tcpSocket": {"port": 1}}, "refused: 10.0.0.9 is not an IP of the pod"),
        ("127.0.0.1", (), {"tcpSocket": {"port": 1}}, "refused: 127.0.0.1 is not the IP of a pod"),
        (
            "10.0.0.7",
            ("10.0.0.7",),
            {"httpGet": {"port": 1, "host": "10.0.0.9"}},
            "refused: host field in probes is not allowed",
        ),
        (
            "10.0.0.7",
            ("10.0.0.7",),
            {"httpGet": {"port": 1, "httpHeaders": [{"name": "hOST", "value": "x"}]}},
            "refused: a Host header in probes is not allowed",
        ),
    ],
)
def test_probes_that_would_go_elsewhere(
    tmp_path: Path, ip: str, known: tuple[str, ...], document: Any, message: str
) -> None:
    async def story(scene: Scene) -> None:
        one = NodeProbe(name="m#idle", container_name="game", probe=msgspec.Raw(msgspec.json.encode(document)))
        scene.machine.ips["u"] = known
        await begun(scene, pod("u", one, ip=ip))
        await scene.until(lambda: shown(scene) == ("Failed", message), within=4)

    play(tmp_path, story)


def test_hanging_commands_do_not_hold_up_other_pods(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.probe_takes["hang"] = 10_000
        hanging = [probe("hang", timeoutSeconds=3600)]
        hanging += [msgspec.structs.replace(hanging[0], name=f"m#hang{n}") for n in range(15)]
        for number in range(40):
            scene.machine.start(f"bad{number}", "game")
        await begun(scene, *(pod(f"bad{number}", *hanging) for number in range(40)), pod("u", probe()))
        await scene.until(lambda: shown(scene)[0] == "Succeeded", within=15)
        await scene.at(60)
        count = len(rounds(scene))
        await scene.at(120)
        assert len(rounds(scene)) - count > 50
        assert len(rounds(scene, "hang")) == 80  # two of each pod

    play(tmp_path, story)


def test_one_list_of_containers_serves_many_probes(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        for number in range(50):
            scene.machine.start(f"u{number}", "game")
        await begun(scene, *(pod(f"u{number}", probe(), probe("other")) for number in range(50)))
        await scene.at(30)
        lists, count = scene.machine.lists, len(scene.machine.probes)
        await scene.at(60)
        assert len(scene.machine.probes) - count >= 50 * 2 * 28
        assert scene.machine.lists - lists <= 62

    play(tmp_path, story)


def test_many_changes_are_few_reports(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        for number in range(50):
            scene.machine.start(f"u{number}", "game")
        await begun(scene, *(pod(f"u{number}", probe()) for number in range(50)))
        await scene.at(30)
        said = len(scene.hub.said("nodepodprobes"))
        for second in range(60):
            scene.machine.answers["idle"] = Executed(second % 2, f"{second}".encode(), f"{second}".encode())
            await scene.at(31 + second)
        assert len(scene.hub.said("nodepodprobes")) - said <= 66
        await scene.at(95)
        assert {one.probe_states[0].state for one in scene.hub.probes().status.pod_probe_statuses} == {"Failed"}

    play(tmp_path, story)
