"""What FlashRAG's pipelines for ITER-RETGEN and IRCoT do with a script of replies, to compare ours with.

Written from the description of their behaviour (Jin et al., 2024, arXiv 2405.13576); none of its code is used.
Where ours departs from it on purpose, the departure has a name and a reason, and can be taken part in.
"""

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

DEPARTURES = {
    "the reply before the question": "The paper of ITER-RETGEN has the last reply stand before the question (section "
    "3.1); FlashRAG puts it behind.",
    "one sentence of a reply": "IRCoT's authors keep the first sentence of a reply. FlashRAG keeps all of it.",
    "any word for the answer": "IRCoT's authors end at a sentence with 'answer is'; FlashRAG at 'So the answer is:'.",
    "facts alone are searched for": "IRCoT's authors search for no sentence that only concludes. FlashRAG does.",
    "no question words": "IRCoT's authors take words such as 'which' out of each query. FlashRAG does not.",
    "a reply without a sentence": "IRCoT's authors end there. FlashRAG searches for it.",
    "in the order found": "IRCoT's authors add what a search finds to what they have, fifteen paragraphs at most. "
    "FlashRAG orders all by their scores, the lowest first.",
}
"""Where ours departs from the pipelines, and why."""

QUESTION_WORDS = ("who", "what", "when", "where", "why", "which", "how", "does", "is")


class Sentence(NamedTuple):
    """A sentence of a reply, and what it does."""

    text: str
    kind: Literal["states", "concludes", "answers", "answers otherwise"] = "states"


@dataclass(frozen=True)
class Script:
    """Everything that both sides are given: each reply is its sentences."""

    question: str
    replies: tuple[tuple[Sentence, ...], ...]
    k: int = 3
    corpus: int = 12

    def ranking(self, query: str) -> list[tuple[str, float]]:
        """Return what a query finds: ids with their scores, best first."""
        draw = random.Random(query)
        found = draw.sample(range(self.corpus), self.k)
        return [(f"d{number}", 10.0 - rank - draw.random() / 2) for rank, number in enumerate(found)]


def text_of(reply: tuple[Sentence, ...]) -> str:
    """Return a reply as the LM writes it."""
    return " ".join(sentence.text for sentence in reply)


@dataclass
class Course:
    """What came of a script: the queries, and the passages that each prompt showed."""

    queries: list[str] = field(default_factory=list)
    shown: list[list[str]] = field(default_factory=list)


class FlashRAG:
    """The two pipelines.

    Args:
        script: what they are given.
        departures: names of `DEPARTURES` in which they go our way.
    """

    def __init__(self, script: Script, departures: Collection[str] = ()):
        self.script, self.departures = script, departures
        self.course, self.departed = Course(), Counter[str]()

    def iter_retgen(self) -> Course:
        """Retrieve and generate once for each reply."""
        query = self.script.question
        for reply in self.script.replies:
            self.course.shown.append([id for id, _ in self.search(query)])
            parts = [self.script.question, text_of(reply)]
            before = self.departs("the reply before the question")
            query = " ".join(reversed(parts) if before else parts).strip()
        return self.course

    def ircot(self) -> Course:
        """Write a thought for each reply, and search for it, until the answer is there."""
        found = dict(self.search(self.asked(self.script.question)))
        order = list(found)
        for reply in self.script.replies:
            self.course.shown.append(order)
            if not reply and self.departs("a reply without a sentence"):
                break
            thought = self.thought_in(reply)
            if any(self.ends(sentence) for sentence in thought):
                break
            last = thought[-1] if thought else Sentence("")
            if last.kind == "concludes" and self.departs("facts alone are searched for"):
                continue
            for id, score in self.search(self.asked(text_of(thought))):
                order = order if id in found else [*order, id]
                found[id] = max(score, found.get(id, score))
            by_score = sorted(found, key=lambda id: found[id])
            if order != by_score and self.departs("in the order found"):
                order = order[:15]
                found = {id: found[id] for id in order}
            else:
                order = by_score
        return self.course

    def thought_in(self, reply: tuple[Sentence, ...]) -> tuple[Sentence, ...]:
        """Return what is kept of a reply."""
        return reply[:1] if len(reply) > 1 and self.departs("one sentence of a reply") else reply

    def ends(self, sentence: Sentence) -> bool:
        """Return whether the reasoning ends with a sentence."""
        if sentence.kind == "answers otherwise":
            return self.departs("any word for the answer")
        return sentence.kind == "answers"

    def asked(self, text: str) -> str:
        """Return the query for a text."""
        kept = [word for word in text.split(" ") if word.lower() not in QUESTION_WORDS]
        return " ".join(kept) if len(kept) < len(text.split(" ")) and self.departs("no question words") else text

    def search(self, query: str) -> list[tuple[str, float]]:
        """Search, and note the query."""
        self.course.queries.append(query)
        return self.script.ranking(query)

    def departs(self, name: str) -> bool:
        """Return whether to go our way here, and count it."""
        self.departed[name] += name in self.departures
        return name in self.departures
