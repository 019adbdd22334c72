"""The pictures of the documents; `python -m tests.unit.docs.pictures` draws them again."""

from collections.abc import Callable
from pathlib import Path

from tests.unit.docs import admission_picture, processes_picture, terminal_pictures

FOLDER = Path(__file__).parents[3] / "docs" / "pictures"
PICTURES: dict[str, Callable[[], str]] = {
    "processes.svg": processes_picture.picture,
    "admission.svg": admission_picture.picture,
    "get.svg": terminal_pictures.get_watched,
    "explain.svg": terminal_pictures.explain,
}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")
