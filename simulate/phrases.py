"""Queries and facts in words: a query with or without an earlier answer in it, and a fact as a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..common.placeholders import fill_in
from ..common.sentences import sentences
from ..metrics import normalise

_DESCRIPTIONS = [
    (re.compile(r"^what (?:is|was|are|were) (.+)$", re.IGNORECASE), r"\1"),
    (re.compile(r"^who (?:is|was) (the .+)$", re.IGNORECASE), r"\1"),
    (re.compile(r"^who (.+)$", re.IGNORECASE), r"the one who \1"),
    (re.compile(r"^where (is|was) (.+?)( first|) (\w+)$", re.IGNORECASE), r"the place where \2 \1\3 \4"),
    (re.compile(r"^where did (.+) (die|live)$", re.IGNORECASE), r"the place where \1 \2d"),
    (re.compile(r"^where (?:did|does) (.+)$", re.IGNORECASE), r"the place of \1"),
    (re.compile(r"^in (?:which|what) ([\w -]+?) (is|was) (.+?)( first|) (\w+)$", re.I), r"the \1 in which \3 \2\4 \5"),
    (re.compile(r"^of (?:which|what) ([\w -]+?) is (.+)$", re.IGNORECASE), r"the \1 of which \2 is"),
    (re.compile(r"^(?:which|what) (\w+) (.+)$", re.IGNORECASE), r"the \1 that \2"),
]
_LEANS_ON = re.compile(
    r"[#<]\d|\b(it|he|she|they|his|her|its|their|this|these|those|that (person|man|woman|place|city|country))\b",
    re.IGNORECASE,
)
Answers = Sequence[str | None]
"""Of the steps of a chain, in their order; None where a step has none."""

_A = "\0"  # where the answer stands in a sentence
_PREPOSITION = r"(in|on|at|of|from|under|after|into|for) (?:a suburb of )?"
_STATEMENTS = [  # how the answer to a query is told
    (r"who (is|was|are|were) (the .+)", rf"\2 \1 {_A}"),
    (r"who (?!is |was |are |were |did |does |has )(.+)", rf"{_A} \1"),
    (r"whose (\w+) (.+)", rf"the \1 of {_A} \2"),
    (r"(?:what|which) (is|was|are|were) ((?:the|a) .+(?<! called)(?<! known)(?<! for))", rf"\2 \1 {_A}"),
    (r"(?:where|when) (is|was) (.+?)( first|) ([a-z]+)", rf"\2 \1\3 \4 in {_A}"),
    (r"(?:where|when) did (.+) (die|live)", rf"\1 \2d in {_A}"),
    (rf"{_PREPOSITION}(?:which|what) ([\w -]+?) (is|was) (.+) (the [a-z]+)", rf"\4 \3 \5 \1 {_A}"),
    (rf"{_PREPOSITION}(?:which|what) ([\w -]+?) (is|was) (.+?)( first|) ([a-z]+)", rf"\4 \3\5 \6 \1 {_A}"),
    (rf"{_PREPOSITION}(?:which|what) ([\w -]+?) (is|was) (.+)", rf"\4 \3 \1 {_A}"),
    (r"on which river does (.+) lie", rf"\1 lies on the {_A}"),
    (rf"{_PREPOSITION}(?:which|what) ([\w -]+?) do(?:es)? (.+) (lie|hang|stand|flow)", rf"\3 \4s \1 {_A}"),
    (rf"{_PREPOSITION}(?:which|what) ([\w -]+?) did (.+) (die|live)", rf"\3 \4d \1 {_A}"),
    (r"how (long|high|tall|old) (is|was) (.+)", rf"\3 \2 {_A} \1"),
    (r"(?:which|what) (?:[A-Z]\w+ )?[a-z]+ (?!do |does |did )([a-z]+(?:ed|ht|s|de|te|ad) .+)", rf"{_A} \1"),
]
_TOLD = [(re.compile(asked), told) for asked, told in _STATEMENTS]
_MARKS = r"(?:\s?\[\d+\])*"


def describe(query: str) -> str:
    """Return what a query asks for as a noun phrase: how a model writes on without the answer."""
    bare = query.strip().rstrip("?").strip()
    for pattern, phrase in _DESCRIPTIONS:
        if pattern.match(bare):
            return pattern.sub(phrase, bare)
    return f"the answer to “{bare}”"


def stands_alone(query: str) -> bool:
    """Tell whether the query is complete in itself, as far as its words tell."""
    return len(query.split()) > 2 and not _LEANS_ON.search(query)


def write_out(templates: Sequence[str], answers: Answers, index: int) -> str:
    """Return query ``index`` (from 0) with earlier answers filled in, and described where there is none."""
    return fill_in(templates[index], named_or_described(templates, [*answers, *[None] * index][:index]))


def named_or_described(templates: Sequence[str], answers: Answers) -> list[str | None]:
    """Return what stands for each of these answers in later queries: the answer, or what its query asks for."""
    fillings: list[str | None] = []
    for template, answer in zip(templates, answers, strict=False):
        fillings.append(answer or describe(fill_in(template, fillings)))
    return fillings


def write_fact(query: str, answer: str | None, reference: int | None = None) -> str:
    """Write a fact as a sentence, with the mark of its passage if it has one."""
    if not answer:
        return f"The question “{query}” stays open."
    told = _statement(query).replace(_A, answer.rstrip("."))
    return f"{told[0].upper()}{told[1:]}{f' [{reference}]' if reference else ''}."


def find_stated(query: str, texts: Iterable[str]) -> str | None:
    """Return the answer to the query that the last of the texts states, if it is stated as `write_fact` does it."""
    before, after = map(re.escape, _statement(query.strip()).split(_A))
    pattern = re.compile(rf"{before}(.+?){after}{_MARKS}\.", re.DOTALL | re.IGNORECASE)
    found = (pattern.fullmatch(told) for text in reversed(list(texts)) for told in reversed(sentences(text)))
    return next((one[1] for one in found if one), None)


def mentions(query: str, texts: Iterable[str]) -> bool:
    """Tell whether one of the texts is about the query, answered or not."""
    told = list(texts)
    return find_stated(query, told) is not None or any(normalise(query) in normalise(text) for text in told)


def _statement(query: str) -> str:
    """Return the sentence that answers a query, without its full stop; the answer stands where it has a sign."""
    bare = query.strip().rstrip("?").strip()
    found = ((asked.fullmatch(f"{bare[:1].lower()}{bare[1:]}"), told) for asked, told in _TOLD)
    return next((one.expand(told) for one, told in found if one), f"the answer to “{query}” is {_A}")
