"""`flotilla get`, `explain`, `history`, `tail`, `bundle`, `replay` of PodProbeMarkers and NodePodProbes."""

import json
from pathlib import Path

from tests.integration.podprobemarker.conftest import NODE, Game, marker, probe
from tests.support.fleet import Fleet
from tests.support.verbs import Verbs


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
    found = json.loads(flotilla.run("explain", "podprobemarker", "m", "-o", "json"))
    assert {"PodsProbed", "ProbeSkipped"} <= {reason["code"] for reason in found["reasons"]}
    assert "p: m#idle Succeeded" in flotilla.run("explain", "podprobemarker", "m")
    assert "0 players" in flotilla.run("explain", "pod", "p")
    assert f"{game.space.name}/p" in flotilla.run("get", "nodepodprobe", NODE)
    assert "results of its probes: m#idle Succeeded" in flotilla.run("history", "pod", "p")
    for kind, name in (("podprobemarker", "m"), ("nodepodprobe", NODE)):
        assert "decisions are those of the service" in flotilla.replayed(tmp_path, kind, name)


def test_a_change_is_foreseen(game: Game, shared: Fleet, tmp_path: Path):
    flotilla = Verbs(game.space, shared)
    game.start("p")
    manifest = tmp_path / "marker.json"
    manifest.write_text(json.dumps(marker()))
    planned = flotilla.run("plan", "-f", str(manifest), "-n", game.space.name, codes=(1,))
    assert "write PodProbeMarker m: finalizer" in planned
    assert "its probes are on their way to 1 node: node-0" in planned
