"""ReAct, and ReAct that falls back on self-consistency."""

from __future__ import annotations

import dspy
from pydantic import Field

from ...common.text import unquoted
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ..majority import Sample, answer_of, majority, sample
from ..modules.answers import StepByStepAnswer
from ..modules.searches import Acting
from ..program import Program, ProgramSettings, answered, answered_from
from ..references import distinct, numbered_among
from ..tree import Node, ReasoningTree


class ReActSettings(ProgramSettings):
    """How long it acts.

    Attributes:
        max_turns: thoughts with an action at most; the default is the paper's for HotpotQA.
        k: passages that a search observes.
        first_search: passages of a search with the question, which is the first turn without a call; 0 for none.
    """

    max_turns: int = Field(default=7, ge=1)
    k: int = Field(default=3, ge=1)
    first_search: int = Field(default=0, ge=0)


class ReAct(Program):
    """ReAct (Yao et al., ICLR 2023, arXiv 2210.03629): a thought, a search, an observation, until it finishes.

    The implementation is DSPy's. The paper's actions look up pages of Wikipedia and words in them; here the only one
    is a search of the index. When all turns are used, the answer is read from the trajectory.
    """

    name = "react"
    Settings = ReActSettings
    settings: ReActSettings
    must_finish = False

    def __init__(self, retriever: Retriever | None = None, settings: ReActSettings | None = None):
        super().__init__(retriever, settings)
        self.acting = Acting(self.settings.max_turns, self.must_finish, bool(self.settings.first_search))

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer by one episode."""
        reply, passages = self.act(tree, answer_style)
        return answered_from(tree, reply.answer, reply.reasoning, passages)

    def act(self, tree: ReasoningTree, answer_style: AnswerStyle) -> tuple[dspy.Prediction, list[Passage]]:
        """Run an episode; return its last reply, and all passages that it found, numbered in one sequence."""
        settings, passages = self.settings, list[Passage]()
        last: Node | None = None

        def observe(query: str) -> str:
            nonlocal passages, last
            query = unquoted(query)
            found = self.retrieve(query, settings.k if last else settings.first_search or settings.k)
            last = tree.add_search(last, query, found, round=last.round + 1 if last else 1)
            passages = distinct([passages, found])
            return "\n".join(numbered_among(passages, found)) or "Nothing was found."

        reply = self.acting(question=tree.question, answer_style=answer_style, find=observe)
        return reply, passages


class ReActSelfConsistencySettings(ReActSettings):
    """How long it acts, and what it falls back on.

    Attributes:
        samples: chains of thought, if it did not finish.
        temperature: at which several are sampled.
    """

    samples: int = Field(default=5, ge=1)
    temperature: float = Field(default=0.7, gt=0)


class ReActSelfConsistency(ReAct):
    """ReAct → CoT-SC (the paper's section 3.2, A): if ReAct does not finish, self-consistency answers from memory."""

    name = "react-self-consistency"
    Settings = ReActSelfConsistencySettings
    settings: ReActSelfConsistencySettings
    must_finish = True

    def __init__(self, retriever: Retriever | None = None, settings: ReActSelfConsistencySettings | None = None):
        super().__init__(retriever, settings)
        self.step_by_step_answer = StepByStepAnswer()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer by one episode; if it gives no answer, by the majority of sampled chains of thought, from memory."""
        reply, passages = self.act(tree, answer_style)
        if reply.answer is not None:
            return answered_from(tree, reply.answer, reply.reasoning, passages)
        samples: list[Sample] = sample(
            lambda: self.step_by_step_answer(question=tree.question, answer_style=answer_style),
            self.settings.samples,
            self.settings.temperature,
        )
        answer, content, references = majority(samples, answer_of, answer_style)
        for node in [one for one in tree.nodes if one.ended == "kept"]:
            tree.update(node, ended="filtered out")  # the answer does not rest on what was found
        tree.grow(None, query=tree.question, answer=answer, source="lm", ended="accepted")
        answers = list(map(answer_of, samples))
        return answered(tree, answer, content, references, passages=[], samples=answers)
