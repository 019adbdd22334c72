"""PodProbeMarkers as kubectl writes them: refusals with their texts (podprobemarker.md §3, rows 26 to 28)."""

from tests.integration.podprobemarker.conftest import Game, marker, probe


def test_refusals(game: Game):
    def http(**members: object) -> object:
        return {"httpGet": {"path": "/", "port": 80} | members}

    rows = [
        (probe(probe=http(scheme="http")), 'spec.probe.httpGet.scheme: Unsupported value: "http"'),
        (probe(probe={"grpc": {"port": 80}}), "must specify a handler type"),
    ]
    for one, message in rows:
        assert message in game.space.refuses(marker(one))
    game.space.apply(marker(probe(probe=http(scheme="HTTP"))))
    other = {"spec": {"selector": {"matchLabels": {"app": "other"}}}}
    said = game.space.refuses_patch("podprobemarker", "m", other)
    assert "selector must be immutable" in said
