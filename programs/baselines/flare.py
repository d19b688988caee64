"""FLARE."""

from __future__ import annotations

import re

import dspy
from pydantic import Field

from ...common.sentences import sentences, without_item_mark
from ...common.text import stated
from ...lm.call import call
from ...metrics import stands_in
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerFromThoughts
from ...signatures.searches import RegenerateSentence, WriteTentatively
from ..demonstrations import note
from ..modules.searches import NextThought
from ..program import Program, ProgramSettings, answered_from
from ..references import distinct, numbered_among, settle_marks, supported_by
from ..tree import ReasoningTree


class FLARESettings(ProgramSettings):
    """How long it writes.

    Attributes:
        k: passages that an uncertain sentence retrieves.
        max_thoughts: sentences of reasoning at most.
    """

    k: int = Field(default=5, ge=1)
    max_thoughts: int = Field(default=8, ge=1)


class FLARE(Program):
    """FLARE (Jiang et al., EMNLP 2023, arXiv 2305.06983), the direct variant (section 3.2) with masked queries (3.2.2).

    Each sentence of the reasoning is first written from memory. If the LM is certain of it, it stands; if not, the
    sentence without its uncertain words is the query, and it is written anew from the passages. The paper finds
    uncertain words by their probabilities; many LMs do not give these away, so here the LM itself names the words that
    it is not certain of. That is another signal than the paper's, and an LM may be sure of what is wrong. Four more
    differences: a conclusion is not searched for; where this query finds mostly known passages, the whole sentence is
    searched for too; the LM sees the sentence that it writes anew, so that a guess is not made twice; and a sentence
    that was written before ends the reasoning.
    """

    name = "flare"
    Settings = FLARESettings
    settings: FLARESettings

    def __init__(self, retriever: Retriever | None = None, settings: FLARESettings | None = None):
        super().__init__(retriever, settings)
        self.write_tentatively = dspy.Predict(WriteTentatively)
        self.next_thought = NextThought(RegenerateSentence)
        self.thoughts_answer = dspy.Predict(AnswerFromThoughts)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Write sentence by sentence, look up what is uncertain, and answer."""
        question, thoughts, passages, last = tree.question, list[str](), list[Passage](), None
        for round in range(1, self.settings.max_thoughts + 1):
            reply, thought, uncertain = self.tentative(question, answer_style, thoughts)
            concludes = "answer is" in thought.lower()
            if uncertain and not concludes:
                query, found = self.look_up(thought, masked(thought, uncertain) or question, passages)
                passages = distinct([passages, found])
                last = tree.add_search(last, query, found)
                shown = numbered_among(passages, found)
                thought, concludes = self.next_thought(
                    question=question,
                    answer_style=answer_style,
                    passages=shown,
                    thoughts=thoughts,
                    tentative=thought,
                    uncertain=uncertain,
                )
                if not all(stands_in(thought, words) for words in uncertain):
                    note(reply, exemplary=False)  # it would teach a wrong sentence
                _, cited = settle_marks(thought, passages, supported_by(question))
                tree.update(last, answer=thought or None, source="completed" if cited else "lm", sure=bool(cited))
            elif thought:
                last = tree.grow(last, round=round, query=thought, answer=thought, sure=not uncertain, source="lm")
            if not thought or thought in thoughts:  # an LM that repeats itself does not stop
                break
            thoughts.append(thought)
            if concludes:
                break
        reply = call(self.thoughts_answer, question=question, answer_style=answer_style, thoughts=thoughts)
        sure = "answer is perhaps" not in " ".join(thoughts[-1:]).lower()
        return answered_from(tree, reply.answer, " ".join(thoughts), passages, sure=sure, thoughts=thoughts)

    def look_up(self, thought: str, query: str, known: list[Passage]) -> tuple[str, list[Passage]]:
        """Return what was searched for, and what was found.

        If the sentence without its uncertain words finds mostly known passages, the whole sentence is searched for
        too: the guess may be what they lack.
        """
        found = self.retrieve(query, self.settings.k)
        new = len(distinct([known, found])) - len(known)
        if query == thought or 2 * new >= len(found) > 0:
            return query, found
        return thought, distinct([found, self.retrieve(thought, self.settings.k)])

    def tentative(
        self, question: str, answer_style: AnswerStyle, thoughts: list[str]
    ) -> tuple[dspy.Prediction, str, list[str]]:
        """Return a reply, the sentence in it, which is from memory, and the words that the LM is not certain of."""
        reply = call(self.write_tentatively, question=question, answer_style=answer_style, thoughts=thoughts)
        written = sentences(str(reply.tentative))
        thought = without_item_mark(written[0]) if written else ""
        uncertain = [words.strip("\"'“”‘’`* ") for words in stated(reply.uncertain)]
        ends = "answer is" in thought.lower()
        kind = "ends" if ends else "certain" if not uncertain else "uncertain later" if thoughts else "uncertain"
        note(reply, kind, exemplary=len(written) == 1)
        return reply, thought, uncertain


def masked(sentence: str, uncertain: list[str]) -> str:
    """Return the sentence without the uncertain words; empty if no word is left."""
    for words in sorted(uncertain, key=len, reverse=True):
        sentence = re.sub(rf"(?<!\w){re.escape(words)}(?!\w)", " ", sentence)
    words_left = " ".join(sentence.split())
    return words_left if any(letter.isalnum() for letter in words_left) else ""
