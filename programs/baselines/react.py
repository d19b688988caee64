"""ReAct, and ReAct that falls back on self-consistency."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import dspy
from pydantic import Field

from ...common.text import unquoted
from ...lm.call import call
from ...lm.failure import CallFailedError
from ...lm.guard import adapter_in_use, guarded
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerStepByStep
from ...signatures.searches import AnswerByActing
from ..demonstrations import note
from ..majority import majority_answer
from ..program import Program, ProgramSettings, answered, answered_from
from ..references import distinct, numbered_among
from ..tree import Node, ReasoningTree

_SEARCH = "Finds passages of an encyclopedia, each behind its number. The query is complete in itself."  # in the prompt
_TURN = ("thought", "tool_name", "tool_args", "observation")


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

    The prompts are those of DSPy's ReAct. The paper's actions look up pages of Wikipedia and words in them; here the
    only one is a search of the index. When all turns are used, the answer is read from the trajectory.
    """

    name = "react"
    Settings = ReActSettings
    settings: ReActSettings

    def __init__(self, retriever: Retriever | None = None, settings: ReActSettings | None = None):
        super().__init__(retriever, settings)
        tool = dspy.Tool(lambda query: query, name="search", desc=_SEARCH, args={"query": {"type": "string"}})
        self.acting = dspy.ReAct(AnswerByActing, tools=[tool])  # its two predictors are asked, and it is not called

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer by one episode."""
        trajectory, passages, _ = self.act(tree, answer_style)
        return self.extract(tree, answer_style, trajectory, passages)

    def act(self, tree: ReasoningTree, answer_style: AnswerStyle) -> tuple[dict[str, Any], list[Passage], bool]:
        """Run an episode.

        Returns:
            The trajectory, all passages that it found, numbered in one sequence, and whether the LM finished.
        """
        settings, trajectory, passages = self.settings, dict[str, Any](), list[Passage]()
        last: Node | None = None
        for turn in range(settings.max_turns):
            if settings.first_search and not turn:
                thought, tool, given = "I search for the question itself.", "search", {"query": tree.question}
            else:
                reply = self.ask(self.acting.react, tree, answer_style, trajectory)
                thought, tool, given = reply.next_thought, reply.next_tool_name, reply.next_tool_args
            if tool == "finish":
                observation = "Completed."
            elif given.keys() != {"query"} or not isinstance(given["query"], str):
                observation = "search takes query, and each is a text."
            else:
                query = unquoted(given["query"])
                found = self.retrieve(query, settings.k if last else settings.first_search or settings.k)
                last = tree.add_search(last, query, found)
                passages = distinct([passages, found])
                observation = "\n".join(numbered_among(passages, found)) or "Nothing was found."
            values = zip(_TURN, (thought, tool, given, observation), strict=True)
            trajectory |= {f"{name}_{turn}": value for name, value in values}
            if tool == "finish":
                return trajectory, passages, True
        return trajectory, passages, False

    def ask(
        self, predict: dspy.Predict, tree: ReasoningTree, answer_style: AnswerStyle, trajectory: dict[str, Any]
    ) -> dspy.Prediction:
        """Call a predictor with the trajectory; as long as the LM's window is too small, without its oldest turn."""
        shown = guarded(trajectory, predict.signature, adapter_in_use())  # before DSPy puts markers between the texts
        while True:
            told = adapter_in_use().format_user_message_content(_signature_of(tuple(shown)), shown)
            try:
                reply = call(predict, question=tree.question, answer_style=answer_style, trajectory=told)
            except CallFailedError as error:
                if error.failure.cause != "context-window" or len(shown) <= len(_TURN):
                    raise
                shown = dict(list(shown.items())[len(_TURN) :])
            else:
                note(reply, str(reply.get("next_tool_name") or ""))
                return reply

    def extract(
        self, tree: ReasoningTree, answer_style: AnswerStyle, trajectory: dict[str, Any], passages: list[Passage]
    ) -> dspy.Prediction:
        """Read the answer from the trajectory."""
        reply = self.ask(self.acting.extract.predict, tree, answer_style, trajectory)
        return answered_from(tree, reply.answer, reply.reasoning, passages)


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
        trajectory, passages, finished = self.act(tree, answer_style)
        if finished:
            return self.extract(tree, answer_style, trajectory, passages)
        inputs, settings = {"question": tree.question, "answer_style": answer_style}, self.settings
        chosen, answers = majority_answer(
            self.step_by_step_answer, [], settings.samples, settings.temperature, **inputs
        )
        for node in [one for one in tree.nodes if one.ended == "kept"]:
            tree.update(node, ended="filtered out")  # the answer does not rest on what was found
        tree.grow(None, query=tree.question, answer=chosen[0], source="lm", ended="accepted")
        return answered(tree, *chosen, passages=[], samples=answers)


@lru_cache(maxsize=64)  # DSPy makes a signature anew for each prompt
def _signature_of(names: tuple[str, ...]) -> type[dspy.Signature]:
    signature: type[dspy.Signature] = dspy.Signature(f"{', '.join(names)} -> x")
    return signature
