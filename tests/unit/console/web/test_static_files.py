"""Scripts and styles: their size, where they come from, and how long browsers keep them."""

import gzip
import hashlib
import json
import re

import pytest

from flotilla_console.web.static_files import File, StaticFiles
from tests.unit.console.scripts import STATIC
from tests.unit.console.site import SmallSite

MAX_SCRIPTS = 120 * 1024
VENDOR = json.loads((STATIC / "vendor" / "vendor.json").read_text())
SCRIPTS = sorted([*STATIC.rglob("*.js"), *STATIC.rglob("*.mjs")])


def test_all_scripts_together_are_small() -> None:
    assert sum(len(gzip.compress(script.read_bytes())) for script in SCRIPTS) <= MAX_SCRIPTS


@pytest.mark.parametrize("name", VENDOR)
def test_scripts_of_others_are_as_released_with_their_licence(name: str) -> None:
    entry = VENDOR[name]
    folder = STATIC / "vendor"
    assert hashlib.sha256((folder / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]
    assert entry["license"].partition("-")[0] in (folder / entry["licenseFile"]).read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])


def test_there_are_no_scripts_of_others_but_these() -> None:
    listed = {entry["file"] for entry in VENDOR.values()}
    assert {script.name for script in (STATIC / "vendor").glob("*.*js")} == listed


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_import_only_what_is_here_and_make_no_markup_of_text(script) -> None:
    text = script.read_text()
    for name in re.findall(r'^import .*? from "([^"]+)"', text, re.MULTILINE):
        assert (script.parent / name).is_file()
    if script.parent.name != "vendor":
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)


def test_styles_load_nothing() -> None:
    assert not re.search(r"url\(|@import", (STATIC / "style.css").read_text())


async def test_files_are_kept_for_a_year_under_the_version_of_their_content() -> None:
    site = SmallSite()
    path = StaticFiles.packaged().path("app.js")
    assert path in (await site.client.get("/")).text
    answer = await site.client.get(path)
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.content == (STATIC / "app.js").read_bytes()
    plain = await site.client.get(path, headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == answer.content


@pytest.mark.parametrize(
    "path", ["/static/0/app.js", "{version}nothing.js", "{version}../app.js", "{version}types.d.ts"]
)
async def test_there_are_no_other_files(path: str) -> None:
    version = StaticFiles.packaged().path("")
    assert (await SmallSite().client.get(path.format(version=version))).status_code == 404


def test_a_changed_file_changes_the_version() -> None:
    one, other = (StaticFiles({"a.js": File("text/javascript", content, b"")}) for content in (b"1", b"2"))
    assert one.path("a.js") != other.path("a.js")
