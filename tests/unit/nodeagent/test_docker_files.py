"""The node's docker config files: their precedence (cri.md §11)."""

import base64
import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from flotilla_nodeagent.credentials.documents import DockerFiles

NEW = ("kubelet/config.json", "working/config.json", "home/.docker/config.json")
OLD = ("kubelet/.dockercfg", "working/.dockercfg", "home/.dockercfg")


def put(folder: Path, name: str, password: str | None = None) -> Path:
    """Write a document at that place; its password is the place."""
    auth = base64.b64encode(f"u:{password or name}".encode()).decode()
    entries = {"https://reg.example/v1/": {"auth": auth, "email": "x"}}
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    helpers = {"credsStore": "desktop", "credHelpers": {"reg.example": "x"}}
    file.write_text(json.dumps({"auths": entries, **helpers} if file.name == "config.json" else entries))
    return file


def files(folder: Path) -> DockerFiles:
    return DockerFiles(folder / "kubelet", folder / "working", folder / "home")


async def passwords(found: DockerFiles) -> list[str]:
    return [login.password for login in await found.logins("reg.example/team/app")]


@pytest.mark.parametrize("first", range(6))
async def test_the_first_place_counts(tmp_path: Path, first: int) -> None:
    for name in (*NEW, *OLD)[first:]:
        put(tmp_path, name)
    assert await passwords(files(tmp_path)) == [(*NEW, *OLD)[first]]


async def test_none(tmp_path: Path) -> None:
    with capture_logs() as logs:
        assert await passwords(files(tmp_path)) == []
        assert await DockerFiles(tmp_path, tmp_path, None).logins("reg.example/a") == []
    assert logs == []


async def test_a_change_takes_effect_at_once(tmp_path: Path) -> None:
    found = files(tmp_path)
    put(tmp_path, NEW[0], "one")
    assert await passwords(found) == ["one"]
    put(tmp_path, NEW[0], "two")
    assert await passwords(found) == ["two"]


async def test_what_fits_nothing_does_not_lead_on(tmp_path: Path) -> None:
    put(tmp_path, NEW[0])
    put(tmp_path, NEW[1])
    assert await files(tmp_path).logins("other.example/a") == []


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.write_text("geheim"), "malformed"),
        (lambda file: file.write_text('{"auths": {"a": {"auth": "geheim!"}}}'), "bad auth entry"),
        (lambda file: file.chmod(0o666), "can be written by others"),
        (lambda file: (file.unlink(), file.mkdir()), "is not a file"),
    ],
    ids=["no JSON", "bad auth", "world-writable", "a folder"],
)
async def test_a_bad_one_is_said_once_and_the_next_counts(tmp_path: Path, spoil: object, why: str) -> None:
    assert callable(spoil)
    spoil(put(tmp_path, NEW[0]))
    put(tmp_path, NEW[1])
    found = files(tmp_path)
    with capture_logs() as logs:
        assert await passwords(found) == await passwords(found) == [NEW[1]]
    (line,) = logs
    assert why in line["why"]
    assert "geheim" not in str(line)
