"""Tree of Thoughts, with retrieval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dspy
from pydantic import Field

from ...common.text import queries_in
from ...lm.call import call
from ...lm.parallel import run_parallel
from ...retrieval import Retriever
from ...signatures import AnswerStyle
from ...signatures.subquestions import JudgeSteps, ProposeFollowUps
from ..demonstrations import note
from ..modules.chain_of_query import as_steps
from ..modules.reader import as_share
from ..modules.subquestions import Solution, add_solution
from ..program import ProgramSettings
from ..tree import Node, ReasoningTree
from .subquestions import Solving


class TreeOfThoughtSettings(ProgramSettings):
    """How wide and how deep it thinks.

    Attributes:
        candidates: how many thoughts are proposed as the next one of a path.
        width: how many of the best paths are continued, the paper's b.
        max_depth: thoughts on a path at most.
        k: passages that a thought's answer is read from.
    """

    candidates: int = Field(default=3, ge=1)
    width: int = Field(default=2, ge=1)
    max_depth: int = Field(default=4, ge=1)
    k: int = Field(default=3, ge=1)


@dataclass(frozen=True)
class Thought:
    """A path, the LM's judgement of it, and whether no further thought was proposed."""

    path: list[Node]
    complete: bool = False
    promise: float = 0.0
    ended: bool = False


class TreeOfThought(Solving):
    """Tree of Thoughts (Yao et al., NeurIPS 2023, arXiv 2305.10601), breadth first.

    With retrieval, as in SearChain (table 1): a thought is a subquestion with an answer that was read in retrieved
    passages. Each level proposes thoughts for every path, values the paths that they lead to, and continues the best.
    The paper's depth is fixed for each task; the depth of a question is not known, so the LM also says whether a path
    is complete, and the best complete one ends the search. A path for which nothing new is proposed stays as it is, and
    is compared with the others. Calls that do not wait for each other run at the same time.
    """

    name = "tree-of-thought"
    Settings = TreeOfThoughtSettings
    settings: TreeOfThoughtSettings

    def __init__(self, retriever: Retriever | None = None, settings: TreeOfThoughtSettings | None = None):
        super().__init__(retriever, settings)
        self.follow_ups = dspy.Predict(ProposeFollowUps)
        self.steps_judge = dspy.Predict(JudgeSteps)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Search breadth first (the paper's algorithm 2, ToT-BFS)."""
        frontier, solutions = [Thought([])], list[Solution]()
        for _ in range(self.settings.max_depth):
            ended, grown = self.grow(tree, frontier, answer_style, solutions)
            if not grown:
                break
            frontier = self.best(tree, ended, grown, answer_style)
            if frontier[0].complete:
                break
        path = frontier[0].path
        if path:
            tree.update(path[-1], ended="accepted")
        return self.conclude(tree, answer_style, path, solutions)

    def grow(
        self, tree: ReasoningTree, frontier: list[Thought], answer_style: AnswerStyle, solutions: list[Solution]
    ) -> tuple[list[Thought], list[list[Node]]]:
        """Return the thoughts without a new proposal, and the paths that are one thought longer.

        The solutions of the new thoughts are appended to ``solutions``.
        """
        count = self.settings.candidates

        def propose(path: list[Node]) -> list[str]:
            reply = call(
                self.follow_ups, question=tree.question, answer_style=answer_style, solved=as_steps(path), count=count
            )
            proposed = dict.fromkeys(queries_in(reply.follow_ups))
            earlier = {node.query.casefold() for node in path}
            return [query for query in list(proposed)[:count] if query.casefold() not in earlier]

        going = [thought for thought in frontier if not thought.ended]
        proposed = run_parallel([partial(propose, thought.path) for thought in going])
        ended = [replace(thought, ended=True) for thought, queries in zip(going, proposed, strict=True) if not queries]
        openings = [
            (thought.path, query) for thought, queries in zip(going, proposed, strict=True) for query in queries
        ]
        solved = run_parallel([partial(self.solve, tree.question, path, query) for path, query in openings])
        solutions += solved
        grown = [
            [*path, add_solution(tree, path, solution)] for (path, _), solution in zip(openings, solved, strict=True)
        ]
        return [thought for thought in frontier if thought.ended] + ended, grown

    def best(
        self, tree: ReasoningTree, ended: list[Thought], paths: list[list[Node]], answer_style: AnswerStyle
    ) -> list[Thought]:
        """Return the most promising thoughts, those that ended among them, complete ones first."""

        def judge(path: list[Node]) -> Thought:
            inputs = dict[str, Any](question=tree.question, answer_style=answer_style, solved=as_steps(path))
            reply = call(self.steps_judge, **inputs)
            note(reply, "complete" if reply.complete else "open")
            return Thought(path, reply.complete, as_share(reply.promise))

        thoughts = [*ended, *run_parallel([partial(judge, path) for path in paths])]
        return sorted(thoughts, key=lambda thought: (not thought.complete, -thought.promise))[: self.settings.width]
