"""Scores of answers that are one of a few words: yes or no, FEVER's labels. The ambiguous are wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

YesNo = Literal["yes", "no"]
Label = Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]

_WORD = r"(yes|no|true|false)\b(?!-\w)"
# "no" is most often a determiner, so it counts only where it is said by itself: as the first word, before a
# pause, or after "answer is"
_SAID = re.compile(rf"(?:^\W*|\banswer(?:\s+is|\s+would\s+be)?\W+){_WORD}|\b{_WORD}(?=\s*(?:[.,;:!?)\]\"'*\n]|$))")

_NOT_ENOUGH = re.compile(
    r"(?:not enough|insufficient|lack of) (?:info(?:rmation)?|evidence)\b(?: to \w+(?: (?:or|nor|and) \w+)?)?"
    r"|neither (?:supports?|supported) nor (?:refutes?|refuted)|\bnei\b|\bunverifiable\b"
)
_NEGATED = re.compile(r"(?:\bnot|\bnever|\bcannot|n't)(?: be)? (?:support|refute|contradict|true|false)\w*")
_SUPPORTS = re.compile(r"\bsupport(?:s|ed)?\b|\btrue\b")
_REFUTES = re.compile(r"\brefute[sd]?\b|\bcontradict(?:s|ed)?\b|\bfalse\b")


def read_yes_no(text: str) -> YesNo | None:
    """The yes or no that the text says (or true, false); None when it says neither, or both."""
    said = {match.group(1) or match.group(2) for match in _SAID.finditer(text.lower())}
    verdicts = {"yes" if word in {"yes", "true"} else "no" for word in said}
    if len(verdicts) != 1:
        return None
    return "yes" if "yes" in verdicts else "no"


def yes_no_accuracy(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer says the same yes or no as a gold answer does."""
    said = read_yes_no(answer)
    return said is not None and said in {read_yes_no(gold) for gold in golds}


def read_label(text: str) -> Label | None:
    """FEVER's label in the text, in its common spellings; None when there is none, or several; a negated one is none.

    Common are: supports, supported, true; refutes, refuted, contradicts, false; not enough info(rmation) or
    evidence, insufficient information, neither supported nor refuted, NEI, unverifiable.
    """
    plain = " ".join(text.lower().replace("_", " ").replace("’", "'").split())
    rest = _NOT_ENOUGH.sub(" ", plain)
    found: list[Label] = ["NOT ENOUGH INFO"] if rest != plain else []
    rest = _NEGATED.sub(" ", rest)  # "not supported" may be either of the other two
    if _SUPPORTS.search(rest):
        found.append("SUPPORTS")
    if _REFUTES.search(rest):
        found.append("REFUTES")
    return found[0] if len(found) == 1 else None


def label_accuracy(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer names the same label as a gold answer does (FEVER: Thorne et al., NAACL 2018)."""
    label = read_label(answer)
    return label is not None and label in {read_label(gold) for gold in golds}
