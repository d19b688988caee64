"""Self-Ask, from memory and with retrieval."""

from __future__ import annotations

import dspy
from pydantic import Field

from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ..modules.subquestions import FollowUp, Solution
from ..program import ProgramSettings
from ..tree import Node, ReasoningTree
from .subquestions import Solving, add_solution


class SelfAskSettings(ProgramSettings):
    """How long it asks.

    Attributes:
        max_follow_ups: follow-up questions at most.
    """

    max_follow_ups: int = Field(default=5, ge=1)


class SelfAsk(Solving):
    """Self-Ask without retrieval (Press et al., EMNLP Findings 2023, arXiv 2210.03350): follow-ups from memory.

    The paper writes follow-up questions and intermediate answers in one reply. Here each is a call of its own, as in
    the variant with retrieval, so that the two differ only in retrieval. A follow-up that was asked before is not asked
    again: the question is then answered.
    """

    name = "self-ask"
    searches = False
    Settings = SelfAskSettings
    settings: SelfAskSettings

    def __init__(self, retriever: Retriever | None = None, settings: SelfAskSettings | None = None):
        super().__init__(retriever, settings)
        self.follow_up = FollowUp()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Ask and answer until no follow-up is needed, and conclude."""
        path, solutions = list[Node](), list[Solution]()
        while len(path) < self.settings.max_follow_ups:
            query = self.follow_up(question=tree.question, answer_style=answer_style, solved=path)
            if query is None or query.casefold() in {node.query.casefold() for node in path}:
                break
            solutions.append(self.solve(tree.question, path, query))
            path.append(add_solution(tree, path, solutions[-1]))
        return self.conclude(tree, answer_style, path, solutions)


class SelfAskRetrievalSettings(SelfAskSettings):
    """How it asks and searches.

    Attributes:
        k: passages that an intermediate answer is read from.
    """

    k: int = Field(default=3, ge=1)


class SelfAskRetrieval(SelfAsk):
    """Self-Ask with a search engine (the paper's section 3.2): intermediate answers come from retrieved passages.

    The paper's engine gives a ready answer; here the LM reads it from the passages.
    """

    name = "self-ask-retrieval"
    searches = True
    Settings = SelfAskRetrievalSettings
    settings: SelfAskRetrievalSettings
