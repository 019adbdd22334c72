"""Credential plugins as real programs: the question, the answer and how long it lasts, and every way to fail."""

import asyncio
import json
import os
import shlex
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from structlog.testing import capture_logs

from flotilla_nodeagent.credentials import plugins
from flotilla_nodeagent.credentials.plugins import Plugin
from flotilla_nodeagent.credentials.program import ANSWER_LIMIT
from flotilla_nodeagent.credentials.providers import Provider, Variable
from tests.support.cluster import eventually
from tests.support.fake_clock import FakeClock

V1 = "credentialprovider.kubelet.k8s.io/v1"
IMAGE = "reg.example:5000/team/app"


def answer(password: str = "p", **changes: Any) -> str:
    """Return the output of a plugin; None removes a member."""
    whole = {
        "apiVersion": V1,
        "kind": "CredentialProviderResponse",
        "cacheKeyType": "Image",
        "cacheDuration": None,
        "auth": {"reg.example:5000": {"username": "u", "password": password}},
    } | changes
    return json.dumps({key: value for key, value in whole.items() if value is not None})


class Bench:
    """One plugin, a program of its own in a folder."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.folder = folder
        self.program = folder / "helper"
        self.script("exit 9")

    def script(self, body: str) -> None:
        """Write the program, which records each of its calls."""
        calls = shlex.quote(str(self.folder / "calls"))
        self.program.write_text(f"#!/bin/sh\necho >> {calls}\n{body}\n")
        self.program.chmod(0o755)

    def prints(self, text: str) -> None:
        self.script(printing(text))

    @property
    def calls(self) -> int:
        file = self.folder / "calls"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def plugin(self, *images: str, args: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Plugin:
        provider = Provider(
            name="helper",
            match_images=list(images) or ["reg.example:5000"],
            default_cache_duration="10m",
            api_version=V1,
            args=list(args),
            env=[Variable(name="EXTRA", value="yes")],
        )
        return Plugin(provider, self.folder, self.clock, env or {"PATH": os.environ["PATH"]})


LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
"""The agent runs on uvloop, whose processes are its own."""

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def passwords(asked: Plugin, image: str = IMAGE) -> list[str]:
    return [login.password for _, login in await asked.entries(image)]


async def test_question_and_answer(bench: Bench) -> None:
    seen, given = bench.folder / "seen", bench.folder / "given"
    bench.script(f"cat > {seen}; printf ' %s' \"$@\" >> {seen}; env > {given}; printf %s {shlex.quote(answer())}")
    found = await passwords(bench.plugin(args=("get", "it")))
    assert found == ["p"]
    question, _, arguments = seen.read_text().partition("} ")
    assert json.loads(question + "}") == {"apiVersion": V1, "kind": "CredentialProviderRequest", "image": IMAGE}
    assert arguments == "get it"
    variables = dict(line.split("=", 1) for line in given.read_text().splitlines())
    assert variables.keys() - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "EXTRA"}


def test_few_variables_are_passed_on() -> None:
    assert {"PATH", "HOME", "HTTPS_PROXY", "https_proxy"} <= plugins.PASSED_ON
    assert not {"NATS_CREDS", "FLOTILLA_NATS_CREDS", "LD_PRELOAD"} & plugins.PASSED_ON


@pytest.mark.parametrize(
    ("patterns", "image", "asked"),
    [
        (["reg.example:5000"], "reg.example:5000/a", True),
        (["reg.example"], "reg.example:5000/a", False),
        (["reg.example:5000"], "reg.example/a", False),
        (["*.example"], "reg.example/a", True),
        (["*.example"], "a.reg.example/a", False),
        (["*.*.example"], "a.reg.example/a", True),
        (["*.dkr.ecr.*.amazonaws.com"], "1234.dkr.ecr.eu-west-1.amazonaws.com/app", True),
        (["reg.example/team"], "reg.example/team/app", True),
        (["reg.example/team"], "reg.example/other/app", False),
        (["docker.io"], "docker.io/library/nginx", True),
        (["else.example", "reg.example"], "reg.example/a", True),
    ],
)
async def test_only_for_its_images(bench: Bench, patterns: list[str], image: str, asked: bool) -> None:
    bench.prints(answer())
    await bench.plugin(*patterns).entries(image)
    assert bench.calls == asked


@pytest.mark.parametrize(
    ("kind", "lasts", "image", "after", "calls"),
    [
        ("Image", None, IMAGE, 599, 1),
        ("Image", None, IMAGE, 601, 2),
        ("Image", "5s", IMAGE, 4, 1),
        ("Image", "5s", IMAGE, 6, 2),
        ("Image", "0s", IMAGE, 0, 2),
        ("Image", "5s", "reg.example:5000/team/other", 1, 2),
        ("Registry", "1h30m", "reg.example:5000/team/other", 5399, 1),
        ("Registry", "5s", "x.example/team/other", 1, 2),
        ("Global", "5s", "x.example/team/other", 1, 1),
        ("Global", "5s", "x.example/team/other", 6, 2),
    ],
)
async def test_how_long_an_answer_lasts(
    bench: Bench, kind: str, lasts: str | None, image: str, after: float, calls: int
) -> None:
    asked = bench.plugin("reg.example:5000", "x.example")
    bench.prints(answer(cacheKeyType=kind, cacheDuration=lasts))
    assert await passwords(asked) == ["p"]
    bench.clock.time += after
    assert await passwords(asked, image) == ["p"]
    assert bench.calls == calls


async def test_no_logins_are_an_answer_too(bench: Bench) -> None:
    asked = bench.plugin()
    bench.prints(answer(auth=None))
    assert await passwords(asked) == await passwords(asked) == []
    assert bench.calls == 1


async def test_images_that_are_wanted_at_once_are_asked_for_once(bench: Bench) -> None:
    asked = bench.plugin()
    bench.prints(answer(cacheKeyType="Registry"))
    found = await asyncio.gather(*(passwords(asked, f"reg.example:5000/a{number}") for number in range(20)))
    assert found == [["p"]] * 20
    assert bench.calls == 1


def printing(text: str) -> str:
    return f"printf %s {shlex.quote(text)}"


FAILS = {
    "exit code": ("echo 'no role for geheim-not' >&2; exit 3", "exit code 3: no role"),
    "killed": ("kill -9 $$", "exit code -9"),
    "nothing": ("exit 0", "cannot be read"),
    "no JSON": ("echo geheim", "cannot be read"),
    "other kind": (printing(answer("geheim", kind="Pod")), "not a CredentialProviderResponse"),
    "other version": (printing(answer("geheim", apiVersion="v2")), "not a CredentialProviderResponse"),
    "cache key": (printing(answer("geheim", cacheKeyType="geheim")), "cacheKeyType"),
    "duration": (printing(answer("geheim", cacheDuration="geheim")), "cacheDuration"),
    "types": (printing(answer(auth={"geheim": {"username": 1}})), "cannot be read"),
    "too much": (f"head -c {ANSWER_LIMIT + 1} /dev/zero; sleep 600", f"more than {ANSWER_LIMIT} bytes"),
    "too much to say": ("head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 1", "exit code 1: xxx"),
    "nesting": ("head -c 200000 /dev/zero | tr '\\0' '['", "cannot be read"),
}


@pytest.mark.parametrize(("body", "why"), FAILS.values(), ids=FAILS.keys())
async def test_failures_are_logged_without_secrets(bench: Bench, body: str, why: str) -> None:
    bench.script(body)
    with capture_logs() as logs:
        assert await bench.plugin().entries(IMAGE) == []
    (line,) = logs
    assert why in line["why"]
    assert "geheim" not in str(line).replace("geheim-not", "")
    assert len(line["why"]) < 700


async def test_a_failure_is_not_kept(bench: Bench) -> None:
    asked = bench.plugin()
    assert await passwords(asked) == []
    bench.prints(answer())
    assert await passwords(asked) == ["p"]


@LOOPS
def test_one_that_hangs_is_killed_with_all_it_started(bench: Bench, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(plugins, "ANSWER_SECONDS", 1.0)
    ids = bench.folder / "ids"
    bench.script(f"sleep 600 & echo $! > {ids}; echo $$ >> {ids}; wait")

    async def story() -> None:
        asked = bench.plugin()
        with capture_logs() as logs:
            assert await asyncio.gather(*(passwords(asked, f"{IMAGE}{number}") for number in range(3))) == [[], [], []]
        assert [line["why"] for line in logs] == ["no answer within 1 s"]
        assert bench.calls <= 1, "whoever waited behind it does not wait as long"
        for number in ids.read_text().split() if ids.exists() else []:  # a slow machine may not have got that far
            await eventually(lambda number=number: not alive(int(number)))
        bench.prints(answer())
        monkeypatch.undo()
        bench.clock.time += plugins.SILENCE_SECONDS + 1
        assert await passwords(asked) == ["p"]

    run(story())


@LOOPS
def test_a_pull_that_is_given_up_takes_its_plugin_with_it(bench: Bench, run: Run) -> None:
    ids = bench.folder / "ids"
    bench.script(f"echo $$ > {ids}.new; mv {ids}.new {ids}; sleep 600")

    async def story() -> None:
        asked = bench.plugin()
        task = asyncio.ensure_future(asked.entries(IMAGE))
        await eventually(ids.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: not alive(int(ids.read_text())))
        bench.prints(answer())
        assert await passwords(asked) == ["p"]

    run(story())


@LOOPS
def test_one_that_never_stops_talking_is_killed(bench: Bench, run: Run) -> None:
    ids = bench.folder / "ids"
    bench.script(f"echo $$ > {ids}; exec yes")

    async def story() -> None:
        assert await bench.plugin().entries(IMAGE) == []
        await eventually(lambda: not alive(int(ids.read_text())))

    run(story())


async def test_one_that_does_not_listen(bench: Bench) -> None:
    bench.script(f"exec 0<&-; printf %s {shlex.quote(answer())}")
    assert await passwords(bench.plugin()) == ["p"]


def alive(number: int) -> bool:
    """Report whether the process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("name", "mode", "why"),
    [
        ("helper", 0o777, "helper can be written by others"),
        ("helper", 0o757, "helper can be written by others"),
        ("helper", 0o644, "is not a program"),
        (".", 0o777, "can be written by others"),
    ],
    ids=["everybody", "others", "not executable", "its folder"],
)
async def test_what_others_can_write_is_not_run(bench: Bench, name: str, mode: int, why: str) -> None:
    bench.prints(answer())
    (bench.folder / name).chmod(mode)
    with capture_logs() as logs:
        assert await passwords(bench.plugin()) == []
    assert why in logs[0]["why"]
    assert bench.calls == 0


async def test_a_link_is_followed_to_what_it_is(bench: Bench, tmp_path: Path) -> None:
    bench.prints(answer())
    real = tmp_path / "elsewhere"
    bench.program.rename(real)
    bench.program.symlink_to(real)
    assert await passwords(bench.plugin()) == ["p"]
    real.chmod(0o777)
    bench.clock.time += 601
    assert await passwords(bench.plugin()) == []


async def test_plugins_form_one_keyring(tmp_path: Path) -> None:
    found: list[Plugin] = []
    for name, keys in {"one": ["reg.example:5000", "*.example:5000"], "two": ["reg.example:5000/team"]}.items():
        (tmp_path / name).mkdir()
        bench = Bench(tmp_path / name)
        bench.prints(answer(auth={key: {"username": name, "password": key} for key in keys}))
        found.append(bench.plugin())
    logins = await plugins.Plugins(found).logins(IMAGE)
    assert [(login.username, login.password) for login in logins] == [
        ("two", "reg.example:5000/team"),
        ("one", "reg.example:5000"),
        ("one", "*.example:5000"),
    ]
