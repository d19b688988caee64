"""Two plots as inline SVG, without script, font or another file. Every text in them is escaped; each has a name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from ...common.text import in_page
from ...metrics import Interval

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 540, 56, 20, 14, 46
_CHARACTER = 7.0  # pixels of a character at 12 px, about
_LONGEST_NAME = 24  # characters, at the side of rows
_GRID = 'stroke="var(--line)" fill="none"'  # attributes, and no style sheet: a page's policy forbids one in a plot
_LEAD = 'stroke="var(--quiet)" fill="none"'
_WHISKER = f'{_LEAD} stroke-width="2"'
_COLOUR = "var(--accent,#1d6fb8)"
_EDGE = f'stroke="{_COLOUR}" stroke-width="2"'
_DOT, _FIRST = f'{_EDGE} fill="{_COLOUR}"', f'{_EDGE} fill="var(--page)"'
_MIXED = (f'{_EDGE} fill="color-mix(in srgb,{_COLOUR} {share}%,var(--page))"' for share in (35, 70))
_SHADES = (_FIRST, *_MIXED, _DOT, f'{_EDGE} fill="var(--ink)"')  # of the dots of groups
_END, _MIDDLE = 'text-anchor="end"', 'text-anchor="middle"'

_MOST_NAMES = 60
"""Names beside dots: for more there is no room, and to look for it takes long. The title of a dot names it, too."""


@dataclass(frozen=True)
class Point:
    """A dot with its name: ``x`` above 0, ``y`` with its interval."""

    name: str
    x: float
    y: Interval


def scatter(points: Sequence[Point], *, x: str, y: str) -> str:
    """Draw scores against their cost on a logarithmic axis; the first point is hollow, and names do not overlap.

    Args:
        points: one or more.
        x, y: the labels of the axes.
    """
    height = 300
    low, high = min(p.x for p in points) / 1.3, max(p.x for p in points) * 1.6
    ticks = _ticks([p.y for p in points])

    def across(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (math.log(value / low) / math.log(high / low))

    def up(value: float) -> float:
        return height - _BOTTOM - (height - _TOP - _BOTTOM) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    parts = [_across_line(up(tick), _number(tick)) for tick in ticks]
    parts += [_up_line(across(tick), height, f"{tick:g}") for tick in _powers(low, high)]
    places = [(across(p.x), up(p.y.mean)) for p in points]
    taken = [(cx - 6, up(p.y.high) - 4, cx + 6, up(p.y.low) + 4) for p, (cx, _) in zip(points, places, strict=True)]
    for number, (point, (cx, cy)) in enumerate(zip(points, places, strict=True)):
        kind = _FIRST if number == 0 else _DOT
        label = in_page(f"{point.name}: {point.y}, {x} {point.x:.4g}")
        ends = f"M{cx:.1f} {up(point.y.low):.1f}V{up(point.y.high):.1f}"
        caps = "".join(f"M{cx - 4:.1f} {up(end):.1f}h8" for end in (point.y.low, point.y.high))
        parts.append(f'<path {_WHISKER} d="{ends}{caps}"/>')
        parts.append(f'<circle {kind} cx="{cx:.1f}" cy="{cy:.1f}" r="5"><title>{label}</title></circle>')
        if number < _MOST_NAMES:
            parts.append(_name(point.name, cx, cy, taken))
    return _svg(f"{y} against {x}", height, [*parts, *_axes(height, x, y)])


def dot_rows(rows: Mapping[str, Mapping[int, Interval]], *, x: str, unit: str) -> str:
    """Draw a line for each name with a dot for each group, darker for a higher one; intervals are thin lines.

    Args:
        rows: scores by name, then by group; a group is a number of units, such as hops.
        x: the label of the axis, which goes from 0 to 1, or further where a score does.
    """
    sizes = {group: interval.n for row in rows.values() for group, interval in row.items()}
    names = {group: f"{group} {unit}{'' if group == 1 else 's'}" for group in sorted(sizes)}
    shades = {group: _SHADES[min(place, len(_SHADES) - 1)] for place, group in enumerate(names)}
    left = 24 + _CHARACTER * max(len(_shortened(name)) for name in rows)
    step = 12 + 7 * len(names)
    height = 40 + step * len(rows) + _BOTTOM
    ticks = _ticks([interval for row in rows.values() for interval in row.values()], least=1.0)

    def across(value: float) -> float:
        return left + (_WIDTH - left - _RIGHT) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    parts = [_up_line(across(tick), height, _number(tick), top=36) for tick in ticks]
    for place, (group, label) in enumerate(names.items()):
        cx = 8 + 116 * place
        parts.append(f'<circle {shades[group]} cx="{cx}" cy="14" r="5"/>')
        parts.append(f'<text x="{cx + 10}" y="18">{in_page(label)} (n={sizes[group]})</text>')
    for line, (name, row) in enumerate(rows.items()):
        middle = 40 + step * (line + 0.5)
        parts.append(f'<path {_GRID} d="M0 {40 + step * line}H{_WIDTH}"/>')
        parts.append(f'<text {_END} x="{left - 12}" y="{middle + 4:.1f}">{in_page(_shortened(name))}</text>')
        for place, (group, label) in enumerate(names.items()):
            if group in row:
                cy = middle + 7 * (place - (len(names) - 1) / 2)
                parts.append(_dot(row[group], across, cy, shades[group], f"{name}, {label}: {row[group]}"))
    middle = (left + _WIDTH - _RIGHT) / 2
    parts.append(f'<text {_MIDDLE} x="{middle:.0f}" y="{height - 8}">{in_page(x)}</text>')
    return _svg(f"{x} by number of {unit}s", height, parts)


def _shortened(name: str) -> str:
    """Return the name, or its beginning where the dots would have no room; the title of a dot has all of it."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _dot(score: Interval, across: Callable[[float], float], cy: float, shade: str, label: str) -> str:
    ends = f"M{across(score.low):.1f} {cy:.1f}H{across(score.high):.1f}"
    return (
        f'<path {_WHISKER} d="{ends}"/><circle {shade} cx="{across(score.mean):.1f}" cy="{cy:.1f}" r="4">'
        f"<title>{in_page(label)}</title></circle>"
    )


def _name(name: str, cx: float, cy: float, taken: list[tuple[float, float, float, float]]) -> str:
    """Draw the name at the nearest free place beside its dot, with a line to the dot if that place is far."""
    width = _CHARACTER * len(name)
    for far in range(0, 140, 14):
        for dy in (far, -far):
            for left in (cx + 9, cx - 9 - width):
                box = (left, cy + dy - 7, left + width, cy + dy + 7)
                inside = box[0] >= _LEFT and box[2] <= _WIDTH and box[1] >= _TOP
                if inside and not any(_meet(box, other) for other in taken):
                    taken.append(box)
                    edge = left if left > cx else left + width
                    lead = f'<path {_LEAD} d="M{cx:.1f} {cy:.1f}L{edge:.1f} {cy + dy:.1f}"/>' if far else ""
                    side = "" if left > cx else f" {_END}"
                    return f'{lead}<text{side} x="{edge:.1f}" y="{cy + dy + 4:.1f}">{in_page(name)}</text>'
    return ""  # no free place: the title of the dot still names it


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _axes(height: int, x: str, y: str) -> list[str]:
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    across = f'<text {_MIDDLE} x="{middle:.0f}" y="{height - 8}">{in_page(x)}</text>'
    turned = f'<text {_MIDDLE} transform="translate(16 {height / 2:.0f}) rotate(-90)">{in_page(y)}</text>'
    return [across, turned]


def _across_line(y: float, label: str) -> str:
    line = f'<path {_GRID} d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
    return f'{line}<text {_END} x="{_LEFT - 8}" y="{y + 4:.1f}">{label}</text>'


def _up_line(x: float, height: int, label: str, top: int = _TOP) -> str:
    line = f'<path {_GRID} d="M{x:.1f} {top}V{height - _BOTTOM}"/>'
    return f'{line}<text {_MIDDLE} x="{x:.1f}" y="{height - _BOTTOM + 18}">{label}</text>'


def _svg(name: str, height: int, parts: Sequence[str]) -> str:
    look = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" fill="var(--ink)" font-size="12"'
    return f'<svg class="plot" {look} role="img" aria-label="{in_page(name)}">{"".join(parts)}</svg>'


def _ticks(scores: Sequence[Interval], least: float = 0.1) -> list[float]:
    """Return a few round numbers, from 0 or below the lowest score, to at least the highest."""
    low, high = min(0.0, *(one.low for one in scores)), max(least, *(one.high for one in scores))
    steps = (digit * 10.0**power for power in count(-1) for digit in (1, 2, 5))
    step = next(step for step in steps if high - low <= 5.001 * step)
    return [step * n for n in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]


def _number(tick: float) -> str:
    return f"{tick:.1f}" if abs(tick) < 10 else f"{tick:,.0f}"


def _powers(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between the ends; where fewer than two are there, 1 to 9 times."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    few, many = (
        [tick for power in powers for digit in digits if low <= (tick := digit * 10.0**power) <= high]
        for digits in ((1, 2, 5), range(1, 10))
    )
    return few if len(few) > 1 else many
