"""Comparisons of dates, numbers and names that facts carry: made by rules, not by the LM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from operator import mul
from typing import NamedTuple

from ..metrics import by_value, normalise, stands_in

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_YEAR = re.compile(r"\b(\d{4})\b")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SPAN = re.compile(r"\s+(?:to|until|-|–|—)\s+|(?<=\d{4})[-–—](?=\d{4})")
_DAYS = (365.25, 30.44, 1.0)  # of a year, a month and a day
_FIRST, _LAST = ("earliest", "smallest", "shortest"), ("latest", "largest", "longest")


class Compared(NamedTuple):
    """A thing that a question compares, and its value."""

    name: str
    value: str

    @property
    def ends(self) -> list[str]:
        """Return the two dates of a span; for any other value, the value."""
        return _SPAN.split(self.value)


class ValueComparison(NamedTuple):
    """The things that a question compares, and what it asks for.

    Attributes:
        asks: earliest or latest date, smallest or largest number, shortest or longest span of time, or "same".
        of: at least two.
    """

    asks: str
    of: list[Compared]


def read_comparison(lines: Sequence[str]) -> ValueComparison | None:
    """Return a comparison that an LM wrote as lines: "latest", "The Red Barge: 1975" …; None if it wrote none."""
    asks = lines[0].strip(" .:").lower() if lines else ""
    of = [
        Compared(name.strip(), value.strip())
        for name, sep, value in (line.rpartition(": ") for line in lines[1:])
        if sep
    ]
    return ValueComparison(asks, of) if asks in (*_FIRST, *_LAST, "same") and 1 < len(of) == len(lines) - 1 else None


def settle(answer: str, comparison: ValueComparison) -> str:
    """Return the answer; if it names another compared thing than the values show, return the right one."""
    result = outcome(comparison)
    if result is None:
        return answer
    if comparison.asks == "same":
        return result if normalise(answer) in ("yes", "no") else answer
    others = [thing.name for thing in comparison.of if normalise(thing.name) != normalise(result)]
    names_other = any(stands_in(answer, other) for other in others) and not stands_in(answer, result)
    return result if names_other else answer


def outcome(comparison: ValueComparison) -> str | None:
    """Return the name of a thing, yes or no; None if the values cannot be compared.

    "same" is decided for dates, for numbers, and for equal names. Different names may mean the same thing.
    """
    values = [thing.value for thing in comparison.of]
    if comparison.asks == "same":
        return _same(values)
    if comparison.asks in ("shortest", "longest"):
        read = _lengths([thing.ends for thing in comparison.of])
    else:
        read = _dates(values) if comparison.asks in ("earliest", "latest") else _numbers(values)
    if read is None or len(set(read)) < len(read):
        return None
    best = min(read) if comparison.asks in _FIRST else max(read)
    return comparison.of[read.index(best)].name


def _same(values: Sequence[str]) -> str | None:
    if len(set(map(by_value, values))) == 1:
        return "yes"
    read = _dates(values) or _numbers(values)
    return None if read is None else "yes" if len(set(read)) == 1 else "no"


def _dates(values: Sequence[str]) -> list[tuple[float, ...]] | None:
    """Return dates as (year, month, day), as far as all of them are known; None if one is no date."""
    read = [_date(value) for value in values]
    known = min(map(len, read))
    return [date[:known] for date in read] if known else None


def _date(value: str) -> tuple[float, ...]:
    year, words = _YEAR.search(value), value.lower()
    if year is None:
        return ()
    month = next((place for place, name in enumerate(_MONTHS, start=1) if re.search(rf"\b{name}", words)), None)
    day = _DAY.search(words.replace(year[1], ""))
    return (int(year[1]), *((month,) if month else ()), *((int(day[1]),) if month and day else ()))


def _lengths(spans: Sequence[Sequence[str]]) -> list[tuple[float, ...]] | None:
    """Return the lengths of spans in days; None if a span has no two dates, or if unknown days could decide."""
    dates = _dates([date for span in spans for date in span]) if all(len(span) == 2 for span in spans) else None
    if dates is None:
        return None
    days = [sum(map(mul, date, _DAYS)) for date in dates]
    lengths = [end - start for start, end in zip(days[::2], days[1::2], strict=True)]
    unknown = 0 if len(dates[0]) == len(_DAYS) else 2 * _DAYS[len(dates[0]) - 1]
    gaps = [abs(one - other) for one, other in combinations(lengths, 2)]
    return [(length,) for length in lengths] if min(gaps) >= unknown else None


def _numbers(values: Sequence[str]) -> list[tuple[float, ...]] | None:
    """Return numbers without their units; None if a value has none, or several, or the units differ."""
    plain = [value.replace(",", "") for value in values]
    found = [_NUMBER.findall(value) for value in plain]
    units = {normalise(_NUMBER.sub("", value)) for value in plain}
    return [(float(one[0]),) for one in found] if all(len(one) == 1 for one in found) and len(units) == 1 else None
