"""ReAct, and ReAct that falls back on self-consistency."""

from __future__ import annotations

import dspy
from pydantic import Field

from ...common.text import query_or_none
from ...lm.call import call
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerStepByStep
from ...signatures.searches import AnswerByActing
from ..demonstrations import note
from ..majority import majority_answer
from ..modules.searches import search_in_text
from ..program import Program, ProgramSettings, answered, answered_from
from ..references import distinct, numbered, numbers_of
from ..tree import ReasoningTree


class ReActSettings(ProgramSettings):
    """How long it acts.

    Attributes:
        max_turns: thoughts with an action at most; the default is the paper's for HotpotQA. If all of them search, it
            is asked once more, and has to answer.
        k: passages that a search observes.
        first_search: passages of a search with the question, which is the first turn without a call; 0 for none.
    """

    max_turns: int = Field(default=7, ge=1)
    k: int = Field(default=3, ge=1)
    first_search: int = Field(default=0, ge=0)


class ReAct(Program):
    """ReAct (Yao et al., ICLR 2023, arXiv 2210.03629): a thought, a search, an observation, until it finishes.

    The paper's actions look up pages of Wikipedia and words in them; here the only one is a search of the index. As in
    the paper, the reply that finishes holds the answer. Each passage is shown once, and the searches name its number.
    """

    name = "react"
    Settings = ReActSettings
    settings: ReActSettings

    def __init__(self, retriever: Retriever | None = None, settings: ReActSettings | None = None):
        super().__init__(retriever, settings)
        self.acting = dspy.Predict(AnswerByActing)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer by one episode."""
        reply, trajectory, passages = self.act(tree, answer_style)
        return self.prediction_of(tree, reply or self.ask(tree, answer_style, trajectory, passages, 0), passages)

    def act(
        self, tree: ReasoningTree, answer_style: AnswerStyle
    ) -> tuple[dspy.Prediction | None, list[str], list[Passage]]:
        """Run an episode.

        Returns:
            The reply that answers, None if all turns searched; the thoughts and searches; and all passages found.
        """
        settings, trajectory, passages, last = self.settings, list[str](), list[Passage](), None
        for turn in range(settings.max_turns):
            if settings.first_search and not turn:
                thought, query, k = "I search for the question itself.", tree.question, settings.first_search
            else:
                reply = self.ask(tree, answer_style, trajectory, passages, settings.max_turns - turn)
                thought, called, k = reply.next_thought, query_or_none(reply.search), settings.k
                if called is None:
                    return reply, trajectory, passages
                query = called
            found = self.retrieve(query, k)
            last = tree.add_search(last, query, found)
            passages = distinct([passages, found])
            numbers = ", ".join(str(numbers_of(passages)[passage.id]) for passage in found)
            result = f"passages {numbers}" if found else "nothing found"
            trajectory = [*trajectory, thought, search_in_text(query, result)]
        return None, trajectory, passages

    def ask(
        self,
        tree: ReasoningTree,
        answer_style: AnswerStyle,
        trajectory: list[str],
        passages: list[Passage],
        searches_left: int,
    ) -> dspy.Prediction:
        """Return the next turn's reply. Where the LM's window is too small, the oldest passages are left out."""
        reply = call(
            self.acting,
            drop="first",
            question=tree.question,
            answer_style=answer_style,
            passages=numbered(passages),
            trajectory=trajectory,
            searches_left=searches_left,
        )
        searches = query_or_none(reply.search) is not None
        note(reply, "searches" if searches else "answers", exemplary=searches == (not reply.answer))
        return reply

    def prediction_of(self, tree: ReasoningTree, reply: dspy.Prediction, passages: list[Passage]) -> dspy.Prediction:
        """Return the prediction of a reply that answers."""
        return answered_from(tree, reply.answer, reply.final_content, passages, sure=reply.sure)


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

    def __init__(self, retriever: Retriever | None = None, settings: ReActSelfConsistencySettings | None = None):
        super().__init__(retriever, settings)
        self.step_by_step_answer = dspy.Predict(AnswerStepByStep)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer by one episode; if it does not finish, by the majority of sampled chains of thought, from memory."""
        reply, _, passages = self.act(tree, answer_style)
        if reply is not None:
            return self.prediction_of(tree, reply, passages)
        inputs, settings = {"question": tree.question, "answer_style": answer_style}, self.settings
        chosen, answers = majority_answer(
            self.step_by_step_answer, [], settings.samples, settings.temperature, **inputs
        )
        for node in [one for one in tree.nodes if one.ended == "kept"]:
            tree.update(node, ended="filtered out")  # the answer does not rest on what was found
        tree.grow(None, query=tree.question, answer=chosen[0], source="lm", ended="accepted")
        return answered(tree, *chosen, passages=[], samples=answers)
