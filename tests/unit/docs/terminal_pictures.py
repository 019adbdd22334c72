"""Draws what `flotilla get -w` and `flotilla explain` show of one rollout, by their own renderers."""

import io
from datetime import datetime, timedelta

import msgspec
from rich.cells import cell_len
from rich.color import blend_rgb
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME as THEME

from flotilla_cli.commands.explain import render as explained
from flotilla_cli.tree.render import render as drawn
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.plan import Reason, State
from flotilla_insight.diagnosis.diagnose import Diagnosis, Record
from flotilla_insight.diagnosis.summary import Verdict, VerdictKind
from flotilla_insight.published import Why, decoded
from flotilla_insight.tree import view
from tests.unit.cli.test_tree import NOW, cloneset, pod, revision
from tests.unit.docs.svg import Canvas

COLUMNS, WIDTH, HEIGHT, SIZE = 130, 8, 19, 13.3

CRASH = 'container web crashes with exit code 1 (4 restarts, last words: "no such table: orders")'
OLD, NEW = "registry.example.com/shop/web:1.30", "registry.example.com/shop/web:1.31"
REVISIONS = [revision("web-6754b44848", 2, OLD), revision("web-b5986fddf", 4, NEW)]
NAMES = ("web-7b7p6", "web-9kq2m", "web-dx4tz", "web-mw5vn", "web-zl8fc")
PODS = [
    pod("web-w9d78", "web-b5986fddf", ready=False, reason="CrashLoopBackOff", restarts=4, node="node-5", image=NEW),
    *(pod(name, "web-6754b44848", node=f"node-{number}", image=OLD) for number, name in enumerate(NAMES)),
]
STATUS = {
    "replicas": 6,
    "readyReplicas": 5,
    "updatedReplicas": 1,
    "expectedUpdatedReplicas": 6,
    "updateRevision": "web-b5986fddf",
    "currentRevision": "web-6754b44848",
}
RECORD = {
    "kind": "CloneSet",
    "namespace": "shop",
    "name": "web",
    "uid": "u",
    "resourceVersion": "9",
    "generation": 3,
    "at": (NOW - timedelta(seconds=8)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "service": "cloneset",
    "replica": "69f6b93dd8",
    "trace": "t",
    "reasons": [
        {
            "state": "waiting",
            "code": "WaitingForMaxUnavailable",
            "message": "maxUnavailable 1 is used by web-w9d78",
            "objects": ["web-w9d78"],
        }
    ],
    "numbers": {"replicas": 6, "maxUnavailable": 1, "updateNow": 0},
    "actions": {"create": 0, "patch": 0, "delete": 0},
    "wakeAt": None,
    "errors": [],
}


def why() -> Why:
    """Return the record of the last plan."""
    found = decoded(msgspec.json.encode(RECORD), Why)
    assert found is not None
    return found


def get_watched() -> str:
    """Return the picture of `flotilla get cloneset web -w`."""
    shown = view(cloneset(spec={"replicas": 6}, status=STATUS), PODS, REVISIONS, why())
    return screenshot(drawn(shown, NOW), "flotilla get cloneset web -w")


def explain() -> str:
    """Return the picture of `flotilla explain cloneset web`."""
    return screenshot(explained(diagnosis(NOW), NOW), "flotilla explain cloneset web")


def diagnosis(now: datetime) -> Diagnosis:
    """Return what `explain` finds: the root cause, and the reasons of the plan."""
    cause = Reason(State.STUCK, "CrashLoopBackOff", f"web-w9d78: {CRASH}", ("web-w9d78",), symptom=True)
    record = why()
    return Diagnosis(
        resource=CLONE_SET,
        metadata=ObjectMeta(name="web", namespace="shop", uid="u", generation=3),
        verdict=Verdict(kind=VerdictKind.STUCK, sentence=cause.message, causes=(cause,)),
        reasons=record.reasons,
        notes=(),
        record=Record(record, []),
    )


def screenshot(shown: RenderableType, title: str) -> str:
    """Return what a terminal shows."""
    console = Console(width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False)
    lines = console.render_lines(shown, pad=False)
    canvas = Canvas(COLUMNS * WIDTH + 32, len(lines) * HEIGHT + 60, title, paper=THEME.background_color.hex)
    for number, color in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        canvas.dot(22 + 18 * number, 20, color=color, filled=True)
    canvas.text(COLUMNS * WIDTH // 2, 25, title, color=THEME.foreground_color.hex, anchor="middle", bold=True)
    for number, line in enumerate(lines):
        column = 0
        for segment in line:
            _segment(canvas, 16 + column * WIDTH, 58 + number * HEIGHT, segment)
            column += cell_len(segment.text)
    return canvas.svg()


def _segment(canvas: Canvas, x: int, y: int, segment: Segment) -> None:
    text, style = segment.text.lstrip(), segment.style or Style.null()
    if not text.strip():
        return
    color = style.color.get_truecolor(THEME) if style.color is not None else THEME.foreground_color
    if style.dim:
        color = blend_rgb(color, THEME.background_color, 0.45)
    start = x + (len(segment.text) - len(text)) * WIDTH
    text = text.rstrip()
    canvas.text(start, y, text, size=SIZE, color=color.hex, bold=bool(style.bold), length=cell_len(text) * WIDTH)
