"""How a card looks."""

from datetime import datetime

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from flotilla_cli.ages import age
from flotilla_cli.card.card import Card


def render(card: Card, now: datetime) -> Tree:
    """The card as rich draws it."""
    place = f"{card.namespace}/{card.name}" if card.namespace else card.name
    title = Text(f"{card.kind} {place}", style="bold")
    title.append(f"  {card.headline}" if card.headline else "", style="default")
    if card.deleting:
        title.append("  deleting", style="red")
    title.append(f"  age {age(card.created, now)}", style="dim")
    tree = Tree(title, guide_style="dim")
    for line in card.waiting_for:
        tree.add(Text(line, style="yellow"))
    if not card.waiting_for:
        tree.add(Text("nothing to wait for", style="green"))
    if card.rows:
        tree.add(_table(card))
    return tree


def _table(card: Card) -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in card.columns:
        table.add_column(no_wrap=True)
    table.add_row(*(Text(name, style="dim") for name in card.columns))
    for row in card.rows:
        table.add_row(*row)
    return table
