"""SearChain for one question: what the paper's way and ours share (algorithm 1, Traverse and AddChild)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import dspy

from ..lm.episode import step
from ..metrics import agree, normalise
from ..retrieval import DuplicateCheck, Passage
from ..retrieval.duplicates import ExactDuplicates
from ..signatures import AnswerStyle
from ..signatures.chain_of_query import PlannedStep
from .modules.reader import read
from .modules.verdict import (
    Verdict,
    agree_at_length,
    fuller_name,
    independent_passages,
    more_exact,
    sentence_with,
)
from .program import answered
from .tree import Node, ReasoningTree

Help = Literal["correct", "complete", "remember", "revise"]
_PHRASE = 12  # words; a longer answer is no name, date or number


@dataclass(frozen=True)
class Feedback:
    """What retrieval has to say about one node; it ends a round.

    Attributes:
        node: the one that needs help.
        kind: its answer is contradicted; or, for a node that has none, found, remembered, or not found. A guess may be
            replaced by what is remembered, too.
        verdict: what the passages say.
    """

    node: Node
    kind: Help
    verdict: Verdict


class ChainSearch(ABC):
    """The reasoning of one question, with the steps, settings, retriever and reader of a SearChain."""

    revises: ClassVar[bool] = False
    """Whether a query that finds no answer is asked in other words, and looked up again where it is repeated."""

    def __init__(self, program: Any, tree: ReasoningTree, answer_style: AnswerStyle):
        self.program, self.settings, self.tree, self.answer_style = program, program.settings, tree, answer_style
        self.verdicts = dict[tuple[str | None, ...], Verdict]()
        self.asked = dict[str, Any](question=tree.question, answer_style=answer_style)

    @abstractmethod
    def reason(self) -> dspy.Prediction:
        """Return the traced answer (algorithm 1, Main)."""

    @abstractmethod
    def help_for(self, verdict: Verdict) -> Help:
        """Return which help a node gets that has no answer."""

    def traverse(self, branch: list[Node]) -> Feedback | None:
        """Return the first feedback that a node of the branch gives rise to, if any (algorithm 1, Traverse)."""
        for one in branch:
            node = self.as_it_stands(one)
            if node.stance is None and not self.shares_verdict(node) and (feedback := self.interact(node)):
                return feedback
        return None

    def interact(self, node: Node) -> Feedback | None:
        """Retrieve and check; return feedback if the node needs completion or correction (algorithm 1, IR)."""
        wanted = self.settings.verification if node.answer and node.sure else self.settings.completion
        found, verdict = list[Passage](), Verdict("silent", node.query)
        for passages in self.places(node) if wanted else [self.find(node.query)]:
            found += passages
            node = self.tree.update(node, found=tuple(found), passage=found[0] if found else None)
            if wanted and (verdict := self.check(node, passages)).stance != "silent":
                break
        changes = {"stance": verdict.stance, "span": verdict.span}
        node = self.tree.update(node, passage=verdict.passage or node.passage, **changes)
        if not wanted or not (found or (self.revises and node.answer is None)):
            return None
        if node.answer is None:
            return Feedback(node, self.help_for(verdict), verdict)
        if self.revises and not node.sure and verdict.remembered and not agree(node.answer, verdict.remembered):
            return Feedback(node, "remember", verdict)
        if verdict.stance == "contradicts":
            count = independent_passages(verdict.answer or "", [node.query, self.tree.question], found)
            node = self.tree.update(node, single_source=count < 2)
            return Feedback(node, "correct", verdict) if count >= self.settings.min_independent_passages else None
        if verdict.stance == "supports":
            fuller = fuller_name(node.answer or "", verdict.answer or "")
            self.tree.update(node, answer=verdict.answer, support=verdict.support, fuller=fuller)
        return None

    def find(self, query: str) -> list[Passage]:
        """Return the k passages of a query."""
        found: list[Passage] = self.program.retrieve(query, k=self.settings.k)
        return found

    def places(self, node: Node) -> Iterator[list[Passage]]:
        """Yield the passages to check a node with; the next ones where these are silent."""
        yield self.find(node.query)

    def check(self, node: Node, found: list[Passage]) -> Verdict:
        """Return what the passages say of the node: the LM's verdict, asked for once, or a reader's (section 3.2)."""
        if self.program.reader is not None:
            return self.check_by_reader(node.query, node.answer, found)
        asked = (node.query, node.answer, *(passage.id for passage in found))
        if asked not in self.verdicts:
            self.verdicts[asked] = self.program.step_check(self.tree.question, node.query, node.answer, found)
        return self.verdicts[asked]

    def check_by_reader(self, query: str, proposed: str | None, passages: list[Passage]) -> Verdict:
        """Return the verdict of a reader on its best span, if that is sure enough.

        The long steps of a long answer are compared with the passage by ROUGE-L, and kept as they are; all others by
        their words. A few words have hardly any ROUGE-L with a passage: with the agreement "string", as in the paper,
        they are compared so nevertheless, and nearly all of them are corrected.
        """
        reader, settings = self.program.reader, self.settings
        spans = [(read(reader, query, passage), passage) for passage in passages]
        if not spans:
            return Verdict("silent", query)
        span, passage = max(spans, key=lambda pair: pair[0].score)
        theta = reader.threshold if settings.theta is None else settings.theta
        if not normalise(span.text) or span.score <= theta:
            return Verdict("silent", query, span=span)
        if proposed is None:
            return Verdict("supports", query, passage, span.text, span)
        answer, evidence, literally = proposed, None, settings.agreement == "string"
        if self.answer_style == "long" and (literally or len(proposed.split()) > _PHRASE):
            supports, evidence = agree_at_length(proposed, passage, settings.alpha), span.text
        elif literally:
            supports = normalise(span.text) in normalise(proposed)
        else:
            supports, answer = agree(proposed, span.text), more_exact(proposed, span.text, passage)
        if not supports:
            return Verdict("contradicts", query, passage, span.text, span)
        return Verdict("supports", query, passage, answer, span, evidence)

    def shares_verdict(self, node: Node) -> bool:
        """Return whether the node's query was processed before; the node then has the same outcome."""
        if not self.settings.skip_repeats or (node.answer is None and not self.revises):
            return False
        processed = [earlier for earlier in self.tree.nodes[: node.id] if earlier.stance is not None]
        index = self.repeated(node.query, [earlier.query for earlier in processed])
        if index is None:
            return False
        first = processed[index]
        helped = (one for one in reversed(processed) if one.replaces == first.id and one.query == first.query)
        settled = next(helped, first)
        if settled.answer is None and self.revises:
            return False
        shared = ["answer", "fuller", "source", "sure", "support", "stance"]
        shared += ["found", "passage", "span", "single_source"]
        self.tree.update(node, **{name: getattr(settled, name) for name in shared}, repeats=first.id)
        return True

    def repeated(self, query: str, earlier: list[str]) -> int | None:
        """Return the index of the earlier query that this one repeats, or None."""
        duplicates: DuplicateCheck = self.program.duplicates
        if isinstance(duplicates, ExactDuplicates):
            return duplicates(query, earlier)
        compare = partial(
            self.program.from_retriever,
            "a comparison of queries",
            partial(duplicates, query, earlier),
            remote=getattr(duplicates, "remote", False),
        )
        given = {"query": query, "earlier": earlier}
        index: int | None = step("comparison", "duplicates", given, int | None, compare)
        return index

    def as_it_stands(self, node: Node) -> Node:
        """Return the node as it is by now."""
        return self.tree.nodes[node.id]

    def query_of(self, parent: Node | None, step: PlannedStep) -> dict[str, str]:
        """Return the fields of a node for a step under the parent: its query, as it is looked up."""
        return {"query": step.query}

    def grow(
        self, parent: Node | None, steps: list[PlannedStep], round: int, replaces: int | None = None
    ) -> list[Node]:
        """Return the steps as new nodes under the parent (AddChild); the first may take the place of another node."""
        branch: list[Node] = []
        for planned in steps:
            parent = self.tree.grow(
                parent,
                round=round,
                answer=planned.recalled,
                sure=planned.sure,
                source="unsolved" if planned.recalled is None else "lm",
                replaces=None if branch else replaces,
                **self.query_of(parent, planned),
            )
            branch.append(parent)
        return branch

    def grow_successor(self, feedback: Feedback, answer: str | None, round: int, evidence: str | None = None) -> Node:
        """Return the node that takes the place of the one that got feedback, with its new answer, if there is one.

        No passage holds a long answer word for word; ``evidence`` is then what it holds of it.
        """
        old, verdict = feedback.node, feedback.verdict
        passage = verdict.passage or old.passage
        held = None if answer is None or feedback.kind == "remember" else evidence or answer
        support = sentence_with(held, passage, old.query)
        source = {"complete": "completed", "remember": "lm"}.get(
            feedback.kind, "corrected" if old.sure else "completed"
        )
        return self.tree.grow(
            self.tree.parent(old),
            round=round,
            query=old.query,
            template=old.template,
            answer=answer,
            sure=feedback.kind == "remember" and verdict.certain,
            source="unsolved" if answer is None else source,
            span=verdict.span,
            found=old.found,
            read_before=old.read_before,
            passage=passage,
            support=support,
            stance="supports" if support else "silent",
            single_source=old.single_source,
            replaces=old.id,
        )

    def nodes_after(self, node: Node, branch: list[Node]) -> list[Node]:
        """Return the nodes of the branch that stand after this one, as they are by now."""
        return [self.tree.nodes[one.id] for one in branch if one.id > node.id]

    def next_round(self) -> int:
        """Return the round of the nodes that grow next."""
        return self.tree.nodes[-1].round + 1

    def trace(self) -> dspy.Prediction:
        """Return the answer that the last path leads to, traced to its passages (section 3.2)."""
        return answered(self.tree, *self.program.tracing(**self.asked, path=self.tree.last_path()))
