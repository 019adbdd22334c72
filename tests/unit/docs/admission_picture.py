"""Draws the life of a pod admission: the webhook's files in order, and the steps that its chain lists."""

import inspect
from pathlib import Path

from flotilla_common.gates import Gates
from flotilla_common.settings import Settings
from flotilla_webhook.chain import chain_of
from flotilla_webhook.pods.admission import AdmissionStep
from tests.support.dice import Dice
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.unit.docs.svg import DIM, WRITES, Canvas
from tests.unit.webhook.fakes import records

PACKAGE = Path(inspect.getfile(chain_of)).parent

REQUEST = (
    ("server/http_server.py", "accepts the connection, within time limits"),
    ("server/http_server.py", "reads the body, within size limits"),
    ("server/reviews.py", "decode: AdmissionReview to Request"),
    ("pods/admission.py", "mutate: copies the pod, runs the steps"),
)
ANSWER = (
    ("server/reviews.py", "encode: the difference as a JSON patch"),
    ("audit.py", "metrics; writes of our kinds go onto the bus"),
)
RULES = (
    ("chain.py", "each step names the pods that it must see"),
    ("pods/admission.py", "entries: the rules become webhook entries"),
    ("server/registration.py", "writes the entries into the configuration"),
    ("pods/activation.py", "the first object waits until they are in use"),
)
USES = {
    "WorkloadSpread": "spreading/places.py, spreading/subsets.py",
    "SidecarSet": "cache.py, pods/sidecar_injection.py",
    "PodUnavailableBudget": "owners.py",
}
"""Other files that a step works with, by a word of its name."""

LEFT, MIDDLE, RIGHT, ROW, BOX = 20, 390, 760, 46, 318


def steps() -> list[AdmissionStep]:
    """Return the steps of the pod webhook, in order."""
    chain = chain_of(FakeApi().api, FakeBus(), FakeClock(), Dice(), Settings(), Gates.parse(""), records(FakeApi()))
    return list(chain.pods.steps)


def file_of(step: AdmissionStep) -> str:
    """Return the file of a step, below the webhook's package."""
    owner = getattr(step.change, "__self__", None)
    return Path(inspect.getfile(type(owner) if owner is not None else step.change)).relative_to(PACKAGE).as_posix()


def files() -> set[str]:
    """Return all files that the picture names."""
    fixed = {file for part in (REQUEST, ANSWER, RULES) for file, _ in part}
    used = {file for text in USES.values() for file in text.split(", ")}
    return fixed | used | {file_of(step) for step in steps()}


def picture() -> str:
    """Return the picture."""
    chain = steps()
    rows = max(len(REQUEST) + len(ANSWER) + 1, len(chain))
    height = 120 + ROW * rows
    canvas = Canvas(1130, height, "The life of a pod admission")
    canvas.box(LEFT, 14, 1090, 38, fill="#dbeafe")
    canvas.text(LEFT + 12, 38, "kube-apiserver", size=14, bold=True)
    _column(canvas, LEFT, "before: an object needs a rule", RULES)
    _column(canvas, MIDDLE, "a pod is created that a rule is about", REQUEST)
    at = 112 + ROW * len(REQUEST)
    canvas.text(MIDDLE + 10, at + 22, f"{len(chain)} steps, each on the result of the last  →", size=11, color=WRITES)
    for number, (file, what) in enumerate(ANSWER):
        _row(canvas, MIDDLE, at + ROW * (number + 1), file, what)
    canvas.text(RIGHT + 4, 92, "the chain of steps", bold=True)
    for number, step in enumerate(chain):
        used = next((files for word, files in USES.items() if word in step.name), "")
        text = f"{step.name}" + (f": {used}" if used else "")
        _row(canvas, RIGHT, 112 + ROW * number, file_of(step), text, fill="#fef3c7")
    _up(canvas, LEFT, 112 + ROW * 2, "entries")
    canvas.arrow(MIDDLE + 40, 54, MIDDLE + 40, 76)
    canvas.text(MIDDLE + 48, 68, "POST /mutate-pod", size=10, color=DIM)
    _up(canvas, MIDDLE, at + ROW, "patch, or code 500")
    return canvas.svg()


def _up(canvas: Canvas, x: int, y: int, text: str) -> None:
    """Draw what leaves a box of the column for the apiserver."""
    canvas.line(x + BOX, y + 10, x + BOX + 26, y + 10, color=WRITES, width=1.5)
    canvas.arrow(x + BOX + 26, y + 10, x + BOX + 26, 54, color=WRITES)
    canvas.text(x + BOX + 20, 68, text, size=10, color=DIM, anchor="end")


def _column(canvas: Canvas, x: int, title: str, parts: tuple[tuple[str, str], ...]) -> None:
    canvas.text(x + 4, 92, title, bold=True)
    for number, (file, what) in enumerate(parts):
        _row(canvas, x, 112 + ROW * number, file, what)


def _row(canvas: Canvas, x: int, y: int, file: str, what: str, *, fill: str = "#eef2f6") -> None:
    canvas.box(x, y - 8, 350 if x > MIDDLE else BOX, 36, fill=fill)
    canvas.text(x + 10, y + 6, file, bold=True)
    canvas.text(x + 10, y + 21, what, size=10, color=DIM)
