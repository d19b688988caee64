"""The words of a text in a form in which numbers and dates of the same value are the same, and others are not.

SQuAD's normalisation deletes signs: 3.5 and 35 are one there. That is right for its scores, and wrong for facts.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache

_MONTHS = ["january", "february", "march", "april", "may", "june"]
_MONTHS += ["july", "august", "september", "october", "november", "december"]
_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
_MONTH += r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
_DAY, _YEAR = r"(?:[12]\d|3[01]|0?[1-9])", r"\d{3,4}(?![\d%]|[.,:]\d)"
_ALONE = r"(?=\d)(?<![\d.,:/])"  # what comes next first: it is twice as fast
_NTH = r"(?:st|nd|rd|th|\.)?"
_AND = r"\s*(?:[-–—,]|\b(?:to|and|or|until|till)\b)\s*(?:the\s+)?"
_DATES = (  # as they are written: by digits, the day first, the month first
    r"(?=\d)(?<![\w.-])(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}(?:\.\s?\d{1,2}\.\s?|/\d{1,2}/|-\d{1,2}-)\d{4})(?![\w-]|[./]\d)",
    rf"{_ALONE}{_DAY}{_NTH}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
    rf"\b{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?(?![\w:%]|[.,]\d)(?:,?\s+{_YEAR})?",
)
DATE = f"(?i:{'|'.join(_DATES)})"
"""A date with its day, as texts write one: a regular expression."""
MONTH_OF_YEAR = rf"(?i:\b{_MONTH},?\s+{_YEAR})"
_SIGN, _LARGE = r"(?<![\w)\]%.])(?<!\d\s)[-−]", {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_PARTED = r"\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?"  # 1 200 000
_UNIT = rf"(?i:\s?%|\s(?:percent|per cent|{'|'.join(_LARGE)})\b)"
_FIGURE = rf"(?:{_PARTED}|(?<!\w)\.\d+|\d+(?:[.,:/]\d+)*)"
NUMBER = rf"(?=[-−.\d])(?:{_SIGN})?(?<![^\W_])(?<!\d[.,:/]){_FIGURE}{_UNIT}?"
"""A number with the sign, the percent or the power of ten that belongs to it: a regular expression."""

_DIGITS_ALONE = re.compile(_DATES[0])
_BY_DIGITS = re.compile(r"(\d+)([-./])\s?(\d+)\2\s?(\d+)")
_DAYS_FIRST = re.compile(
    rf"{_ALONE}((?:{_DAY}{_NTH}{_AND}){{0,9}})({_DAY}){_NTH}\s+(?:of\s+)?({_MONTH})(?:,?\s+({_YEAR}))?", re.IGNORECASE
)
_MONTH_FIRST = re.compile(
    rf"\b({_MONTH})\s+({_DAY}(?:(?:st|nd|rd|th)?{_AND}{_DAY}){{0,9}})(?:st|nd|rd|th)?(?![\w:%]|[.,]\d)(?:,?\s+({_YEAR}))?",
    re.IGNORECASE,
)
_MONTH_OF_YEAR = re.compile(rf"\b({_MONTH}),?(?=\s+{_YEAR})")
_TWO_DATES = re.compile(rf"(\d+ (?:{'|'.join(_MONTHS)}))(?={_AND}\d+ (?:{'|'.join(_MONTHS)}) (\d+))")
_NUMBERS = re.compile(f"({NUMBER})")
_COUNTED = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_ORDERED = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_DIGITS = {word: str(place) for place, word in enumerate(_COUNTED, start=1)} | {
    word: f"{place}{({1: 'st', 2: 'nd', 3: 'rd'}).get(place, 'th')}" for place, word in enumerate(_ORDERED, start=1)
}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_DIGITS)})\b")
_SPELLINGS = str.maketrans(dict.fromkeys("‘’ʼ`´", "'") | dict.fromkeys("‐‑‒–−", "-") | dict.fromkeys("—―", " "))
_ACCENTS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
_SUFFIXES = re.compile(r"([^\W_][+#]{1,2})(?![^\W_])|[+#]+")  # C++ and C# are not C
_JOINTS = re.compile(r"(?<=[^\W_])[.'&/-]+(?=[^\W_])")
_APART = re.compile(r"'s\b|\b[dl]'|(?<=\d)(?=[^\W\d_])")
_ARTICLES = re.compile(r"\b(?:an?|the)\b")


@lru_cache(maxsize=4096)
def by_value(text: str, joined: bool = False) -> str:
    """Return the words of a text in lower case, without articles, accents of Latin letters and signs between words.

    Numbers are told by their value (3.50 is 3.5, 1,200,000 is 1.2 million, five is 5), dates as "4 march 1998".
    A sign that makes another number or name is kept: -12, 5%, 3:2, 1/2, C++.

    Args:
        text: any.
        joined: whether O'Hara, Rolls-Royce and U.S. become one word or two.
    """
    plain = unicodedata.normalize("NFD", text.translate(_SPELLINGS).casefold())
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", plain))
    plain = _NUMBER_WORD.sub(lambda found: _DIGITS[found[0]], plain)
    pieces = _NUMBERS.split(_dated(plain))
    told = [_value(one) if place % 2 else _words(one, joined) for place, one in enumerate(pieces)]
    return " ".join(" ".join(told).split())


def forms(text: str) -> frozenset[str]:
    """Return the forms by which an item is known: two items that share one are the same.

    As exact match has it, case, articles and punctuation do not count; numbers and dates are compared as values.
    """
    return frozenset({by_value(text), by_value(text, joined=True)} - {""}) or frozenset({text.strip().casefold()})


def same_spelling(text: str) -> str:
    """Return the text with the dashes and apostrophes of a typewriter; a dash between clauses becomes a space."""
    return text.translate(_SPELLINGS)


def has_number(text: str) -> bool:
    """Return whether a number or a date stands in the text."""
    return _NUMBERS.search(text) is not None


def _dated(text: str) -> str:
    """Return the text with each date as "4 march 1998": all days of a range have their month and year."""
    text = _DIGITS_ALONE.sub(lambda found: _from_digits(found[0]), text)
    text = _MONTH_FIRST.sub(lambda found: _days(found[2], found[1], found[3]), text)
    text = _DAYS_FIRST.sub(lambda found: _days(f"{found[1]}{found[2]}", found[3], found[4]), text)
    text = _MONTH_OF_YEAR.sub(lambda found: _month(found[1]), text)
    return _TWO_DATES.sub(r"\1 \2", text)


def _days(days: str, month: str, year: str | None) -> str:
    of = f"{_month(month)} {int(year) if year else ''}"
    return " ".join(f"{int(day)} {of}" for day in re.findall(r"\d+", days)) + " "


def _month(spelling: str) -> str:
    return next(name for name in _MONTHS if name.startswith(spelling[:3]))


def _from_digits(date: str) -> str:
    """Return a date of digits alone in words; one whose day may be its month, as it is, with the year apart."""
    found = _BY_DIGITS.fullmatch(date)
    if found is None:
        return date
    first, second, last = int(found[1]), int(found[3]), int(found[4])
    if len(found[1]) == 4:
        first, second, last = last, second, first
    elif found[2] != "." and first < 13 and second < 13:
        return f"{first}/{second} {last}"
    elif second > 12:
        first, second = second, first
    return f"{first} {_MONTHS[second - 1]} {last}" if 0 < second < 13 else date


def _value(number: str) -> str:
    """Return a number in the one form of its value."""
    sign, rest = ("-", number[1:]) if number[0] in "-−" else ("", number)
    found = re.match(r"[\d.,:/ \u00a0\u202f]*[\d]", rest)
    digits, unit = (found[0], rest[found.end() :].strip()) if found else (rest, "")
    parts = re.split("([:/])", digits)
    if len(parts[0]) == 4 and parts[1:2] == ["/"]:  # years
        return " ".join(part for part in parts if part not in ":/")
    value = "".join(part if part in ":/" else _plain_number(part) for part in parts)
    if unit in _LARGE and re.fullmatch(r"[\d.]+", value):
        value = _plain_number(f"{Decimal(value).scaleb(_LARGE[unit]):f}")
        unit = ""
    return f"{sign}{value}{'%' if unit else ''}"


def _plain_number(digits: str) -> str:
    """Return a number without separators of thousands and zeros that count nothing, with a point for a comma."""
    digits = re.sub(r"[ \u00a0\u202f]", "", digits)
    if re.fullmatch(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?", digits):
        digits = digits.replace(",", "")
    elif re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:\.\d{3}|,\d+)", digits):
        digits = digits.replace(".", "")
    whole, point, fraction = digits.replace(",", ".").partition(".")
    if "." in fraction:  # a version or a section
        return digits
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if point and fraction else "")


class _Separators(dict[int, int]):
    """A table for `str.translate` that keeps letters, digits, their marks, + and #, and makes spaces of the rest."""

    def __missing__(self, code: int) -> int:
        sign = chr(code)
        kept = sign.isalnum() or sign in "+#" or unicodedata.category(sign).startswith("M")
        self[code] = code if kept else 32
        return self[code]


_SEPARATORS = _Separators()


def _words(text: str, joined: bool) -> str:
    """Return the words of a text without numbers."""
    text = _JOINTS.sub("", text) if joined else _APART.sub(" ", text)
    text = _SUFFIXES.sub(lambda found: found[1] or " ", text)
    return _ARTICLES.sub(" ", text.translate(_SEPARATORS))
