"""Query blending, knowledge filtering and answering (BlendFilter, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import dspy

from ...lm.call import call
from ...lm.window import shown_of
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
from ..citations import settle_marks
from .numbering import numbered


class QueryBlending(dspy.Module):
    """Augments a question to a query that finds more (section 3.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerWithKnowledge)
        self.recall = dspy.Predict(RecallPassage)

    def external(self, question: str, answer_style: AnswerStyle, passages: list[Passage]) -> str:
        """The reasoning and answer that the passages lead to, and the question."""
        reply = call(self.answer, question=question, answer_style=answer_style, passages=numbered(passages))
        return behind_answer(reply.final_content, reply.answer, question)

    def internal(self, question: str) -> str:
        """What the LM remembers, and the question."""
        return f"{call(self.recall, question=question).passage} {question}".strip()


class TopicNaming(dspy.Module):
    """Names what the LM is to set aside before it filters (section 3.3)."""

    def __init__(self) -> None:
        super().__init__()
        self.name_topic = dspy.Predict(NameTopic)

    def forward(self, question: str) -> str:
        """The question's general topic."""
        return str(call(self.name_topic, question=question).topic)


@dataclass(frozen=True)
class Filtered:
    """What passed the filter.

    Attributes:
        kept: passages, in the order in which they were given.
        misnumbered: how many numbers of the reply were out of range or repeated; they are passed over.
    """

    kept: list[Passage]
    misnumbered: int = 0


class KnowledgeFilter(dspy.Module):
    """Keeps the passages that help to answer a question, as the LM judges them (section 3.3).

    Args:
        topic: whether a topic is named, which the LM is told to know nothing of.
    """

    def __init__(self, topic: bool = True) -> None:
        super().__init__()
        self.filter = dspy.Predict(FilterKnowledge)
        if topic:
            self.filter_on_topic = dspy.Predict(FilterKnowledgeOnTopic)

    def forward(self, question: str, passages: list[Passage], topic: str | None = None) -> Filtered:
        """The passages that are kept; those numbered 0 to k-1 in the prompt, as in the paper's."""
        if not passages:
            return Filtered([])
        shown = numbered(passages, start=0)
        if topic is None:
            reply = call(self.filter, question=question, passages=shown)
        else:
            reply = call(self.filter_on_topic, question=question, topic=topic, passages=shown)
        kept = {number for number in reply.kept if 0 <= number < len(shown_of(passages, reply))}
        return Filtered([passages[number] for number in sorted(kept)], misnumbered=len(reply.kept) - len(kept))


class KnowledgeAnswer(dspy.Module):
    """Answers step by step from the passages that are left (section 3.4)."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerWithKnowledge)

    def forward(
        self, question: str, answer_style: AnswerStyle, passages: list[Passage], temperature: float | None = None
    ) -> tuple[str, str, list[Passage]]:
        """The answer, the final content, and its references: mark ``[n]`` is ``references[n-1]``.

        Args:
            question: in the user's words.
            answer_style: the form of the answer.
            passages: to answer from.
            temperature: to sample at; the LM's own where None.
        """
        config = None if temperature is None else {"temperature": temperature}
        reply = call(self.answer, config, question=question, answer_style=answer_style, passages=numbered(passages))
        final_content, references = settle_marks(reply.final_content, shown_of(passages, reply))
        return reply.answer, final_content, references


def behind_answer(final_content: str, answer: str, question: str) -> str:
    """The question behind the reasoning and answer that were given to it, as a query."""
    return f"{without_marks(final_content)} {answer} {question}".strip()
