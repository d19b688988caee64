"""How well a traced answer is cited: SearChain's two measures of tracing (section 4.3.4)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..common.sentences import sentences, without_item_mark
from .answer_scores import contains, normalise, stands_in

_MARK = re.compile(r"\[(\d{1,9})\]")  # an LM may write digits without end, more than Python makes a number of
_MARKS = re.compile(r"\[\d{1,9}\](?:(?:[\s,;.!?]|\band\b)*\[\d{1,9}\])*")
_STOP = re.compile(r"[.!?](?=[^.!?]*$)")
_NAME = r"[a-z]*[A-Z][\w'’&.-]*"
_NAME_OR_NUMBER = re.compile(
    rf"(?<!\w)(?:{_NAME}(?:\s+(?:(?:of|the|de|and|von|van)\s+){{0,2}}{_NAME})*|\d(?:[\w,.:]*\w)?)"
)
_SOURCE = re.compile(
    r"(?:(?:according to|as|in|from|by)\b\s*)?(?:the )?(?:passages?|paragraphs?|sources?|documents?|texts?|notes?)?",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\s+[a-z]")
_CONCLUDES = re.compile(
    r"(?:so|thus|hence|therefore|that is|a guess)\b|(?:the|its|my) (?:final )?answer(?: is\b|:)", re.IGNORECASE
)
_OPENING = re.compile(
    r"^(?:(?:a|an|the|this|that|these|those|it|its|he|she|his|her|they|their|there|we|i|in|on|at|of|for|from|by|to|with|as|"
    r"and|or|but|so|thus|hence|then|therefore|since|because|while|when|where|who|which|what|how|according|both|one|"
    r"answer|after|before|however|no|yes|not|is|was|are|were)(?:['’]\w+)?\b\s*)+",
    re.IGNORECASE,
)


class Mark(NamedTuple):
    """A reference mark in a text.

    Attributes:
        number: of the reference, from 1.
        start, end: where ``[number]`` stands in the text.
        fragment: the words that it ends.
    """

    number: int
    start: int
    end: int
    fragment: str


def reference_marks(content: str) -> list[Mark]:
    """Return every reference mark of a text, in order."""
    return [
        Mark(int(found[1]), found.start(), found.end(), fragment)
        for run, fragment in _marked(content)
        for found in _MARK.finditer(content, run.start(), run.end())
    ]


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


def supports_fragment(fragment: str, passage: str, question: str = "") -> bool:
    """Return whether a passage holds what a fragment says, by a rule that needs no LM.

    It does if at least half of the names and numbers of the fragment stand in it, of those that are not in the
    question already; where there are none such, of all its names and numbers. Words without any are not judged, and
    count as supported; a mark without words before it supports nothing. ALCE (Gao et al., EMNLP 2023, section 4.2)
    has a model of entailment judge instead.

    Args:
        fragment: the words that end at a mark.
        passage: title and text.
        question: what the content answers.
    """
    terms = claim_terms(fragment)
    new = [term for term in terms if not stands_in(question, term)] or terms
    return bool(fragment) and 2 * sum(stands_in(passage, term) for term in new) >= len(new)


def supporting_sentence(fragment: str, passage: str) -> str | None:
    """Return the sentence of a passage that holds most of what a fragment says; None if none holds anything of it.

    Args:
        fragment: the words that end at a mark.
        passage: its text, without the title.
    """
    found = sentences(passage)
    best = best_sentence(fragment, found)
    return None if best is None else found[best]


def best_sentence(fragment: str, told: Sequence[str]) -> int | None:
    """Return the place, from 0, of the sentence that holds most of what a fragment says; None if none holds any.

    Names and numbers count first, then the other words; of equals the first sentence is taken.
    """
    terms, words = claim_terms(fragment), set(normalise(fragment).split())
    held = [(sum(stands_in(one, term) for term in terms), len(words & set(normalise(one).split()))) for one in told]
    best = max(range(len(held)), key=held.__getitem__, default=None)
    return best if best is not None and any(held[best]) else None


def telling_sentence(query: str, answer: str, title: str, text: str) -> str | None:
    """Return the sentence of a passage that tells the answer to a query; None if none holds the answer.

    It is the one with most names, and then words, of the query among those that hold the answer, or a name's last word.
    If the title holds it, the others are looked at after those: a passage calls its subject "she" or "the river".
    """
    told, parts = sentences(text), answer.split()
    holding = [one for one in told if stands_in(one, answer)]
    is_name = holding and len(parts) > 1 and all(part[0].isupper() for part in parts)
    anywhere = stands_in(title, answer)
    holding += [one for one in told if one not in holding and (anywhere or (is_name and stands_in(one, parts[-1])))]
    return holding[best_sentence(query, holding) or 0] if holding else None


def claim_terms(fragment: str) -> list[str]:
    """Return the names and numbers of a fragment, each once: numbers, and runs of words with a capital letter.

    A number has what is written on to it (``45th``, ``1990s``). A word that only has a capital because it begins a
    sentence (``The``, ``He``, ``In`` …) is no name, nor is one of a script without capitals.
    """
    text = unicodedata.normalize("NFC", fragment)
    plain = text if text.isascii() else "".join(map(_letter_as_ascii, text))  # as long as the text
    runs = [text[found.start() : found.end()] for found in _NAME_OR_NUMBER.finditer(plain)]
    return list(dict.fromkeys(term for run in runs if normalise(term := _OPENING.sub("", run).strip())))


def _letter_as_ascii(letter: str) -> str:
    """Return A for each further capital letter, and a for each further letter."""
    return letter if letter.isascii() or not letter.isalpha() else "A" if letter.isupper() else "a"


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
    ``[n]`` is right when the answer of a step that reference n was found for stands, in whole normalised
    words, both in the fragment that ends at the mark and in the reference. Answers that a passage cannot
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
        and any(contains(fragment, one) and contains(references[number - 1], one) for one in answers[number - 1])
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
