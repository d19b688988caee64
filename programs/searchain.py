"""Search-in-the-Chain.

The methods stand in the order of algorithm 1. Its Main is `reason` with `told`, ChainGenerate `continue_chain`
(`revise` by default), AddChild `add_branch`, DuplicateQueryDetection `shares_outcome`, IR `interact`, its Retrieval
and Reader `look_up`.

Given the same replies, the paper's way (``preset=paper``) makes the searches of the authors' client, gives the same
feedback and stops at the same time, but:

- If the LM leaves a query unsolved after feedback on it, the chain goes on after it. The client repeats its feedback
  until no round is left, although by algorithm 1 the query has been processed.
- An answer that says that there is none ("Unknown") leaves its query unsolved; the client checks it.
- An empty span is no evidence. For a short answer the client takes it for agreement, with the same result; a long
  answer is compared with the passage even then.
- A span is compared with the answer. The client looks for it in the whole line "[Answer 2]: …", so "2" is there.
- A query without an answer is unsolved. The client gives it the next answer in the reply.
- A mark such as [5] that the LM copied from a passage is taken out of the final content; the client leaves it.

Its prompts show the path and the plan so far; the client shows the whole conversation. The algorithm's loop runs
r_max + 1 times, the text says r_max: ``max_rounds`` is the number of chains that the LM is asked for, and the feedback
of the last one is not given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

import dspy
from pydantic import Field

from ..metrics import agree
from ..retrieval import DuplicateCheck, Passage, Reader, Retriever, Span
from ..retrieval.duplicates import ExactDuplicates
from ..signatures import AnswerStyle
from .chain_branches import (
    Feedback,
    Help,
    add_branch,
    add_filled_in,
    add_forks,
    add_successor,
    filled_in,
    next_round,
    nodes_after,
    refilled,
    told_steps,
)
from .chain_lookups import lookups
from .modules.answers import CitedAnswer
from .modules.chain_of_query import (
    ChainOfQuery,
    Continuation,
    PublishedChainOfQuery,
    RevisedChain,
    Tracing,
    guessed,
)
from .modules.verdict import (
    StepCheck,
    Verdict,
    agree_at_length,
    fuller_name,
    independent_passages,
)
from .program import MethodSettings, Program, answered
from .references import distinct, without_copies
from .tree import Node, ReasoningTree

_OUTCOME = ["answer", "fuller", "source", "sure", "support", "stance", "found", "passage", "span", "single_source"]

Check = Callable[[str, str | None, list[Passage]], Verdict]
"""A function that checks a query, and its recalled answer if any, against passages."""


class SearChainSettings(MethodSettings):
    """How SearChain reasons; ``preset=paper`` is algorithm 1 with the values of section 4.1.

    Attributes:
        max_rounds: r_max, how many chains the LM is asked for.
        k: how many passages are looked at for each query (paper: 1); of style list twice as many, except where
            continuation=ask.
        check: what compares passages and answers, if no trained reader is given: one call to the LM that sees the
            recalled answer (verdict), or the LM as a reader that does not see it (reader; the paper's, with a DPR
            reader).
        continuation: how the chain goes on after a correction or completion. "fill": what was found becomes the
            node's answer and is filled into the later queries, and the LM is asked for a new rest only where nothing
            was found. "ask": the LM is asked for the node's answer and a new rest each time (paper).
        agreement: when a short answer agrees with the reader's span. "words": one stands in the other, as whole words.
            "string": the span stands in the answer, as characters (paper); an answer that agrees is kept as it is.
        theta: the reader's score above which a passage may overrule the LM; None takes the reader's own
            threshold (1.5 for a DPR reader).
        alpha: the ROUGE-L of answer and passage above which a long answer agrees with the passage.
        min_independent_passages: how many independent passages must agree before they overrule an answer that the LM
            recalled. A passage that repeats the question word for word, as planted ones do, does not count (paper: 0,
            any passage overrules it).
        max_branches: how many branches a chain has at most where a passage gives several answers to a step, and later
            steps need them; further answers are named, and not followed. With continuation=ask there is one branch.
        skip_repeats: whether a query that was processed before is skipped.
        retrieval: off, the first chain answers alone (table 1, SearChain w/o IR).
        verification: off, a passage never overrules an answer that the LM is sure of.
        completion: off, what the LM does not know stays unsolved, and what it only guesses stays a guess.
    """

    PAPER: ClassVar[dict[str, Any]] = {
        "k": 1,
        "check": "reader",
        "continuation": "ask",
        "agreement": "string",
        "min_independent_passages": 0,
    }
    IDLE: ClassVar[dict[str, tuple[str, Any]]] = {
        **dict.fromkeys(("agreement", "theta", "alpha"), ("check", "verdict")),
        "max_branches": ("continuation", "ask"),
    }

    max_rounds: int = Field(default=5, ge=1)
    k: int = Field(default=3, ge=1)
    check: Literal["verdict", "reader"] = "verdict"
    continuation: Literal["fill", "ask"] = "fill"
    agreement: Literal["words", "string"] = "words"
    theta: float | None = None
    alpha: float = Field(default=0.35, ge=0, le=1)
    min_independent_passages: int = Field(default=1, ge=0)
    max_branches: int = Field(default=6, ge=1)
    skip_repeats: bool = True
    retrieval: bool = True
    verification: bool = True
    completion: bool = True

    @property
    def fills_in(self) -> bool:
        """Return whether what is found is filled into the plan."""
        return self.retrieval and self.continuation == "fill"


class SearChain(Program):
    """Search-in-the-Chain (Xu et al., WWW 2024, arXiv 2304.14732v7, algorithm 1): retrieval checks a chain of queries.

    The LM plans a whole chain of queries; retrieval walks it node by node; the first node that needs help ends the
    round, and the chain goes on from that node, which opens a new branch of the tree.

    With ``preset=paper``, the LM then answers the query again and plans the rest anew. By default, at fewer calls:

    - The plan's later queries refer to earlier answers by number. A corrected or completed answer becomes the node's
      and is filled into them. The LM plans anew only where nothing was found. When ``max_rounds`` chains were asked
      for, what is planned is still looked up.
    - One call checks a node over k passages with its recalled answer in view, where the paper has a reader that sees
      one passage and no answer: variants of a name are then no contradiction.
    - If the passages do not confirm or contradict a guess, it is searched for once more, together with the query.
    - Where the passages give several answers to a step, each has its node, and the chain goes on from each of them.
      Where several passages give one each, the next ones are looked at, too.

    With either:

    - A reference is cited only where the passage holds the step's answer, or agrees with a long one; the paper cites
      every passage of the path.
    - The algorithm records the reader's span as the answer of a helped node, the text (3.2) the LM's new answer:
      the node keeps both, and the LM's is traced.
    - A helped node's successor takes its place on the path; the old node stays in the tree, beside the path.
      Its source is the help that it got, also where the LM kept its answer (table 2).
    - A repeated query shares what was found the first time; an unsolved one is never taken for a repetition
      (as in the authors' client).

    Args:
        retriever: finds passages for each query; may be None where ``settings.retrieval`` is off.
        reader: a trained reader that checks answers in the place of the LM.
        settings: see `SearChainSettings`.
        duplicates: tells whether a query repeats an earlier one; queries are compared by their words where None.
    """

    name: ClassVar[str] = "searchain"
    Settings = SearChainSettings
    settings: SearChainSettings

    def __init__(
        self,
        retriever: Retriever | None = None,
        reader: Reader | None = None,
        settings: SearChainSettings | None = None,
        duplicates: DuplicateCheck | None = None,
    ):
        super().__init__(retriever, settings)
        retrieves, fills_in = self.settings.retrieval, self.settings.fills_in
        self.chain_of_query = ChainOfQuery() if fills_in else PublishedChainOfQuery(retrieval=retrieves)
        if not reader and retrieves and self.settings.check == "reader":
            from .modules.reader import LMReader

            reader = LMReader()
        self.reader = reader
        if retrieves and self.reader is None:
            self.step_check = StepCheck()
        if fills_in:
            self.revised_chain = RevisedChain()
        elif retrieves:
            self.corrected_chain, self.completed_chain = Continuation(corrects=True), Continuation(corrects=False)
        self.tracing = Tracing(branches=fills_in)
        self.duplicates = duplicates or ExactDuplicates()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Plan a chain, check it node by node, go on from each node that needs help, and trace (algorithm 1, Main)."""
        settings, check = self.settings, self.checked_by(tree.question, answer_style)
        k = 2 * settings.k if settings.fills_in and answer_style == "list" else settings.k
        generate = self.revise if settings.fills_in else self.continue_chain
        plan = self.chain_of_query(question=tree.question, answer_style=answer_style)
        branches, ends, chains = [add_branch(tree, None, plan, fills_in=settings.fills_in)], list[Node](), 1
        for branch in branches:  # the list grows in the loop
            while settings.retrieval and (feedback := self.traverse(tree, branch, check, k)):
                before = branch
                if settings.fills_in and feedback.help != "revise":
                    branch = before if feedback.help == "fork" else add_filled_in(tree, branch, feedback)
                elif chains < settings.max_rounds:
                    branch, chains = generate(tree, branch, feedback, answer_style), chains + 1
                elif not settings.fills_in:  # otherwise the rest of the plan is still looked up
                    break
                if settings.fills_in:
                    room = settings.max_branches - sum(len(other) > 1 for other in branches)
                    branches += add_forks(tree, before, feedback, room)
            ends += [tree.nodes[node.id] for node in branch[-1:]]
        return answered(tree, *self.told(tree, ends, answer_style))

    def told(self, tree: ReasoningTree, ends: list[Node], answer_style: AnswerStyle) -> CitedAnswer:
        """Return the answer to which the paths to these nodes lead; the text says which answers were not followed."""
        if ends != tree.nodes[-1:] or any(node.ended for node in tree.nodes):
            ends = [tree.update(end, ended="accepted") for end in ends]
        path = told_steps(tree, ends)
        guesses = {node.id for node in path if not (node.sure or node.support)}
        guesses.update(*(guessed(tree.path_to(end)) for end in ends))
        told: CitedAnswer = self.tracing(question=tree.question, answer_style=answer_style, path=path, guesses=guesses)
        left = "; ".join(node.answer or "" for node in tree.nodes if node.ended == "not followed")
        beyond = f" Also found, but not followed (max_branches: {self.settings.max_branches}): {left}." * bool(left)
        sure = told.sure or any(end.id not in guesses for end in ends)
        return told._replace(content=told.content + beyond, sure=sure)

    def continue_chain(
        self, tree: ReasoningTree, branch: list[Node], feedback: Feedback, answer_style: AnswerStyle
    ) -> list[Node]:
        """Return the branch of the LM's next chain, from the node with the feedback on (algorithm 1, ChainGenerate)."""
        node, verdict, round = feedback.node, feedback.verdict, next_round(tree)
        continuation = self.corrected_chain if feedback.help == "correct" else self.completed_chain
        first, *steps = continuation(
            question=tree.question,
            answer_style=answer_style,
            solved=tree.path_to(node)[:-1],
            node=node,
            later=nodes_after(tree, node, branch),
            passage=node.passage,
            span=verdict.span or Span(text="", score=0.0),
        )
        evidence = None
        if answer_style == "long" and first.recalled and node.passage and verdict.span:
            agrees = agree_at_length(first.recalled, node.passage, self.settings.alpha)
            evidence = verdict.span.text if agrees else None
        helped = add_successor(tree, feedback, first.recalled, round, evidence)
        return [helped, *add_branch(tree, helped, steps, fills_in=False, round=round)]

    def revise(
        self, tree: ReasoningTree, branch: list[Node], feedback: Feedback, answer_style: AnswerStyle
    ) -> list[Node]:
        """Return the branch of the LM's new plan from the node on; if it has none, the branch ends with the node.

        A new plan may repeat a step that is sure: that step keeps its answer.
        """
        node, parent = feedback.node, tree.parent(feedback.node)
        solved = tree.path_to(parent)
        tried = list(dict.fromkeys(earlier.query for earlier in tree.nodes if earlier.stance is not None))
        steps = self.revised_chain(
            question=tree.question,
            answer_style=answer_style,
            solved=solved,
            node=node,
            later=nodes_after(tree, node, branch),
            tried=tried,
        )
        guesses = guessed(solved)
        sure = {step.query for step in solved if step.answer and step.id not in guesses}
        failed = {query.casefold() for query in tried if query not in sure}
        if not steps or filled_in(tree, parent, steps[0].query).casefold() in failed:
            return [tree.nodes[node.id]]
        return add_branch(tree, parent, steps, fills_in=True, round=next_round(tree), replaces=node.id)

    def traverse(self, tree: ReasoningTree, branch: list[Node], check: Check, k: int) -> Feedback | None:
        """Return the feedback on the first node of the branch that needs help, if any (algorithm 1, Traverse)."""
        for planned in branch:
            node = refilled(tree, planned)
            if node.stance is not None or self.shares_outcome(tree, node):
                continue
            if feedback := self.interact(tree, node, check, k):
                return feedback
        return None

    def shares_outcome(self, tree: ReasoningTree, node: Node) -> bool:
        """Return whether an earlier node has the same query (DuplicateQueryDetection); if so, share its outcome."""
        fills_in = self.settings.fills_in
        if not self.settings.skip_repeats or (node.answer is None and not fills_in):
            return False
        processed = [other for other in tree.nodes if other.stance is not None]
        index = self.repeated(node.query, [earlier.query for earlier in processed])
        if index is None:
            return False
        first = processed[index]
        helped = (later for later in processed if later.replaces == first.id and later.query == first.query)
        settled = next(helped, first)
        if settled.answer is None and fills_in:
            return False
        tree.update(node, **{name: getattr(settled, name) for name in _OUTCOME}, repeats=first.id)
        return True

    def repeated(self, query: str, earlier: list[str]) -> int | None:
        """Return the index of the earlier query that this one repeats, or None."""
        duplicates: DuplicateCheck = self.duplicates
        if isinstance(duplicates, ExactDuplicates):
            return duplicates(query, earlier)
        inputs, compare = {"query": query, "earlier": earlier}, partial(duplicates, query, earlier)
        remote = getattr(duplicates, "remote", False)
        index: int | None = self.compare("duplicates", inputs, int | None, compare, remote=remote)
        return index

    def interact(self, tree: ReasoningTree, node: Node, check: Check, k: int) -> Feedback | None:
        """Return the feedback if the node needs completion or correction; None if it passes (algorithm 1, IR)."""
        settings = self.settings
        is_checked = settings.verification if node.answer and node.sure else settings.completion
        node, verdict = self.look_up(tree, node, check if is_checked else None, k)
        if not is_checked or not (node.found or (settings.fills_in and node.answer is None)):
            return None
        if node.answer is None:
            return Feedback(node, self.help_for(verdict), verdict)
        if settings.fills_in and not node.sure and verdict.remembered and not agree(node.answer, verdict.remembered):
            return Feedback(node, "remember", verdict)
        if verdict.stance == "contradicts":
            count = independent_passages(verdict.answer or "", [node.query, tree.question], node.found)
            node = tree.update(node, single_source=count < 2)
            return Feedback(node, "correct", verdict) if count >= settings.min_independent_passages else None
        if verdict.stance == "supports":
            fuller = fuller_name(node.answer or "", verdict.answer or "")
            node = tree.update(node, answer=verdict.answer, support=verdict.support, fuller=fuller)
            return Feedback(node, "fork", verdict) if verdict.others and settings.fills_in else None
        return None

    def help_for(self, verdict: Verdict) -> Help:
        """Return the help for a node without an answer; in the paper always a completion (section 3.2)."""
        if not self.settings.fills_in or verdict.answer:
            return "complete"
        return "remember" if verdict.remembered else "revise"

    def look_up(self, tree: ReasoningTree, node: Node, check: Check | None, k: int) -> tuple[Node, Verdict]:
        """Retrieve k passages for a node; return it and what they say of it (algorithm 1, Retrieval and Reader)."""
        passages, verdict = list[Passage](), Verdict("silent", node.query)
        goes_on, find = check is not None and self.settings.fills_in, partial(self.find, k=k)
        for found in lookups(tree, node, find) if goes_on else [find(node.query)]:
            passages += found
            node = tree.update(node, found=tuple(passages), passage=passages[0] if passages else None)
            if check and (verdict := check(node.query, node.answer, found)).stance != "silent":
                break
        last = verdict
        while check and last.is_of_several_passages:  # then more passages may give one
            found = distinct([passages, self.find(node.query, len(passages) + k)])[len(passages) :]
            passages, last = passages + found, check(node.query, None, found)
            verdict = verdict.united(last)
            node = tree.update(node, found=tuple(passages))
        passage = verdict.passage or node.passage
        return tree.update(node, passage=passage, stance=verdict.stance, span=verdict.span), verdict

    def find(self, query: str, k: int) -> list[Passage]:
        """Return k passages of a query; by default, copies are replaced by the next best ones."""
        passages = self.retrieve(query, k)
        if not self.settings.fills_in or without_copies(passages) == passages:
            return passages
        return without_copies(self.retrieve(query, 2 * k))[:k]

    def checked_by(self, question: str, answer_style: AnswerStyle) -> Check:
        """Return the check of answers: by the reader, or by the LM, asked once for each verdict (section 3.2)."""
        if self.reader is not None:
            from .modules.reader import SpanCheck

            literally = self.settings.agreement == "string"
            return SpanCheck(self.reader, answer_style, self.settings.theta, self.settings.alpha, literally)
        verdicts: dict[tuple[str | None, ...], Verdict] = {}

        def check(query: str, answer: str | None, passages: list[Passage]) -> Verdict:
            key = (query, answer, *(passage.id for passage in passages))
            if key not in verdicts:
                verdicts[key] = self.step_check(question, query, answer, passages)
            return verdicts[key]

        return check


class SearChainWithoutRetrievalSettings(SearChainSettings):
    """SearChain's settings; there is one round, and nothing to verify or complete with.

    Attributes:
        retrieval: off.
    """

    retrieval: Literal[False] = False


class SearChainWithoutRetrieval(SearChain):
    """SearChain w/o IR (Xu et al., WWW 2024, table 1): the first chain of query answers alone."""

    name = "searchain-without-retrieval"
    searches = False
    Settings = SearChainWithoutRetrievalSettings  # type: ignore[assignment]  # narrower than SearChain's

    def __init__(self, retriever: Retriever | None = None, settings: SearChainWithoutRetrievalSettings | None = None):
        super().__init__(settings=settings)
