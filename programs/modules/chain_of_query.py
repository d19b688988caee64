"""The path of a chain of query: as prompts show it, and the traced answer that it leads to (SearChain, section 3.2)."""

from __future__ import annotations

from functools import partial
from typing import Any

import dspy

from ...common.placeholders import numbers_in
from ...lm.call import call
from ...metrics import normalise, stands_in, unjoined
from ...retrieval import Passage
from ...signatures import AnswerStyle
from ...signatures.chain_of_query import Step, TracedStep
from ..demonstrations import note
from ..majority import Sample
from ..references import distinct, kept_all_marks, numbers_of, settle_marks
from ..streams import Writing
from ..tree import Node, without_repeats


def traced_answer(predict: dspy.Predict, question: str, answer_style: AnswerStyle, path: list[Node]) -> Sample:
    """Ask for the path as a text, and return the answer, this text, and its references: ``[n]`` is ``references[n-1]``.

    A mark that does not stand at the answer of a step that its passage supports is taken out.
    """
    told, guesses = without_repeats(path), guessed(path)
    supported = [node for node in told if node.passage and node.support]
    passages = distinct([[node.passage] for node in supported if node.passage])
    number = numbers_of(passages)
    steps = [
        TracedStep(
            query=node.query,
            answer=node.answer,
            mark=number[node.passage.id] if node.support and node.passage else None,
            title=node.passage.title or None if node.support and node.passage else None,
            support=node.support,
            sure=bool(node.answer) and node.id not in guesses,
        )
        for node in told
    ]

    def settle(text: str) -> tuple[str, list[Passage]]:
        return settle_marks(text, passages, belongs)

    def belongs(fragment: str, passage: Passage) -> bool:
        steps = [node for node in supported if node.passage and node.passage.id == passage.id]
        return any(tells(fragment, node.answer or "") for node in steps)

    inputs: dict[str, Any] = {"question": question, "answer_style": answer_style, "steps": steps}
    reply = call(predict, writing=partial(Writing, settle), **inputs)
    final_content, references = settle(reply.final_content)
    kind = "guesses" if guesses else "remembers" if any(step.mark is None for step in steps) else "cites"
    note(reply, kind, exemplary=kept_all_marks(reply.final_content, final_content))
    return reply.answer, final_content, references


def guessed(path: list[Node]) -> set[int]:
    """Return the ids of the nodes whose answer is a guess, or rests on one: their query holds the answer of a guess."""
    guesses: set[int] = set()
    for node in path:
        needs = [path[number - 1].id for number in numbers_in(node.template or "") if number <= len(path)]
        if not (node.sure or node.support) or guesses & set(needs):
            guesses.add(node.id)
    return guesses


def tells(fragment: str, answer: str) -> bool:
    """Return whether the fragment tells the answer: at least half of its words, since 'Kafka' is Franz Kafka."""
    words = normalise(unjoined(answer)).split()
    return 2 * sum(stands_in(fragment, word) for word in words) >= len(words) > 0


def as_steps(nodes: list[Node]) -> list[Step]:
    """Return nodes of a path as the LM is shown them."""
    return [Step(query=node.query, answer=node.answer) for node in nodes]
