"""Tables as text, as HTML in notebooks, and by rich on a terminal where it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from html import escape
from typing import Any

CELL = 'style="text-align:{}; padding:1px 10px 1px 0; white-space:pre"'


class Table:
    """Cells in columns.

    Args:
        title: what stands above.
        columns: heads; those that begin with ">" are aligned to the right.
        rows: texts of the cells.
        notes: lines below.
    """

    def __init__(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> None:
        self.title, self.rows, self.notes = title, rows, notes
        self.columns = [name.removeprefix(">") for name in columns]
        self.right = [name.startswith(">") for name in columns]

    def text(self) -> str:
        """The table in fixed-width characters."""
        widths = [max(map(len, cells)) for cells in zip(self.columns, *self.rows, strict=True)]

        def line(cells: Sequence[str]) -> str:
            placed = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, self.right, strict=True)]
            return "  ".join(placed).rstrip()

        rule = "-" * (sum(widths) + 2 * len(widths) - 2)
        head = [self.title] if self.title else []
        return "\n".join(
            [*head, line(self.columns), rule, *map(line, self.rows), *([rule] if self.notes else []), *self.notes]
        )

    def html(self) -> str:
        """The table in HTML, all texts escaped."""

        def line(tag: str, cells: Sequence[str]) -> str:
            sides = ["right" if r else "left" for r in self.right]
            parts = [f"<{tag} {CELL.format(s)}>{escape(c)}</{tag}>" for c, s in zip(cells, sides, strict=True)]
            return f"<tr>{''.join(parts)}</tr>"

        caption = f'<caption style="text-align:left"><b>{escape(self.title)}</b></caption>' if self.title else ""
        body = "".join([line("td", row) for row in self.rows])
        below = "".join([f"<div>{escape(note)}</div>" for note in self.notes])
        return f"<table>{caption}<thead>{line('th', self.columns)}</thead><tbody>{body}</tbody></table>{below}"

    def rich(self) -> Any:
        """The table for the package rich."""
        console, table, text = [importlib.import_module(f"rich.{name}") for name in ("console", "table", "text")]
        made = table.Table(title=self.title or None, title_justify="left")
        for name, right in zip(self.columns, self.right, strict=True):
            made.add_column(name, justify="right" if right else "left")
        for row in self.rows:
            made.add_row(*map(text.Text, row))
        return console.Group(made, *map(text.Text, self.notes))


class Report:
    """What is printed as a table."""

    def _table(self) -> Table:
        raise NotImplementedError

    def __str__(self) -> str:
        table = self._table()
        if sys.stdout is not None and sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
            console = importlib.import_module("rich.console").Console()
            with console.capture() as capture:
                console.print(table.rich())
            return str(capture.get()).rstrip("\n")
        return table.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._table().html()

    def __rich__(self) -> Any:
        return self._table().rich()


def clipped(text: str, most: int) -> str:
    """The text, of which the middle is left out where it is longer than `most`."""
    if len(text) <= most:
        return text
    left = (most - 1) // 2
    return f"{text[:left]}…{text[len(text) - (most - 1 - left) :]}"
