"""Recorded plans beside the annotated steps of their questions, and what that says of the recorded model."""

from __future__ import annotations

from collections.abc import Sequence

from ..common.placeholders import numbers_in
from ..data import AnnotatedStep, Question
from ..metrics import contains
from .recordings import Recording
from .traits import Traits

FLAGS_BELOW = -0.15
"""Mean token log-probability under which a memory counts as flagged. Of the 374 recorded sub-questions that align
with annotated steps, 35 % are right from memory; this flags 42 %, of which 15 % were right; of the rest, 50 % are."""


def measured_traits(questions: Sequence[Question], recordings: dict[str, Recording], flags_below: float) -> Traits:
    """The recorded model's own rates, over the sub-questions that align with annotated steps.

    ``knows``: sure and right. ``invents``: sure and wrong, of those not known. ``completes``: right, sure or not.
    ``reads``: right with passages, as they were given to it. Plans and queries are always its own, replies always well
    formed; what it overlooks is what it did not read. It was never shown a passage to judge: how often it takes a
    useless one for useful, or too little for enough, is the simulated model's rate.
    """
    sure = right = recalled = read = count = 0
    for question in questions:
        recording = recordings[question.id]
        if not aligned(question, recording.outline()):
            continue
        for step, node in zip(question.steps, recording.nodes, strict=False):
            if not step.answer:
                continue
            confident = node.closed_book.known and node.closed_book.logprob >= flags_below
            count += 1
            sure += confident
            right += confident and contains(node.closed_book.answer, step.answer)
            recalled += contains(node.closed_book.answer, step.answer)
            read += contains(node.open_book.answer, step.answer)
    fallback = Traits(
        plans=1, plans_shown=1, asks=1, asks_shown=1, overlooks=0, overlooks_shown=0, misreads=0, malformed=0
    )
    if not count:
        return fallback
    invents = (sure - right) / max(count - right, 1)
    measured = {"knows": right / count, "invents": invents, "completes": recalled / count, "reads": read / count}
    return fallback.model_copy(update=measured)


def aligned(question: Question, outline: list[str]) -> bool:
    """Whether plan and annotation go the same way: as many queries, each leaning on the same earlier ones."""
    annotated = [sorted(numbers_in(step.question)) for step in question.steps]
    return annotated == [sorted(numbers_in(query)) for query in outline]


def with_all_titles(question: Question) -> Question:
    """The question with the passages of its steps among its gold passages, where a data set keeps them apart."""
    of_steps = [step.support_title for step in question.steps if step.support_title]
    return question.model_copy(update={"gold_titles": tuple(dict.fromkeys([*question.gold_titles, *of_steps]))})


def as_planned(question: Question, recording: Recording) -> Question:
    """The question with the recorded plan for its steps, annotated where the two align.

    Where they do not, the last query is taken to ask for the answer, and the others have none.
    """
    outline = recording.outline()
    if aligned(question, outline):
        steps = [
            step.model_copy(update={"question": words}) for step, words in zip(question.steps, outline, strict=True)
        ]
    else:
        steps = [AnnotatedStep(question=words) for words in outline]
        steps[-1] = AnnotatedStep(question=outline[-1], answer=question.answers[0])
    return question.model_copy(update={"steps": tuple(steps)})
