"""ReAct, and ReAct with self-consistency behind it."""

from __future__ import annotations

import dspy
from pydantic import Field

from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ..citations import settle_marks
from ..demonstrations import TraceStep
from ..evidence import distinct
from ..modules import Acting, StepByStepAnswer
from ..modules.numbering import numbered_among
from ..modules.sampling import Sample, majority, sample
from ..program import answered
from ..tree import Node, ReasoningTree
from .baseline import Baseline, BaselineSettings, add_search


class ReActSettings(BaselineSettings):
    """How long it acts.

    Attributes:
        max_turns: thoughts with an action at most; the paper's for HotpotQA.
        k: passages that a search observes.
    """

    max_turns: int = Field(default=7, ge=1)
    k: int = Field(default=3, ge=1)


class ReAct(Baseline):
    """ReAct (Yao et al., ICLR 2023, arXiv 2210.03629): a thought, a search, an observation, until it finishes.

    DSPy's own. The paper's actions look up pages of Wikipedia and words in them; here there is one, a search of the
    index. Where the turns are spent, the answer is read from the trajectory all the same.

    Args:
        retriever: finds the passages.
        settings: see `ReActSettings`.
    """

    name = "react"
    Settings = ReActSettings
    settings: ReActSettings
    must_finish = False

    def __init__(self, retriever: Retriever | None = None, settings: ReActSettings | None = None):
        super().__init__(retriever, settings)
        self.acting = Acting(self.settings.max_turns, self.must_finish)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """One episode."""
        reply, searches = self.act(tree, answer_style)
        return told(tree, reply, searches)

    def act(self, tree: ReasoningTree, answer_style: AnswerStyle) -> tuple[dspy.Prediction, Searches]:
        """The episode's end, and the searches on its way."""
        searches = Searches(self, tree)
        return self.acting(question=tree.question, answer_style=answer_style, find=searches.observe), searches

    def kind_of(self, step: TraceStep) -> str:
        """Of a turn, the action."""
        _, _, reply = step
        return str(reply.get("next_tool_name") or "")


class Searches:
    """The searches of one episode: they grow a tree, and number their passages through.

    Attributes:
        passages: all that were found, each once.
    """

    def __init__(self, program: ReAct, tree: ReasoningTree):
        self.program, self.tree = program, tree
        self.passages: list[Passage] = []
        self.last: Node | None = None

    def observe(self, query: str) -> str:
        """What the query finds, as the LM observes it."""
        found = self.program.retrieve(query, self.program.settings.k)
        round = self.last.round + 1 if self.last else 1
        self.last = add_search(self.tree, self.last, query, found, source="query", round=round)
        self.passages = distinct([self.passages, found])
        return "\n".join(numbered_among(self.passages, found)) or "Nothing was found."


class ReActSelfConsistencySettings(ReActSettings):
    """How long it acts, and what it falls back on.

    Attributes:
        samples: chains of thought, where it did not finish.
        temperature: at which several are sampled.
    """

    samples: int = Field(default=5, ge=1)
    temperature: float = Field(default=0.7, gt=0)


class ReActSelfConsistency(ReAct):
    """ReAct → CoT-SC (the paper's section 3.2, A): where ReAct does not finish, self-consistency answers from memory.

    Args:
        retriever: finds the passages.
        settings: see `ReActSelfConsistencySettings`.
    """

    name = "react-self-consistency"
    Settings = ReActSelfConsistencySettings
    settings: ReActSelfConsistencySettings
    must_finish = True

    def __init__(self, retriever: Retriever | None = None, settings: ReActSelfConsistencySettings | None = None):
        super().__init__(retriever, settings)
        self.step_by_step_answer = StepByStepAnswer()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """One episode; where it has no answer, the majority of sampled chains of thought."""
        reply, searches = self.act(tree, answer_style)
        if reply.answer is not None:
            return told(tree, reply, searches)
        samples: list[Sample] = sample(
            lambda: self.step_by_step_answer(question=tree.question, answer_style=answer_style),
            self.settings.samples,
            self.settings.temperature,
        )
        answer, content, references = majority(samples, lambda drawn: drawn[0])
        tree.grow(None, query=tree.question, answer=answer, source="lm", ended="accepted")
        given = [one for one, _, _ in samples]
        return answered(tree, answer, content, references, passages=searches.passages, samples=given)


def told(tree: ReasoningTree, reply: dspy.Prediction, searches: Searches) -> dspy.Prediction:
    """The prediction of an episode with an answer."""
    content, references = settle_marks(reply.reasoning, searches.passages)
    return answered(tree, reply.answer, content, references, passages=searches.passages)
