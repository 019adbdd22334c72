"""Renders the state of the bus."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from flotilla_insight.bus.view import Row, View
from flotilla_insight.durations import size, span


def render(shown: View, *, everything: bool) -> Group:
    """Render one screen; `everything`: also streams that hold nothing."""
    parts: list[RenderableType] = [_findings(shown), _streams(shown, everything=everything), _replicas(shown)]
    if shown.behind:
        parts.append(_behind(shown))
    return Group(*parts, _busiest(shown), _largest(shown))


def _findings(shown: View) -> Text:
    if not shown.findings:
        return Text("nothing is behind\n", style="green")
    return Text("".join(f"• {finding}\n" for finding in shown.findings), style="yellow")


def _table(*columns: str, right: str = "") -> Table:
    table = Table.grid(padding=(0, 2))
    for name in columns:
        table.add_column(no_wrap=True, justify="right" if name in right.split() else "left")
    table.add_row(*(Text(name, style="dim") for name in columns))
    return table


def _streams(shown: View, *, everything: bool) -> Group:
    right = "messages size msg/s bytes/s readers pending"
    columns = ("stream", "messages", "size", "last", "msg/s", "bytes/s", "readers", "pending", "marker", "published-by")
    table = _table(*columns, right=right)
    rows = [row for row in shown.streams if everything or not row.quiet]
    for row in rows:
        table.add_row(*_row(row))
    left = len(shown.streams) - len(rows)
    more = f"and {left} streams that hold no objects (--all)\n" if left else ""
    return Group(table, Text(more, style="dim"))


def _row(row: Row) -> list[str | Text]:
    limit = f" of {size(row.max_bytes)}" if row.max_bytes > 0 else ""
    marker = f"{row.state} {row.epoch}, {span(row.marker_seconds)} ago" if row.marker_seconds is not None else ""
    return [
        row.name,
        str(row.messages),
        f"{size(row.bytes)}{limit}",
        "-" if row.last_seconds is None else span(row.last_seconds),
        f"{row.message_rate:.1f}",
        size(row.byte_rate),
        str(row.readers),
        Text(str(row.pending), style="yellow" if row.pending else "default"),
        marker,
        row.publisher,
    ]


def _replicas(shown: View) -> Group:
    table = _table("replica", "version", "shards", "publishes", "mirror-lag", "waits-for", right="publishes")
    for beat in shown.replicas:
        waits = "; ".join(f"{part} {why}".rstrip() for part, why in beat.waiting.items())
        shards = ", ".join(map(str, beat.shards)) or "-"
        publishes, lag = str(len(beat.resources) or "-"), f"{beat.lag:g} s" if beat.lag else "-"
        table.add_row(beat.name, beat.version, shards, publishes, lag, Text(waits or "nothing", style="default"))
    return Group(table, Text())


def _behind(shown: View) -> Group:
    table = _table("behind", "stream", "pending", "unacknowledged", "at", right="pending unacknowledged at")
    for one in shown.behind:
        table.add_row(one.reader, one.stream, str(one.pending), str(one.unacknowledged), str(one.delivered))
    return Group(table, Text())


def _busiest(shown: View) -> Group:
    table = _table(f"most traffic in {shown.seconds:g} s", "namespace", "messages", "size", right="messages size")
    for share in shown.busiest:
        table.add_row(f"{share.source} {share.what}", share.namespace or "-", str(share.messages), size(share.bytes))
    return Group(table, Text())


def _largest(shown: View) -> Table:
    table = _table("largest objects", "size", right="size")
    for one in shown.largest:
        table.add_row(one.subject, size(one.bytes))
    return table
