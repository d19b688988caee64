"""Two plots as images inside a page: they hold no script, and a browser needs no other file."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from io import BytesIO
from itertools import cycle
from threading import Lock
from typing import Any

from ...common.text import in_page, printable
from ...metrics import Interval

_INK = "#777777"  # can be read on a light page and on a dark one
_LOOK: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK),
    **{"grid.color": _INK, "grid.alpha": 0.25, "axes.grid": True, "axes.spines.top": False, "axes.spines.right": False},
    **{"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "questree", "legend.frameon": False},
}
_LONGEST = 40  # characters of a name
_WIDE, _COLUMNS = 5.6, 60  # inches, so that two plots fit into 1280 pixels; characters in that width
_MARKERS = "osD^vP*X<>p"  # with the ten colours of matplotlib's cycle, 110 dots can be told apart
_ALONE = Lock()  # matplotlib's style is global to the process


def scatter(points: Mapping[str, tuple[float, Interval]], *, x: str, y: str) -> str:
    """Draw scores with their intervals against their cost, on a logarithmic axis; the first point is hollow.

    Args:
        points: one or more by name: the cost, above 0, and the score.
        x, y: the labels of the axes.
    """
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):  # matplotlib would write 0.1 as 1e-01
        def __call__(self, x: float, pos: Any = None) -> str:
            return f"{x:.6g}" if super().__call__(x, pos) else ""

    def draw(axes: Any) -> None:
        axes.set(xscale="log", xlabel=_shown(x), ylabel=_shown(y))
        for place, ((name, (cost, score)), marker) in enumerate(zip(points.items(), cycle(_MARKERS), strict=False)):
            filled = {"fillstyle": "full" if place else "none", "label": _shown(name)}
            axes.errorbar(cost, score.mean, yerr=_ends([score]), fmt=marker, **filled)
        axes.axhline(0, alpha=0)  # the axis begins there
        costs = [cost for cost, _ in points.values()]
        beside = max(1.1, (max(costs) / min(costs)) ** 0.05)  # one point alone has no scale of its own
        axes.set_xlim(min(costs) / beside, max(costs) * beside)
        axes.xaxis.set(major_formatter=Plain(), minor_formatter=Plain(minor_thresholds=(2, 0.5)))

    return _image(f"{y} against {x}", draw, height=3, named=points)


def dot_rows(rows: Mapping[str, Mapping[int, Interval]], *, x: str) -> str:
    """Draw a line for each name with a dot for each number of hops; intervals are thin lines.

    Args:
        rows: scores by name, then by number of hops.
        x: the label of the axis, which goes from 0 to 1, or further where a score does.
    """
    sizes = {hops: score.n for row in rows.values() for hops, score in row.items()}
    labels = {hops: f"{hops} hop{'' if hops == 1 else 's'} (n={n})" for hops, n in sorted(sizes.items())}

    def draw(axes: Any) -> None:
        for number, ((hops, label), marker) in enumerate(zip(labels.items(), cycle(_MARKERS), strict=False)):
            there = {line: row[hops] for line, row in enumerate(rows.values()) if hops in row}
            beside = 0.6 * ((number + 0.5) / len(sizes) - 0.5)
            means, lines = [one.mean for one in there.values()], [line + beside for line in there]
            axes.errorbar(means, lines, xerr=_ends(there.values()), fmt=marker, label=label)
        axes.axvspan(0, 1, alpha=0)  # the axis has room for every share
        axes.set(xlabel=_shown(x), yticks=range(len(rows)), yticklabels=map(_shown, rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)

    height = 1.2 + (0.2 + 0.16 * len(sizes)) * len(rows)
    return _image(f"{x} by number of hops", draw, height=height, named=labels.values())


def _shown(name: str) -> str:
    """Return a name, or its beginning where the dots would have no room."""
    return printable(name)[:_LONGEST]


def _ends(scores: Iterable[Interval]) -> list[list[float]]:
    """Return how far the intervals reach below and above their means."""
    below, above = zip(*((max(one.mean - one.low, 0.0), max(one.high - one.mean, 0.0)) for one in scores), strict=True)
    return [list(below), list(above)]


def _image(name: str, draw: Callable[[Any], None], *, height: float, named: Collection[str]) -> str:
    """Return the drawing as an image for a page; a screen reader reads out its name.

    Below the plot stands what is ``named`` in it, in as many columns as have room.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    svg = BytesIO()
    columns = max(1, _COLUMNS // (10 + max(len(_shown(one)) for one in named)))
    with _ALONE, rc_context(_LOOK):
        figure = Figure(figsize=(_WIDE, height + 0.22 * -(-len(named) // columns)), layout="constrained")
        draw(figure.subplots())
        figure.legend(loc="outside lower left", ncols=columns)
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    content = b64encode(svg.getvalue()).decode()
    return f'<img class="plot" alt="{in_page(name)}" src="data:image/svg+xml;base64,{content}">'
