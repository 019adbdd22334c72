"""PodProbeMarkers as users see them, on a real apiserver (podprobemarker.md §4 to §6, §11).

Probes reach the nodes, and results reach the pods.
"""

import json

from tests.integration.podprobemarker.conftest import FINALIZER, NODE, Game, marker, probe
from tests.support.probe_reports import statuses
from tests.support.workspace import condition

OK, BAD, NOTHING = "Succeeded", "Failed", "Unknown"


def test_results_reach_the_pod(game: Game):
    """Follow rows 1 to 4 and 9: every report is one write of the pod, made before the agent has its answer."""
    game.start("p")
    game.space.apply(marker())
    assert game.observed(matchedPods=1) == {"observedGeneration": 1, "matchedPods": 1}
    assert game.space.clone("m")["metadata"]["finalizers"] == [FINALIZER]
    entry = game.probes()["p"]
    pod = game.space.pod("p")
    assert (entry["uid"], entry["IP"]) == (pod["metadata"]["uid"], pod["status"]["podIP"])
    assert [one["name"] for one in entry["probes"]] == ["m#idle"]
    since = game.space.now()
    game.say(p__m__idle=(OK, "0 players"))
    game.shows("p", "True", "0 players", {"idle": "yes"}, {"cost": "-5"})
    game.say(p__m__idle=(OK, "1 player"))
    game.shows("p", "True", "1 player", {"idle": "yes"}, {"cost": "-5"})
    game.say(p__m__idle=(BAD, "busy"))
    game.shows("p", "False", "busy", {}, {"cost": "5"})
    game.say(p__m__idle=(NOTHING, ""))
    game.shows("p", "False", "", {}, {})
    assert "message" not in condition(game.space.read("pod", "p"), "game.io/idle")
    game.space.catch_up()
    assert len(game.space.history(since)) == 4
    assert condition(game.space.pod("p"), "Ready") == condition(pod, "Ready")
    assert game.probes("status")["p"]["probeStates"][0]["state"] == NOTHING


def test_another_spec_and_the_end(game: Game):
    """Follow rows 9, 11, 12 and 17; a probe that is taken out leaves the node."""
    game.start("p")
    port = {"httpGet": {"path": "/", "port": "http", "scheme": "HTTP"}}
    lost = {"tcpSocket": {"port": "admin"}}
    more = probe("web", podConditionType="game.io/web", probe=port)
    game.space.apply(marker(probe(), more, probe("lost", podConditionType="game.io/lost", probe=lost)))
    game.observed(matchedPods=1)
    named = {one["name"]: one["probe"] for one in game.probes()["p"]["probes"]}
    assert named.keys() == {"m#idle", "m#web"}
    assert named["m#web"]["httpGet"]["port"] == 8080
    game.say(p__m__idle=(OK, ""), p__m__web=(OK, ""))
    game.space.patch({"spec": {"probes": [probe()]}}, "m")
    assert game.observed()["observedGeneration"] == 2
    assert [one["name"] for one in game.probes()["p"]["probes"]] == ["m#idle"]
    game.space.kubectl("delete", "podprobemarker", "m")
    assert game.probes() == {}
    game.shows("p", "True", "", {"idle": "yes"}, {"cost": "-5"})


def test_pods_come_and_go(game: Game):
    """Follow rows 14, 16, 23 and 31."""
    game.space.apply(marker())
    assert game.observed() == {"observedGeneration": 1}
    game.start("a", "b")
    game.observed(matchedPods=2)
    game.say(a__m__idle=(OK, ""), b__m__idle=(BAD, ""))
    game.space.label("a", "idle=no")
    game.space.until(lambda: game.space.pod("a")["metadata"]["labels"].get("idle") == "yes")
    game.space.label("b", "app=other")
    game.observed(matchedPods=1)
    game.space.kubectl("delete", "pod", "a")
    game.observed(matchedPods=0)
    game.space.until(lambda: game.probes() == {} and game.probes("status") == {})


def test_reports_that_do_not_count(game: Game):
    game.start("p")
    game.space.apply(marker())
    game.observed(matchedPods=1)
    said = statuses(game.space.pods, p__m__idle=(OK, ""))
    assert "may not report" in game.send(said, sender="node-1").why
    assert "no object with uid" in game.send(said, uid="other").why
    assert "unknown state" in game.send(statuses(game.space.pods, p__m__idle=("Maybe", ""))).why
    assert game.send(statuses(game.space.pods, p__m__other=(OK, ""))).accepted
    game.shows("p", "", "", {}, {})
    game.say(p__m__idle=(OK, "é" * 600))
    game.shows("p", "True", "é" * 512, {"idle": "yes"}, {"cost": "-5"})


def test_many_pods_at_once(game: Game):
    """Report about many pods: one write for each of them, beside kubelets that write the same conditions."""
    names = [f"p{number}" for number in range(8)]
    game.start(*names)
    game.space.apply(marker())
    game.observed(matchedPods=8)
    since = game.space.now()
    game.say(**{f"{name}__m__idle": (OK, "") for name in names})
    body = json.dumps({"status": {"conditions": [{"type": "kubelet.io/says", "status": "True"}]}})
    for name in names[:3]:
        game.space.kubectl("patch", "pod", name, "--subresource=status", "--type=strategic", "-p", body)
    game.space.until(lambda: all("idle" in pod["metadata"]["labels"] for pod in game.space.pods.values()), 5.0)
    game.space.catch_up()
    assert len(game.space.history(since)) == len(names) + 3
    for pod in game.space.pods.values():
        assert (condition(pod, "game.io/idle")["status"], pod["metadata"]["labels"]["idle"]) == ("True", "yes")


def test_every_node_has_its_object(game: Game):
    nodes = {one["metadata"]["name"] for one in game.space.read("nodes")["items"]}
    game.space.until(lambda: nodes <= {one["metadata"]["name"] for one in game.space.read("nodepodprobes")["items"]})
    lines = game.space.kubectl("get", "nodepodprobes", NODE).splitlines()
    assert lines[0].split() == ["NAME", "AGE"]
