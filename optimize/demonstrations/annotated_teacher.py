"""A teacher that demonstrates annotated questions, for optimizers that bootstrap: no LM is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

import dspy

from ...common.text import neutralise
from ...programs import Program
from ...programs.demonstrations import TraceStep, note
from ...programs.program import answered
from ...programs.references import distinct, numbers_of
from ...programs.tree import ReasoningTree
from ...signatures import AnswerStyle
from .annotated_steps import demonstrate, facts_told
from .lessons import AnnotatedLesson, read_lesson

NAME = "annotations"
_LOOKED_AT = 60  # examples


class AnnotatedTeacher(Program):
    """A program with the student's predictors, which answers training questions as their annotations do.

    The trace of a question holds what `demonstrate` makes of it for each predictor. A question that cannot be shown
    gets neither answer nor steps, so the optimizer skips it.
    """

    name = NAME

    def __init__(self, student: Program, examples: Sequence[dspy.Example]):
        super().__init__(student.retriever, student.settings)
        self.student: Program = student.reset_copy()
        self._examples = {neutralise(str(one.question)).strip(): one for one in examples}  # as `forward` asks them
        self._compiled = True  # or DSPy would give it rows of the task as demonstrations

    def named_predictors(self) -> list[tuple[str, dspy.Predict]]:
        """Return the student's predictors by their names in the student."""
        named: list[tuple[str, dspy.Predict]] = self.student.named_predictors()
        return named

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Return the annotated answer, and write the steps into DSPy's trace."""
        example = self._examples.get(tree.question)
        lesson = read_lesson(example, self.retriever) if example else None
        if lesson is None or (self.shows_whole and not lesson.whole):
            return answered(tree, "", "", [])
        if dspy.settings.trace is not None:
            dspy.settings.trace.extend(self.steps(lesson))
        passages = distinct([[fact.passage for fact in lesson.facts]])
        number = numbers_of(passages)
        told = facts_told(lesson.facts, [number[fact.passage.id] for fact in lesson.facts])
        return answered(tree, lesson.answer, told, passages, passages=passages)

    @cached_property
    def shows_whole(self) -> bool:
        """Return whether some of the first examples show every prompt; those that show fewer are then passed over."""
        read = (read_lesson(example, self.retriever) for example in islice(self._examples.values(), _LOOKED_AT))
        return any(lesson.whole for lesson in read if lesson)

    def steps(self, lesson: AnnotatedLesson) -> Iterator[TraceStep]:
        """Yield what a lesson shows of each predictor."""
        for predictor in self.predictors():
            for kind, fields in demonstrate(predictor.signature, lesson):
                reply = dspy.Prediction(**{name: fields[name] for name in predictor.signature.output_fields})
                note(reply, kind)
                yield predictor, {name: fields[name] for name in predictor.signature.input_fields}, reply
