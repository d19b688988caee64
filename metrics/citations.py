"""How well a traced answer is cited: SearChain's two measures of tracing (section 4.3.4)."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..common.sentences import sentences, without_item_mark
from .claims import SHORT, all_stand_in, claim_terms, items, stands_in, supporting_sentences, supports_fragment
from .values import by_value

_MARK = re.compile(r"\[(\d{1,9})\]")  # an LM may write digits without end, more than Python makes a number of
_MARKS = re.compile(r"\[\d{1,9}\](?:(?:[\s,;.!?]|\band\b)*\[\d{1,9}\])*")
_STOP = re.compile(r"[.!?](?=[^.!?]*$)")
_SOURCE = re.compile(
    r"(?:(?:according to|as|in|from|by)\b\s*)?(?:the )?(?:passages?|paragraphs?|sources?|documents?|texts?|notes?)?",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\s+[a-z]")
_CONCLUDES = re.compile(  # or tells that nothing tells it
    r"(?:so|thus|hence|therefore|that is|a guess|others fit as well|no(?:ne of the)? (?:passages?|texts?|sources?))\b"
    r"|(?:the|its|my) (?:final )?answer(?: is\b|:)",
    re.IGNORECASE,
)


class Mark(NamedTuple):
    """A reference mark in a text.

    Attributes:
        number: of the reference, from 1.
        start, end: where ``[number]`` stands in the text.
        fragment: the words that it ends.
        sentence: in which it stands, without marks.
        before: the sentence before that one, without marks.
    """

    number: int
    start: int
    end: int
    fragment: str
    sentence: str
    before: str

    def shown(self, passage: str, title: str) -> list[str]:
        """Return the sentences of its passage that hold what its fragment says of the title; none if none does.

        A fragment that ends with its name ("the text on Ann") is taken with its sentence; one that says nothing else
        ("Ann is one, too"), with the sentence before as well, if need be.
        """
        held, named = {*by_value(passage).split()}, {*by_value(title).split()}
        own, names = _beyond(self.fragment, named)
        texts = [self.fragment]
        if not own and not names:
            texts = [self.sentence, f"{self.before} {self.sentence}"]
        elif not names and not own & held and {*by_value(self.fragment).split()[-1:]} & named:
            texts = [self.sentence]
        for text in texts:
            own, names = _beyond(text, named)
            if own & held or any(stands_in(passage, name) for name in names):
                return supporting_sentences(text, passage, title)
        return []


def reference_marks(content: str) -> list[Mark]:
    """Return every reference mark of a text, in order."""
    ends, told, marks = list[int](), sentences(content), list[Mark]()
    for one in told:
        ends.append(content.index(one, ends[-1] if ends else 0) + len(one))
    for run, fragment in _marked(content):
        before = content[: run.start()].rstrip()  # where a mark behind the full stop belongs
        place = len(before) - 1 if before.endswith(fragment) else run.start()
        at = min(bisect(ends, place), len(told) - 1)
        around = [_MARK.sub("", one) for one in (told[at], told[at - 1] if at else "")]
        found = _MARK.finditer(content, run.start(), run.end())
        marks += [Mark(int(one[1]), *one.span(), fragment, *around) for one in found]
    return marks


def marked_fragments(content: str) -> list[tuple[str, list[int]]]:
    """Return the fragments that end at a reference mark, in order, each with the numbers of the marks that end it.

    A fragment reaches back to the mark or the end of the sentence before, whichever is nearer. Marks with no words
    between them (``[1][2]``, ``[1] and [2]``, ``[1]. [2]``) end the same fragment. A mark behind the full stop belongs
    to the sentence that it closes, but not if the content begins with a mark: then each stands before its sentence. So
    does one that is its subject (``Passage [1] says``, ``According to [1]``).
    """
    return [(fragment, _numbers(marks)) for marks, fragment in _marked(content)]


def keep_marks(content: str, keeps: Callable[[str, int], bool]) -> str:
    """Return the content with only those marks that ``keeps(fragment, number)`` says belong to their fragment.

    Marks that end the same fragment are written in a row, before the full stop that stood between them.
    """
    kept, start = [], 0
    for marks, fragment in _marked(content):
        left = "".join(f"[{number}]" for number in _numbers(marks) if keeps(fragment, number))
        stop = _STOP.search(marks[0])
        before = content[start : marks.start()]
        kept.append((before + left if left else before.rstrip()) + (stop[0] if stop else ""))
        start = marks.end()
    return "".join([*kept, content[start:]])


def citation_precision(content: str, references: Sequence[str], question: str) -> float | None:
    """Return the share of marks whose reference supports the fragment that they stand at; None without marks.

    After ALCE's citation precision (Gao et al., EMNLP 2023, arXiv 2305.14627, section 4.2), with `supports_fragment`
    in the place of a model of entailment, and each mark judged by itself.
    """
    return _share(_judged(content, references, question))


def citation_recall(content: str, references: Sequence[str], question: str) -> float | None:
    """Return the share of sentences with names or numbers that carry a mark which supports them; None without such.

    After ALCE's citation recall (section 4.2), by the rule of `citation_precision`; conclusions are not counted.
    """
    told = map(without_item_mark, sentences(marks_before_stops(content)))
    telling = [one for one in told if not _CONCLUDES.match(one) and claim_terms(_MARKS.sub("", one).strip())]
    return _share(any(_judged(one, references, question)) for one in telling)


def _judged(content: str, references: Sequence[str], question: str) -> Iterator[bool]:
    """Yield for each mark whether its reference supports the fragment that it stands at."""
    for fragment, numbers in marked_fragments(content):
        for number in numbers:
            cited = references[number - 1] if 1 <= number <= len(references) else None
            yield cited is not None and supports_fragment(fragment, cited, question)


def _beyond(text: str, named: set[str]) -> tuple[set[str], list[str]]:
    """Return the longer words, and the names, numbers and dates, of a text beyond the words of a title."""
    words = {word for word in by_value(text).split() if len(word) > SHORT} - named
    return words, [name for name in claim_terms(text) if not {*by_value(name).split()} <= named]


def _share(right: Iterable[bool]) -> float | None:
    every = list(right)
    return sum(every) / len(every) if every else None


def supported_knowledge_count(content: str, references: int) -> int:
    """Count the knowledge items (fragments with words in them) that carry a mark which points to a reference: SKC.

    Args:
        content: the final content with its marks ``[1]`` … .
        references: how many references there are.
    """
    return sum(
        bool(fragment) and any(1 <= number <= references for number in numbers)
        for fragment, numbers in marked_fragments(content)
    )


def marking_accuracy(content: str, references: Sequence[str], answers: Sequence[Sequence[str]]) -> float | None:
    """Return the share of marks that stand in the right place: AMP, judged automatically.

    The paper has people judge whether a mark stands at the fragment that its reference supports. Here a mark
    ``[n]`` is right when the answer of a step that reference n was found for, or an item of it, stands both in the
    fragment that ends at the mark and in the reference. Answers that a passage cannot
    hold word for word (a yes, a paraphrase) count against it: the number is a lower bound. Marks of a reference that
    no step with an answer found are left out: there is nothing to judge them by.

    Args:
        content: the final content with its marks.
        references: the cited passages' texts with their titles; ``[n]`` is ``references[n - 1]``.
        answers: for each reference, the answers of the steps whose evidence it is.

    Returns:
        Between 0 and 1; None when the content has no marks that can be judged.

    Raises:
        ValueError: if there are not as many lists of answers as references.
    """
    if len(references) != len(answers):
        raise ValueError(f"{len(references)} references but {len(answers)} lists of answers: give one for each")
    return _share(
        1 <= number <= len(references)
        and any(
            all_stand_in(fragment, one) and all_stand_in(references[number - 1], one)
            for answer in answers[number - 1]
            for one in (answer, *items(answer))
        )
        for fragment, numbers in marked_fragments(content)
        for number in numbers
        if not 1 <= number <= len(references) or answers[number - 1]
    )


@lru_cache(maxsize=128)  # each measure of an answer looks at its marks
def _marked(content: str) -> tuple[tuple[re.Match[str], str], ...]:
    """Return each run of marks with the fragment that it ends."""
    start, leads, runs, found = 0, _leads(content), list(_MARKS.finditer(content)), []
    for marks, end in zip(runs, [*(run.start() for run in runs[1:]), len(content)], strict=False):
        before = content[start : marks.start()].strip()
        fragment = without_item_mark("".join(sentences(before)[-1:])).lstrip(".,;:!? ")
        after = content[marks.end() : end]
        opens = _STOP.search(before[-1:]) and (leads or _GOES_ON.match(after))
        if opens or _SOURCE.fullmatch(fragment):
            fragment = "".join(sentences(after)[:1]).lstrip(".,;:!? ")
        found.append((marks, fragment))
        start = marks.end()
    return tuple(found)


def _leads(content: str) -> bool:
    """Return whether the content begins with a mark: then its marks stand before what they are for."""
    return bool(_MARKS.match(without_item_mark(content.lstrip())))


def _numbers(marks: re.Match[str]) -> list[int]:
    return [int(number) for number in _MARK.findall(marks.group())]


def marks_before_stops(content: str) -> str:
    """Return the content with each mark that follows a full stop moved before it, into its sentence."""
    return content if _leads(content) else re.sub(r"([.!?])\s*(\[\d+\](?:[\s,;]*\[\d+\])*)", r"\2\1", content)


def citation_scores(prediction: Any) -> dict[str, float | None]:
    """Return SKC, AMP, citation precision and recall of a prediction; each is None where it is not defined.

    The answers that a reference is cited for are those of the tree's nodes whose passage it is.
    """
    if getattr(prediction, "failure", None) is not None:
        return dict.fromkeys(("skc", "amp", "citation_precision", "citation_recall"))
    references, content = prediction.references, prediction.final_content
    answers = [
        [node.answer for node in prediction.tree.nodes if node.answer and node.passage and node.passage.id == cited.id]
        for cited in references
    ]
    texts, question = [f"{cited.title} {cited.text}" for cited in references], prediction.tree.question
    return {
        "skc": supported_knowledge_count(content, len(references)),
        "amp": marking_accuracy(content, texts, answers),
        "citation_precision": citation_precision(content, texts, question),
        "citation_recall": citation_recall(content, texts, question),
    }
