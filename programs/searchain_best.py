"""SearChain as we know it to be better: what was found is filled into the plan."""

from __future__ import annotations

import re
from collections.abc import Iterator

import dspy

from ..common.placeholders import without_placeholders
from ..common.text import words_in
from ..metrics import stands_in
from ..retrieval import Passage
from ..signatures.chain_of_query import PlannedStep
from .chain_search import ChainSearch, Feedback, Help
from .filled_queries import filled_in, replaced
from .modules.chain_of_query import guessed
from .modules.verdict import Verdict
from .references import distinct, without_copies
from .tree import Node

_ASKING = re.compile(
    r"wh(?:o|om|ose|at|ich|en|ere)|how|many|much|name|is|are|was|were|do|does|did|an|the|of|in|on|at|to|for|from|by|with"
    r"|and|[a-z]"
)  # what says nothing of its subject


class FilledSearChain(ChainSearch):
    """The plan's later queries refer to earlier answers by number; the LM plans anew only where nothing was found.

    A corrected or completed answer becomes the node's and is filled into the later queries. If the LM plans no query
    at all, the question itself is looked up. When ``max_rounds`` chains were asked for, what is planned is still
    looked up. Copies of a passage do not take the places of others. A guess on which the passages are silent is
    searched for once more, with the query, before it stands; what is found is read only if it names the guess.
    """

    revises = True

    def reason(self) -> dspy.Prediction:
        """Plan a chain, retrieve along it, fill in what is found, and trace the last path."""
        plan = self.program.chain_of_query(**self.asked)
        plan = plan or [PlannedStep(query=without_placeholders(self.tree.question))]
        branch, chains = self.grow(None, plan, round=1), 1
        while feedback := self.traverse(branch):
            if feedback.kind != "revise":
                branch = self.fill_in(branch, feedback)
            elif chains < self.settings.max_rounds:
                branch, chains = self.revise(branch, feedback), chains + 1
        return self.trace()

    def find(self, query: str) -> list[Passage]:
        """Return k passages of a query, of copies the best one; the next best take the places of the others."""
        found, k = super().find(query), self.settings.k
        return found if without_copies(found) == found else without_copies(self.program.retrieve(query, 2 * k))[:k]

    def places(self, node: Node) -> Iterator[list[Passage]]:
        """Yield what was read before and is about the query, what it finds, and what it finds with a guess, if named.

        Only the first are read before anything is searched for: where they answer, no search is made.
        """
        if known := self.read_before(node.query):
            self.tree.update(node, read_before=True)
            yield known
            self.tree.update(node, read_before=False)
        found = distinct([known, self.find(node.query)])
        if found[len(known) :] or not known:
            yield found[len(known) :]
        if node.answer is not None and not node.sure:
            further = distinct([found, self.find(f"{node.query} {node.answer}")])[len(found) :]
            if naming := [passage for passage in further if stands_in(passage.shown(), node.answer)]:
                yield naming

    def read_before(self, query: str) -> list[Passage]:
        """Return what earlier queries found whose title the query names, and whose text has its other words."""
        asked = _stems(query)
        return [
            passage
            for passage in self.tree.passages()
            if passage.title and stands_in(query, passage.title.partition(" (")[0]) and asked <= _stems(passage.shown())
        ]

    def help_for(self, verdict: Verdict) -> Help:
        """Complete with what was found, else with what the LM remembers; else plan the rest anew."""
        return "complete" if verdict.answer else "remember" if verdict.remembered else "revise"

    def query_of(self, parent: Node | None, step: PlannedStep) -> dict[str, str]:
        """Return the query with the answers of the path filled in, and as it was planned."""
        return {"query": filled_in(self.tree, parent, step.query), "template": step.query}

    def as_it_stands(self, node: Node) -> Node:
        """Return the node with its query as it reads by now: a verdict may have settled an earlier answer."""
        query = filled_in(self.tree, self.tree.parent(node), node.template) if node.template else node.query
        return self.tree.nodes[node.id] if query == node.query else self.tree.update(node, query=query)

    def fill_in(self, branch: list[Node], feedback: Feedback) -> list[Node]:
        """Return the node with what was found or remembered, and the later ones with it in their queries.

        What was recalled for a query that has changed is dropped: it was the answer to another one. Where a later query
        was written out with it, its number stands there, until its query is answered.
        """
        node, verdict, round = feedback.node, feedback.verdict, self.next_round()
        later = self.nodes_after(node, branch)
        helped = last = self.grow_successor(feedback, verdict.answer or verdict.remembered, round)
        regrown, changed = list[Node](), [(node.answer, helped.answer)]
        for old in later:
            template = old.template or old.query
            for before, after in changed:
                template = replaced(self.tree, template, before, after)
            (last,) = self.grow(last, [PlannedStep(query=template, recalled=old.answer, sure=old.sure)], round)
            regrown.append(last)
            if last.query != old.query:
                changed.append((old.answer, f"#{len(self.tree.path_to(last))}"))
        for old, new in zip(later, regrown, strict=True):
            if new.query != old.query:
                self.tree.update(new, answer=None, sure=False, source="unsolved")
        return [helped, *(self.tree.nodes[one.id] for one in regrown)]

    def revise(self, branch: list[Node], feedback: Feedback) -> list[Node]:
        """Ask for another way where nothing was found; return the old branch where the LM has none.

        A new plan may repeat a step that is sure: its answer stands.
        """
        node, parent = feedback.node, self.tree.parent(feedback.node)
        solved = self.tree.path_to(parent)
        sure = {one.query for one in solved if one.answer and one.id not in guessed(solved)}
        tried = list(dict.fromkeys(one.query for one in self.tree.nodes if one.stance is not None))
        rest = self.program.revised_chain(
            **self.asked,
            solved=solved,
            node=node,
            later=self.nodes_after(node, branch),
            tried=tried,
        )
        if not rest or filled_in(self.tree, parent, rest[0].query).casefold() in {*map(str.casefold, {*tried} - sure)}:
            return branch
        return self.grow(parent, rest, self.next_round(), replaces=node.id)


def _stems(text: str) -> set[str]:
    """Return the words of a text that say something, without the s of a plural."""
    return {word.removesuffix("s") for word in words_in(text) if not _ASKING.fullmatch(word)}
