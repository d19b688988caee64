"""Verify-and-Edit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import dspy
from pydantic import Field

from ...common.sentences import sentences
from ...common.text import query_or_none, text_or_none
from ...lm.call import call
from ...lm.parallel import run_parallel
from ...lm.window import shown_of
from ...metrics import normalise, without_marks
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerFromThoughts, AnswerStepByStep
from ...signatures.verification import AskToVerify, EditSentence
from ..demonstrations import note
from ..majority import majority_answer, most_votes
from ..program import Program, ProgramSettings, answered
from ..references import distinct, first_of, numbered, numbers_of, passages_of, settle_marks, supported_by
from ..tree import Node, ReasoningTree


class VerifyAndEditSettings(ProgramSettings):
    """When it verifies, and with what.

    Attributes:
        samples: chains of thought.
        temperature: at which several are sampled.
        threshold: the share of samples that must give the same answer; if fewer do, the answer is verified.
        k: passages that a sentence is verified with.
    """

    samples: int = Field(default=5, ge=1)
    temperature: float = Field(default=0.7, gt=0)
    threshold: float = Field(default=0.5, ge=0, le=1)
    k: int = Field(default=3, ge=1)


@dataclass(frozen=True)
class Verified:
    """A sentence after its verification.

    Attributes:
        query: the verifying question.
        sentence: as it was.
        edited: as it is now.
        passage: the one that supports it, if any.
        found: all passages that were retrieved.
    """

    query: str
    sentence: str
    edited: str
    passage: Passage | None
    found: list[Passage]


class VerifyAndEdit(Program):
    """Verify-and-Edit (Zhao et al., ACL 2023, arXiv 2305.03268): doubtful steps are checked and written anew.

    Samples chains of thought. If fewer than the threshold agree, the majority's chain is verified: for each sentence
    the LM writes a verifying question, passages are retrieved for it, and the LM edits the sentence by them; then the
    question is answered again from the edited chain. The paper answers each verifying question and puts this answer in
    the sentence's place; here one call writes the new sentence.
    """

    name = "verify-and-edit"
    Settings = VerifyAndEditSettings
    settings: VerifyAndEditSettings

    def __init__(self, retriever: Retriever | None = None, settings: VerifyAndEditSettings | None = None):
        super().__init__(retriever, settings)
        self.step_by_step_answer = dspy.Predict(AnswerStepByStep)
        self.ask_to_verify = dspy.Predict(AskToVerify)
        self.edit_sentence = dspy.Predict(EditSentence)
        self.thoughts_answer = dspy.Predict(AnswerFromThoughts)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Sample chains of thought; verify and edit the majority's if too few of them agree."""
        inputs, settings = {"question": tree.question, "answer_style": answer_style}, self.settings
        (answer, content, *_), answers = majority_answer(
            self.step_by_step_answer, [], settings.samples, settings.temperature, **inputs
        )
        node = tree.grow(None, query=tree.question, answer=answer, source="lm")
        if most_votes(answers, answer_style) / len(answers) >= settings.threshold:
            return answered(tree, answer, content, [], samples=answers)
        return self.edit(tree, node, content, answer_style)

    def verify(self, question: str, sentence: str) -> Verified:
        """Return the sentence, edited by the passages found for its verifying question (section 3).

        If the LM asks none, the sentence itself is searched for. Without passages it stays as it was.
        """
        query = query_or_none(call(self.ask_to_verify, question=question, sentence=sentence).query) or sentence
        passages = self.retrieve(query, self.settings.k)
        if not passages:
            return Verified(query, sentence, sentence, None, [])
        reply = call(self.edit_sentence, query=query, sentence=sentence, passages=numbered(passages))
        edited = text_or_none(reply.edited) or sentence
        note(reply, "same" if normalise(edited) == normalise(sentence) else "changed")
        cited = first_of(reply.references, shown_of(passages, reply))
        return Verified(query, sentence, without_marks(edited), cited, passages)

    def edit(self, tree: ReasoningTree, node: Node, reasoning: str, answer_style: AnswerStyle) -> dspy.Prediction:
        """Verify and edit each sentence of the reasoning, and answer from the result."""
        verified = run_parallel([partial(self.verify, tree.question, sentence) for sentence in sentences(reasoning)])
        for result in verified:
            changed = normalise(result.edited) != normalise(result.sentence)
            fields = {"answer": result.edited, "source": "corrected" if changed else "lm", "passage": result.passage}
            node = tree.grow(node, round=2, query=result.query, **fields)
        edited = [result.edited for result in verified]
        inputs = dict[str, Any](question=tree.question, answer_style=answer_style, thoughts=edited)
        answer = call(self.thoughts_answer, **inputs).answer
        references = passages_of(verified)
        number = numbers_of(references)
        content = " ".join(
            f"{result.edited} [{number[result.passage.id]}]" if result.passage else result.edited for result in verified
        )
        content, references = settle_marks(content, references, supported_by(tree.question))
        return answered(tree, answer, content, references, passages=distinct([result.found for result in verified]))
