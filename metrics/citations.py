"""How well an answer is cited: SearChain's two measures of tracing (section 4.3.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .answer_scores import contains

_MARK = re.compile(r"\[(\d+)\]")
_MARKS = re.compile(r"\[\d+\](?:[\s,;]*\[\d+\])*")
# a sentence ends at a stop that no initial ("J. R. R.") and no common title stands before
_SENTENCE_END = re.compile(r"(?<![A-Z]\.)(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)(?<!St\.)(?<!Jr\.)(?<=[.!?])[\"”)]*\s+")


def marked_fragments(content: str) -> list[tuple[str, list[int]]]:
    """Return the fragments that end at a reference mark, in order, each with the numbers of its marks.

    A fragment begins after the mark or the sentence before it, whichever is nearer; marks in a row (``[1][2]``) end
    the same fragment. A mark after the full stop belongs to the sentence that it closes.
    """
    fragments, start = [], 0
    for marks in _MARKS.finditer(content):
        before = content[start : marks.start()].strip()
        sentence = _SENTENCE_END.split(before)[-1].lstrip(".,;:!? ")
        fragments.append((sentence, [int(number) for number in _MARK.findall(marks.group())]))
        start = marks.end()
    return fragments


def supported_knowledge_count(content: str, references: int) -> int:
    """Return SKC: how many knowledge items (fragments with words) carry a mark that points to a reference.

    Args:
        content: the final content with its marks ``[1]`` … .
        references: how many references there are.
    """
    return sum(
        bool(fragment) and any(1 <= number <= references for number in numbers)
        for fragment, numbers in marked_fragments(content)
    )


def marking_accuracy(content: str, references: Sequence[str], answers: Sequence[Sequence[str]]) -> float | None:
    """Return AMP, judged automatically: the share of marks that stand in the right place.

    The paper has people judge whether a mark stands at the fragment that its reference supports. Here a mark
    ``[n]`` is right if some step found reference n, and the answer of that step stands, in whole normalised
    words, both in the fragment that ends at the mark and in the reference. Answers that a passage cannot
    hold word for word (a yes, a paraphrase) count as wrong: the number is a lower bound.

    Args:
        content: the final content with its marks.
        references: the cited passages' texts with their titles; ``[n]`` is ``references[n - 1]``.
        answers: for each reference, the answers of the steps whose evidence it is.

    Returns:
        Between 0 and 1; None when the content has no marks.

    Raises:
        ValueError: if there are not as many lists of answers as references.
    """
    if len(references) != len(answers):
        raise ValueError(f"{len(references)} references but {len(answers)} lists of answers: give one for each")
    right = [
        1 <= number <= len(references) and _supports(references[number - 1], fragment, answers[number - 1])
        for fragment, numbers in marked_fragments(content)
        for number in numbers
    ]
    return sum(right) / len(right) if right else None


def _supports(reference: str, fragment: str, answers: Sequence[str]) -> bool:
    return any(contains(fragment, answer) and contains(reference, answer) for answer in answers)


def citation_scores(prediction: Any) -> dict[str, float | None]:
    """Return SKC and AMP of a prediction; AMP is None without marks, and both are None if it failed.

    The answers that a reference is cited for are those of the tree's nodes whose passage it is.
    """
    if getattr(prediction, "failure", None) is not None:
        return {"skc": None, "amp": None}
    references, content = prediction.references, prediction.final_content
    answers = [
        [node.answer for node in prediction.tree.nodes if node.answer and node.passage and node.passage.id == cited.id]
        for cited in references
    ]
    return {
        "skc": supported_knowledge_count(content, len(references)),
        "amp": marking_accuracy(content, [f"{cited.title} {cited.text}" for cited in references], answers),
    }
