"""IRCoT."""

from __future__ import annotations

import re

import dspy
from pydantic import Field

from ...metrics import without_marks
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.knowledge import AnswerOrGuess
from ..modules.answers import cited_answer
from ..modules.searches import NextThought
from ..program import Program, ProgramSettings, answered
from ..references import numbered
from ..tree import ReasoningTree

_CONCLUDES = re.compile(r"(?:thus|so)[ ,]|that is,|therefore|hence|.*\d [+-] \d[\d,.]* = \d", re.IGNORECASE)
_QUESTION_WORDS = frozenset(["who", "what", "when", "where", "why", "which", "how", "does", "is"])


class IRCoTSettings(ProgramSettings):
    """How it interleaves; the defaults are the paper's, except for k, which the paper tunes between 2 and 8.

    Attributes:
        k: passages that the question, and each thought, retrieves.
        max_thoughts: sentences of reasoning at most.
        max_passages: how many are collected at most; those found first are kept.
    """

    k: int = Field(default=5, ge=1)
    max_thoughts: int = Field(default=8, ge=1)
    max_passages: int = Field(default=15, ge=1)


class IRCoT(Program):
    """IRCoT (Trivedi et al., ACL 2023, arXiv 2212.10509): retrieval and chain of thought take turns.

    The question retrieves first. Then each sentence of reasoning is written from what was collected, and retrieves
    more, until one concludes with the answer, or no new one is written. A reader, which does not see the reasoning,
    answers from all that was collected. As in the authors' code, one paragraph a title is collected; a sentence that
    only concludes (``Thus …``, ``Therefore …``) or calculates is not searched for; and a query has no question words.
    """

    name = "ircot"
    Settings = IRCoTSettings
    settings: IRCoTSettings

    def __init__(self, retriever: Retriever | None = None, settings: IRCoTSettings | None = None):
        super().__init__(retriever, settings)
        self.next_thought = NextThought()
        self.knowledge_answer = dspy.Predict(AnswerOrGuess)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Alternate thought and retrieval, then read."""
        inputs, thoughts = {"question": tree.question, "answer_style": answer_style}, list[str]()
        query = without_question_words(tree.question)
        found = self.retrieve(query, self.settings.k)
        collected = one_a_title(found)[: self.settings.max_passages]
        last = tree.add_search(None, query, found, kept=collected)
        while len(thoughts) < self.settings.max_thoughts:
            shown = numbered(collected)
            thought, concludes = self.next_thought(**inputs, passages=shown, thoughts=thoughts)
            if not thought or thought in thoughts:
                break
            thoughts.append(thought)
            if concludes:
                break
            if not states_fact(thought):
                continue
            query = without_question_words(without_marks(thought))
            found = self.retrieve(query, self.settings.k)
            collected = one_a_title([*collected, *found])[: self.settings.max_passages]
            last = tree.add_search(last, query, found, kept=collected)
        cited = cited_answer(self.knowledge_answer, collected, **inputs)
        return answered(tree, *cited, passages=collected, thoughts=thoughts)


def one_a_title(passages: list[Passage]) -> list[Passage]:
    """Return the first passage of each title, and every passage without a title, each once."""
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.title or passage.id, passage)
    return list(first.values())


def states_fact(sentence: str) -> bool:
    """Return whether a sentence of the reasoning states a fact; otherwise it concludes or calculates."""
    return not _CONCLUDES.match(sentence)


def without_question_words(query: str) -> str:
    """Return the query without words such as ``which``; as it is, if it has no others."""
    words = [word for word in query.split() if word.lower() not in _QUESTION_WORDS]
    return " ".join(words) or query
