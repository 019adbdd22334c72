"""`flotilla get`, `explain`, `history`, `tail`, `bundle`, `replay` of PodProbeMarkers and NodePodProbes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.integration.podprobemarker.conftest import NODE, Game, marker, probe
from tests.support import stuck
from tests.support.fleet import Fleet
from tests.support.verbs import Verbs

OTHER = "node-1"
"""A node whose NodePodProbe is stuck for a while, which others do not expect."""


def test_what_a_probe_said_last(game: Game, shared: Fleet, tmp_path: Path):
    flotilla = Verbs(game.space, shared)
    game.start("p")
    game.space.apply(
        marker(probe(), probe("lost", podConditionType="game.io/lost", probe={"tcpSocket": {"port": "x"}}))
    )
    game.observed(matchedPods=1)
    game.say(p__m__idle=("Succeeded", "0 players"))
    shown = flotilla.run("get", "podprobemarker", "m")
    assert "1 pod probed" in shown
    assert "exec every 3s" in shown
    explained = flotilla.run("explain", "podprobemarker", "m")
    assert all(words in explained for words in ("p: m#idle Succeeded", "[PodsProbed]", "[ProbeSkipped]")), explained
    assert "0 players" in flotilla.run("explain", "pod", "p")
    assert f"{game.space.name}/p" in flotilla.run("get", "nodepodprobe", NODE)
    assert "results of its probes: m#idle Succeeded" in flotilla.run("history", "pod", "p")
    for kind, name in (("podprobemarker", "m"), ("nodepodprobe", NODE)):
        assert "decisions match those of the service" in flotilla.replayed(tmp_path, kind, name)


def test_a_change_is_foreseen(game: Game, shared: Fleet, tmp_path: Path):
    flotilla = Verbs(game.space, shared)
    game.start("p")
    manifest = tmp_path / "marker.json"
    manifest.write_text(json.dumps(marker()))  # other tests have probes of their own `m` on the same node
    planned = flotilla.run("plan", "-f", str(manifest), "-n", game.space.name, codes=(1,))
    assert "write PodProbeMarker m: finalizer" in planned
    assert f"write NodePodProbe {NODE}: probe {game.space.name}/m#idle - → 1 pod" in planned
    assert "its probes are for 1 pod on 1 node" in planned


def test_a_write_that_a_policy_refuses(game: Game, shared: Fleet):
    """Expect the apiserver's words on the PodProbeMarker, and the marks on the other pod of the node."""
    flotilla = Verbs(game.space, shared)
    game = msgspec.structs.replace(game, node=OTHER)
    game.start("p", "q")
    game.space.apply(marker())
    game.observed(matchedPods=2)
    with refusing_label(game, "p", "idle", "only humans set idle"):
        game.say(p__m__idle=("Succeeded", "0 players"), q__m__idle=("Succeeded", ""))
        game.shows("q", "True", "", {"idle": "yes"}, {"cost": "-5"})
        game.space.until(lambda: "only humans" in flotilla.run("explain", "podprobemarker", "m"))
        told = flotilla.run("explain", "podprobemarker", "m")
        assert told.startswith(f"stuck: NodePodProbe {OTHER}: writing the results of probes to 1 pod"), told
        assert f"({game.space.name}/p) is refused: " in told
        assert "[PolicyDenied]" in told
        assert "only humans set idle" in flotilla.run("explain", "pod", "p")
        assert game.marks("p") == ("", "", {}, {})
    game.space.until(lambda: game.marks("p")[0] == "True", 60)


@contextmanager
def refusing_label(game: Game, pod: str, label: str, message: str) -> Iterator[None]:
    """Have a ValidatingAdmissionPolicy refuse statuses of the pod that bring the label."""
    policy, binding = stuck.policy(game.space.name, message)
    rules = [{**stuck.PODS, "resources": ["pods/status"], "operations": ["UPDATE"]}]
    policy["spec"]["matchConstraints"] = {"resourceRules": rules}
    expression = f"object.metadata.name != '{pod}' || !('{label}' in object.metadata.labels)"
    policy["spec"]["validations"] = [{"expression": expression, "message": message}]
    listed = {"apiVersion": "v1", "kind": "List", "items": [policy, binding]}
    game.space.kubectl("apply", "-f", "-", stdin=json.dumps(listed))
    trial = json.dumps({"metadata": {"labels": {label: "trial"}}})
    patch = ("patch", "pod", pod, "--subresource=status", "--type=merge", "-p", trial, "--dry-run=server")
    try:
        game.space.until(lambda: message in answer_to(game, *patch))
        yield
    finally:
        game.space.kubectl("delete", "-f", "-", stdin=json.dumps(listed))


def answer_to(game: Game, *words: str) -> str:
    """Return kubectl's output, whether the request succeeds or not."""
    try:
        return game.space.kubectl(*words)
    except AssertionError as refusal:
        return str(refusal)
