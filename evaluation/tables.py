"""Measured rows as a table: as texts for people, and as single numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..common.text import in_page
from ..metrics import Interval

SIMULATED = "simulated LM: these numbers say nothing about methods"
SELF_WRITTEN = "some questions were written by the LM that answers: they may suit it better than others"
"""The note beside such scores wherever they are printed."""


def warning_of(simulated: bool, self_written: bool) -> str:
    """Return the warning above scores: whether they are simulated, and whether the LM wrote some of the questions."""
    return "; ".join([SIMULATED] * simulated + [SELF_WRITTEN] * self_written)


@dataclass(frozen=True)
class Table:
    """The measured rows, and the facts that they rest on.

    Attributes:
        details: the same rows, with less important figures; may be empty.
        numbers: the rows with every number in its own column (`flat`).
        simulated: whether any of it was made with the simulated LM.
        self_written: whether an LM answered questions that it wrote.
    """

    title: str
    facts: Sequence[str]
    note: str
    lines: Sequence[Mapping[str, str]]
    numbers: Sequence[Mapping[str, Any]]
    simulated: bool
    details: Sequence[Mapping[str, str]] = ()
    self_written: bool = False

    @property
    def warning(self) -> str:
        """Return the warning to show above the lines."""
        return warning_of(self.simulated, self.self_written)

    def as_markdown(self) -> str:
        """Return the title, the facts, the note, the lines and the details as Markdown."""
        warning = f"**{self.warning}**\n\n" if self.warning else ""
        details = f"\n## Details\n\n{markdown_of(self.details)}\n" if self.details else ""
        lines = markdown_of(self.lines)
        return f"# {self.title}\n\n{warning}{' · '.join(self.facts)}\n\n{self.note}\n\n{lines}\n{details}"

    def as_csv(self) -> str:
        """Return the numbers as CSV; each line says whether the LM was simulated, and wrote some of the questions."""
        about = {"simulated": self.simulated, "self_written": self.self_written}
        lines = [{**numbers, **about} for numbers in self.numbers]
        text = io.StringIO()
        writer = csv.DictWriter(text, list(dict.fromkeys(key for line in lines for key in line)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
        return text.getvalue()


def markdown_of(lines: Sequence[Mapping[str, str]]) -> str:
    """Return texts by heading as a Markdown table."""
    headings = list(lines[0])
    body = [headings, ["---"] * len(headings), *([line[heading] for heading in headings] for line in lines)]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in body)


def html_of(lines: Sequence[Mapping[str, str]]) -> str:
    """Return texts by heading as a table of a page; everything in it is escaped."""
    head = "".join(f"<th scope=col>{in_page(heading)}</th>" for heading in lines[0])
    body = "".join("<tr>" + "".join(f"<td>{in_page(cell)}</td>" for cell in line.values()) + "</tr>" for line in lines)
    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with each interval as three numbers: its mean, and its ends as ``…_low`` and ``…_high``."""
    numbers: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Interval):
            numbers |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            numbers[name] = value
    return numbers
