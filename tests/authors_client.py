"""What the client of SearChain's authors does with a script of replies, to compare ours with.

Written from the description of its behaviour (Xu et al., WWW 2024, section 3.2 and algorithm 1); none of its code is
used. Where ours departs from it on purpose, the departure has a name and a reason, and can be taken part in.
"""

import string
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

Step = tuple[str, str | None]
"""A query of a chain and the LM's answer; None if the LM marks it as unsolved."""

DEPARTURES = {
    "helped and left unsolved": "The client repeats its feedback until no round is left. By algorithm 1 the query has "
    "been processed: ours goes on with the steps after it.",
    "a word for no answer": "The client knows its own mark for an unsolved query alone, and checks 'Unknown' like an "
    "answer. Ours completes it.",
    "an empty span against a long answer": "A reader that found nothing is no evidence. The comparison of a long "
    "answer with the whole passage would count it.",
}
"""Where ours departs from the client, and why."""

UNSOLVED = "[Unsolved Query]"  # the client's own mark
NO_ANSWERS = ("Unknown", "N/A", "I do not know", "")


@dataclass(frozen=True)
class Feedback:
    """What the LM is told of one query after a round."""

    kind: Literal["correct", "complete"]
    query: str
    answer: str | None
    span: str
    passage: str


@dataclass(frozen=True)
class Turn:
    """One reply of the LM.

    Attributes:
        answers: how the LM answers the query that it got feedback on: with the reader's span, as before, not at all,
            or in these words. The first reply answers none.
        steps: the chain, or how it goes on after that query.
    """

    steps: tuple[Step, ...]
    answers: str = "the span"

    def answer_to(self, feedback: Feedback) -> str | None:
        """Return the LM's new answer to the query that it got feedback on."""
        known = {"the span": feedback.span or None, "as before": feedback.answer, "not at all": None}
        return known.get(self.answers, self.answers)


@dataclass(frozen=True)
class Script:
    """Everything that both sides are given.

    Attributes:
        turns: the LM's replies, as many as there may be rounds.
        passages: the passage that is found for each query.
        spans: what the reader reads in it, and its score.
        meanings: of each query; two queries of the same meaning are duplicates.
    """

    turns: tuple[Turn, ...]
    passages: dict[str, str]
    spans: dict[str, tuple[str, float]]
    meanings: dict[str, int]
    answer_style: Literal["short", "long"] = "short"
    theta: float = 1.5
    alpha: float = 0.35


@dataclass
class Course:
    """What came of a script: what both sides have to agree in.

    Attributes:
        looked_up: the queries, in their order.
        feedback: what the LM was told.
        chains: how many chains it was asked for.
        told: the path that is traced: each query once, with the LM's latest answer.
        sources: of these answers, as table 2 counts them.
    """

    looked_up: list[str] = field(default_factory=list)
    feedback: list[Feedback] = field(default_factory=list)
    chains: int = 0
    told: list[Step] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


@dataclass
class _Node:
    query: str
    answer: str | None
    source: str = "lm"
    repeats: bool = False


class AuthorsClient:
    """Algorithm 1 as the authors' client runs it.

    Args:
        script: what it is given.
        departures: names of `DEPARTURES` in which it goes our way.
    """

    def __init__(self, script: Script, departures: Collection[str] = ()):
        self.script, self.departures = script, departures
        self.course, self.departed = Course(), Counter[str]()
        self.processed: list[str] = []

    def run(self) -> Course:
        """Ask for chains until a chain gives rise to no feedback, or no round is left; return what came of it."""
        path: list[_Node] = []
        feedback: Feedback | None = None
        for turn in self.script.turns:
            steps = list(turn.steps)
            if feedback is not None:
                self.course.feedback.append(feedback)
                steps = [(feedback.query, turn.answer_to(feedback)), *steps]
            chain = [_Node(query, self.answer_in(answer)) for query, answer in steps]
            if feedback is not None:
                chain[0].source = {"correct": "corrected", "complete": "completed"}[feedback.kind]
            path += chain
            self.course.chains += 1
            helped = self.walk(chain, goes_on=feedback is not None)
            if helped is None:
                break
            index, feedback = helped
            if turn is not self.script.turns[-1]:
                del path[len(path) - len(chain) + index :]
        told = [node for node in path if not node.repeats]
        self.course.told = [(node.query, node.answer) for node in told]
        self.course.sources = ["unsolved" if node.answer is None else node.source for node in told]
        return self.course

    def walk(self, chain: Sequence[_Node], goes_on: bool) -> tuple[int, Feedback] | None:
        """Look up the queries of a chain in their order; return the first that needs help, with the feedback."""
        for index, node in enumerate(chain):
            was_helped = goes_on and index == 0
            if node.answer is None:
                if was_helped and self.departs("helped and left unsolved"):
                    continue
            elif self.was_processed(node.query):
                node.repeats = not was_helped
                continue
            feedback = self.look_up(node)
            if feedback is not None:
                return index, feedback
        return None

    def look_up(self, node: _Node) -> Feedback | None:
        """Look up one query; return feedback if the LM has no answer, or another one than a sure reader."""
        self.course.looked_up.append(node.query)
        self.processed.append(node.query)
        passage, (span, score) = self.script.passages[node.query], self.script.spans[node.query]
        if node.answer is None:
            return Feedback("complete", node.query, None, span, passage)
        if score > self.script.theta and not self.consistent(span, node.answer, passage):
            return Feedback("correct", node.query, node.answer, span, passage)
        return None

    def consistent(self, span: str, answer: str, passage: str) -> bool:
        """Return whether the span stands in the answer; for a long answer, whether it is like the passage."""
        if self.script.answer_style == "short":
            return plain(span) in plain(answer)
        alike = longest_common_f(answer, passage) > self.script.alpha
        return alike or (not plain(span) and self.departs("an empty span against a long answer"))

    def was_processed(self, query: str) -> bool:
        """Return whether a query of the same meaning was looked up before."""
        return self.script.meanings[query] in {self.script.meanings[one] for one in self.processed}

    def answer_in(self, written: str | None) -> str | None:
        """Return the answer that the LM wrote; None where it left the query unsolved."""
        if written in NO_ANSWERS and self.departs("a word for no answer"):
            return None
        return None if written == UNSOLVED else written

    def departs(self, name: str) -> bool:
        """Return whether to go our way here, and count it."""
        self.departed[name] += name in self.departures
        return name in self.departures


def plain(text: str) -> str:
    """Return the text in the form in which answers are compared: SQuAD's."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(word for word in kept.split() if word not in ("a", "an", "the"))


def longest_common_f(text: str, other: str) -> float:
    """Return the F-measure of the longest common subsequence of words (ROUGE-L; Lin, 2004)."""
    words, others = plain_words(text), plain_words(other)
    row = [0] * (len(others) + 1)
    for word in words:
        before = row[:]
        for place, another in enumerate(others, start=1):
            row[place] = before[place - 1] + 1 if word == another else max(before[place], row[place - 1])
    return 2 * row[-1] / (len(words) + len(others)) if words and others else 0.0


def plain_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
