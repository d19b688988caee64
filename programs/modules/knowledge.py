"""BlendFilter's steps: query blending, knowledge filtering and answering (section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import dspy

from ...lm.call import call
from ...lm.window import passages_shown, shown_of
from ...metrics import without_marks
from ...retrieval import Passage
from ...signatures import (
    AnswerStyle,
    AnswerWithKnowledge,
    FilterKnowledge,
    FilterKnowledgeOnTopic,
    NameTopic,
    RecallPassage,
)
from ..demonstrations import Judgement, note
from ..references import numbered, settle_marks


class QueryBlending(dspy.Module):
    """Queries that find more than the question alone (section 3.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerWithKnowledge)
        self.recall = dspy.Predict(RecallPassage)

    def external(self, question: str, answer_style: AnswerStyle, passages: list[Passage]) -> str:
        """Return the reasoning and answer that the passages lead to, followed by the question."""
        reply = call(self.answer, question=question, answer_style=answer_style, passages=numbered(passages))
        return augment(question, reply.final_content, reply.answer)

    def internal(self, question: str) -> str:
        """Return what the LM remembers, followed by the question."""
        return f"{call(self.recall, question=question).passage} {question}".strip()


class TopicNaming(dspy.Module):
    """The topic that the LM is to forget before it filters (section 3.3)."""

    def __init__(self) -> None:
        super().__init__()
        self.name_topic = dspy.Predict(NameTopic)

    def forward(self, question: str) -> str:
        """Return the question's general topic."""
        return str(call(self.name_topic, question=question).topic)


@dataclass(frozen=True)
class Filtered:
    """What passed the filter.

    Attributes:
        kept: passages, in the order in which they were given.
        misnumbered: how many numbers of the reply were out of range or repeated; they are ignored.
    """

    kept: list[Passage]
    misnumbered: int = 0


class KnowledgeFilter(dspy.Module):
    """A filter that keeps the passages which help to answer a question, as the LM judges them (section 3.3).

    Args:
        topic: whether there is a predictor for questions with a topic; the prompt tells the LM that it knows nothing
            about that topic.
    """

    def __init__(self, topic: bool = True) -> None:
        super().__init__()
        self.filter = dspy.Predict(FilterKnowledge)
        if topic:
            self.filter_on_topic = dspy.Predict(FilterKnowledgeOnTopic)

    def forward(self, question: str, passages: list[Passage], topic: str | None = None) -> Filtered:
        """Return the passages that are kept. The prompt numbers them from 0 to k-1, as the paper's does."""
        if not passages:
            return Filtered([])
        numbers = numbered(passages, start=0)
        if topic is None:
            reply = call(self.filter, question=question, passages=numbers)
        else:
            reply = call(self.filter_on_topic, question=question, topic=topic, passages=numbers)
        shown = passages_shown(reply)
        kept = {number for number in reply.kept if 0 <= number < len(shown)}
        kind = "all" if len(kept) == len(shown) else "some" if kept else "none"
        note(reply, kind, [Judgement([passage], number in kept) for number, passage in enumerate(shown)])
        return Filtered([passages[number] for number in sorted(kept)], misnumbered=len(reply.kept) - len(kept))


class KnowledgeAnswer(dspy.Module):
    """A step-by-step answer from the passages that are left (section 3.4)."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerWithKnowledge)

    def forward(
        self, question: str, answer_style: AnswerStyle, passages: list[Passage], temperature: float | None = None
    ) -> tuple[str, str, list[Passage]]:
        """Return the answer, the final content, and its references: mark ``[n]`` is ``references[n-1]``.

        Args:
            question: in the user's words.
            answer_style: the form of the answer.
            passages: to answer from.
            temperature: to sample at; None for the LM's own.
        """
        config = None if temperature is None else {"temperature": temperature}
        reply = call(self.answer, config, question=question, answer_style=answer_style, passages=numbered(passages))
        final_content, references = settle_marks(reply.final_content, shown_of(passages, reply))
        return reply.answer, final_content, references


def augment(question: str, final_content: str, answer: str) -> str:
    """Return the question after the reasoning and answer that were given to it, as a query."""
    return f"{without_marks(final_content)} {answer} {question}".strip()
