"""A plan as data: all steps that do not depend on each other are answered in one call, comparisons are computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain, repeat

import dspy
from pydantic import Field

from ...common.placeholders import fill_in, numbers_in, unanswered, without_placeholders
from ...lm.call import call
from ...lm.parallel import run_parallel
from ...lm.window import shown_of
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.plan_graph import AnswerLookups, GraphStep, LookedUp, PlanLookups
from ..comparisons import outcome, read_comparison
from ..modules.chain_of_query import Tracing
from ..modules.verdict import sentence_with
from ..program import Program, ProgramSettings, answered
from ..references import distinct, first_of, numbered
from ..tree import Node, ReasoningTree


class PlanGraphSettings(ProgramSettings):
    """How it plans and searches.

    Attributes:
        k: passages of a lookup.
        max_steps: of the plan; those beyond it are left out.
    """

    k: int = Field(default=5, ge=1)
    max_steps: int = Field(default=8, ge=1)


class PlanGraph(Program):
    """A plan as data, carried out level by level (after PyRAG's plan as a program, 2026, without running code).

    One call plans lookups and comparisons. The lookups that need no earlier answer are searched for at once and
    answered in one call; then those that needed their answers. Comparisons of dates and numbers are computed. A last
    call answers.
    """

    name = "plan-graph"
    Settings = PlanGraphSettings
    settings: PlanGraphSettings

    def __init__(self, retriever: Retriever | None = None, settings: PlanGraphSettings | None = None):
        super().__init__(retriever, settings)
        self.plan = dspy.Predict(PlanLookups)
        self.lookups = dspy.Predict(AnswerLookups)
        self.tracing = Tracing()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Plan, answer level by level, and conclude."""
        plan = call(self.plan, question=without_placeholders(tree.question)).steps_planned[: self.settings.max_steps]
        solved: dict[int, Node] = {}
        passages = list[Passage]()
        while level := ready(plan, solved):
            queries = {number: fill_in(plan[number - 1].query, answers(plan, solved)) for number in level}
            lookups = [number for number in level if plan[number - 1].asks == "lookup"]
            found = self.look_up(tree, solved, {number: queries[number] for number in lookups})
            passages = distinct([passages, found])
            for number in level:
                if number not in lookups:
                    solved[number] = add_comparison(tree, solved, plan[number - 1].asks, queries[number])
        path = [solved[number] for number in sorted(solved)]
        cited = self.tracing(question=tree.question, answer_style=answer_style, path=path)
        return answered(tree, *cited, passages=passages)

    def look_up(self, tree: ReasoningTree, solved: dict[int, Node], queries: dict[int, str]) -> list[Passage]:
        """Search for the queries at once, add a node for each to the tree and to ``solved``, return what was found."""
        if not queries:
            return []
        passages = distinct(
            run_parallel([partial(self.retrieve, query, self.settings.k) for query in queries.values()])
        )
        reply = call(self.lookups, lookups=list(queries.values()), passages=numbered(passages))
        shown = shown_of(passages, reply)
        replies = chain(reply.looked_up, repeat(LookedUp()))  # a reply may leave some out
        for (number, query), answer_to in zip(queries.items(), replies, strict=False):
            passage = first_of([answer_to.passage], shown)
            support = sentence_with(answer_to.answer, passage, query)
            source = "unsolved" if not answer_to.answer else "completed" if support else "lm"
            solved[number] = tree.grow(
                _last(solved),
                query=query,
                answer=answer_to.answer,
                source=source,
                sure=support is not None,
                found=tuple(passages),
                passage=passage if support else None,
                support=support,
            )
        return passages


def ready(plan: Sequence[GraphStep], solved: dict[int, Node]) -> list[int]:
    """Return the numbers, from 1, of the unsolved steps that depend only on solved ones.

    A reference of a step to itself, to a later step or to a missing one does not count, and stays as it is.
    """
    waiting = [number for number in range(1, len(plan) + 1) if number not in solved]
    return [
        number
        for number in waiting
        if not any(needed in waiting and needed < number for needed in numbers_in(plan[number - 1].query))
    ]


def answers(plan: Sequence[GraphStep], solved: dict[int, Node]) -> list[str | None]:
    """Return the answers of the steps in their order; for a step without an answer, its query."""
    nodes = [solved.get(number) for number in range(1, len(plan) + 1)]
    return [None if node is None else node.answer or unanswered(node.query) for node in nodes]


def add_comparison(tree: ReasoningTree, solved: dict[int, Node], asks: str, query: str) -> Node:
    """Add the node of a comparison and return it; it has no answer if the values cannot be compared."""
    comparison = read_comparison([asks, *(part.strip() for part in query.split(";"))])
    result = outcome(comparison) if comparison else None
    return tree.grow(
        _last(solved),
        query=f"Which is the {asks}: {query}",
        answer=result,
        source="lm" if result else "unsolved",
        sure=True,
    )


def _last(solved: dict[int, Node]) -> Node | None:
    return solved[max(solved)] if solved else None
