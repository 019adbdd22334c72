"""The pictures show what the code declares and prints today."""

import pytest

from tests.unit.docs import admission_picture, pictures, processes_picture
from tests.unit.docs.maps import ROOT


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_is_current(name: str):
    stored = (pictures.FOLDER / name).read_text(encoding="utf-8")
    assert stored == pictures.PICTURES[name](), "run python -m tests.unit.docs.pictures"


def test_every_picture_is_shown():
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *ROOT.glob("docs/*.md")))
    drawn = {path.name for path in pictures.FOLDER.glob("*.svg")}
    photographed = {path.name for path in pictures.FOLDER.glob("console-*.png")}  # tests/integration/browser takes them
    assert drawn == set(pictures.PICTURES)
    assert {path.name for path in pictures.FOLDER.iterdir()} == drawn | photographed
    assert {name for name in drawn | photographed if f"pictures/{name}" not in pages} == set()


def test_the_picture_of_an_admission_names_files_that_exist():
    assert {name for name in admission_picture.files() if not (admission_picture.PACKAGE / name).exists()} == set()


def test_every_process_is_drawn():
    drawn = {process.name for process in processes_picture.processes()}
    assert {path.name for path in (ROOT / "services").iterdir()} - drawn == {"nodeagent"}
    assert "node agent" in drawn


def test_every_lane_is_written_and_read():
    processes = processes_picture.processes()
    for lane in processes_picture.lanes():
        written = any(processes_picture.writes(process, lane) for process in processes)
        assert written or lane.subject == "decisions.v1"  # the server republishes them
        assert any(processes_picture.reads(process, lane) for process in processes)
