"""Renders a tree or a card."""

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from flotilla_insight.durations import age, span
from flotilla_insight.tree import Card, PodView, RevisionView, SetView


def render(view: SetView | Card, now: datetime, limit: int = 0) -> Tree:
    """Render the tree or card, with at most `limit` pods per revision (0: all)."""
    tree = _set(view, now, limit) if isinstance(view, SetView) else _card(view, now)
    for child in view.children or ():
        tree.add(render(child, now, limit))
    return tree


def _set(view: SetView, now: datetime, limit: int) -> Tree:
    tree = Tree(_title(view, now), guide_style="dim")
    for detail in view.details:
        tree.add(detail)
    for line in view.causes:
        tree.add(Text(line, style="red"))
    _add_waits(tree, view.waiting_for, rests=not view.causes)
    for revision in view.revisions:
        branch = tree.add(_revision(revision))
        shown = revision.pods[:limit] if limit else revision.pods
        if shown:
            branch.add(_pods(shown, now, by_node=view.by_node))
        if len(shown) < len(revision.pods):
            branch.add(Text(_rest(revision.pods[len(shown) :]), style="dim"))
    if view.older_revisions:
        tree.add(Text(f"{view.older_revisions} older revision{'s'[: view.older_revisions != 1]} kept", style="dim"))
    return tree


def _card(card: Card, now: datetime) -> Tree:
    place = f"{card.namespace}/{card.name}" if card.namespace else card.name
    title = Text(f"{card.kind} {place}", style="bold")
    title.append(f"  {card.headline}" if card.headline else "", style="default")
    if card.deleting:
        title.append("  deleting", style="red")
    title.append(f"  age {age(card.created, now)}", style="dim")
    tree = Tree(title, guide_style="dim")
    _add_waits(tree, card.waiting_for)
    if card.rows:
        tree.add(_table(card.columns, card.rows))
    return tree


def _add_waits(tree: Tree, lines: Sequence[str], *, rests: bool = True) -> None:
    for line in lines:
        tree.add(Text(line, style="yellow"))
    if not lines and rests:
        tree.add(Text("nothing to wait for", style="green"))


def _table(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in columns:
        table.add_column(no_wrap=True)
    table.add_row(*(Text(name, style="dim") for name in columns))
    for row in rows:
        table.add_row(*row)
    return table


def short_image(image: str) -> str:
    """Shorten an image: without its registry, and with the beginning of its digest only."""
    name, at, digest = image.rpartition("/")[2].partition("@")
    return f"{name}{at}{digest[: len('sha256:') + 12]}"


def _title(view: SetView, now: datetime) -> Text:
    numbers = view.numbers
    title = Text(f"{view.kind} {view.namespace}/{view.name}", style="bold")
    title.append(f"  {numbers.desired} desired, {numbers.total} exist, {numbers.ready} ready, ", style="default")
    title.append(f"{numbers.updated} of {numbers.expected_updated} updated", style="default")
    title.append(f", partition {view.partition}" if view.partition else "", style="default")
    if view.deleting:
        title.append("  deleting", style="red")
    elif view.paused:
        title.append("  paused", style="yellow")
    title.append(f"  age {age(view.created, now)}", style="dim")
    return title


def _revision(revision: RevisionView) -> Text:
    marks = [mark for mark, on in (("update", revision.update), ("current", revision.current)) if on]
    line = Text(f"revision {revision.name}")
    if revision.number:
        line.append(f" (#{revision.number})", style="dim")
    if marks:
        line.append(f"  {' and '.join(marks)}", style="cyan")
    line.append(f"  {revision.serving}/{len(revision.pods)} ready")
    if revision.images:
        line.append(f"  {', '.join(revision.images)}", style="dim")
    return line


def _pods(pods: Sequence[PodView], now: datetime, *, by_node: bool) -> Table:
    """Return a table with a line for each pod, its key first."""
    table = Table.grid(padding=(0, 2))
    for name in ("icon", "name", "state", "lifecycle", "ready", "restarts", "age", "place", "images", "waiting"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("restarts", "age") else "left")
    for pod in pods:
        icon, style = _icon(pod)
        restarts = "1 restart" if pod.restarts == 1 else f"{pod.restarts} restarts"
        images = ", ".join(short_image(image) for image in pod.images)
        waiting = _waiting(pod, now)
        node = pod.node or "-"
        name, place = (node, pod.name) if by_node else (pod.name, node)
        cells = [name, pod.state, pod.lifecycle or "-", pod.ready, restarts, age(pod.created, now), place]
        table.add_row(Text(icon, style=style), *cells, Text(images, style="dim"), Text(waiting, style="yellow"))
    return table


def _waiting(pod: PodView, now: datetime) -> str:
    if pod.waiting_for:
        return pod.waiting_for
    rest = 0.0 if pod.available_at is None else (pod.available_at - now).total_seconds()
    return f"available in {span(rest)} (minReadySeconds)" if rest > 0 else ""


def _icon(pod: PodView) -> tuple[str, str]:
    if pod.state == "Terminating":
        return "✂", "magenta"
    if pod.serving:
        return "●", "green"
    if pod.lifecycle in ("PreparingUpdate", "Updating") or pod.updating:
        return "↻", "cyan"
    if pod.lifecycle == "PreparingDelete":
        return "◌", "magenta"
    broken = pod.state == "Failed" or pod.state.endswith(("BackOff", "Error", "OOMKilled", "Evicted"))
    return ("✗", "red") if broken else ("○", "yellow")


def _rest(pods: Sequence[PodView]) -> str:
    serving = sum(pod.serving for pod in pods)
    state = "all ready" if serving == len(pods) else f"{serving} ready"
    return f"… and {len(pods)} more, {state} (--all shows them)"
