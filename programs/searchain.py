"""Search-in-the-Chain."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import dspy
from pydantic import Field

from ..common.placeholders import without_placeholders
from ..lm.episode import step
from ..lm.failure import CallFailedError
from ..retrieval import DuplicateCheck, Passage, Reader, Retriever, Span
from ..retrieval.duplicates import ExactDuplicates
from ..signatures import AnswerStyle
from ..signatures.chain_of_query import PlannedStep
from .branches import Feedback, filled_in, grow_branch, grow_successor, refilled, regrow
from .modules.chain_of_query import (
    ChainOfQuery,
    CompletedChain,
    CorrectedChain,
    PublishedChainOfQuery,
    RevisedChain,
    Tracing,
)
from .modules.reader import LMReader
from .modules.verdict import Agreement, StepCheck, Verdict, agree_at_length, check_by_reader, sources_of
from .preset import MethodSettings
from .program import Program, answered
from .tree import Node, ReasoningTree


class SearChainSettings(MethodSettings):
    """How SearChain reasons; ``preset=paper`` is algorithm 1 with the values of section 4.1.

    Attributes:
        max_rounds: r_max, how many chains the LM is asked for.
        k: how many passages are looked at for each query (paper: 1).
        check: what compares passages and answers, where no trained reader is given: one call to the LM that sees the
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
        sources: how many passages that say it independently an answer needs to take the place of one that the LM
            recalled. One that repeats the question word for word, as planted ones do, is none (paper: 0, any will do).
        skip_repeats: whether a query that was processed before is passed over.
        retrieval: off, the first chain answers alone (table 1, SearChain w/o IR).
        verification: off, a passage never overrules an answer that the LM is sure of.
        completion: off, what the LM does not know stays unsolved, and what it only guesses stays a guess.
    """

    PAPER: ClassVar[dict[str, Any]] = {
        "k": 1,
        "check": "reader",
        "continuation": "ask",
        "agreement": "string",
        "sources": 0,
    }

    max_rounds: int = Field(default=5, ge=1)
    k: int = Field(default=3, ge=1)
    check: Literal["verdict", "reader"] = "verdict"
    continuation: Literal["fill", "ask"] = "fill"
    agreement: Agreement = "words"
    theta: float | None = None
    alpha: float = Field(default=0.35, ge=0, le=1)
    sources: int = Field(default=1, ge=0)
    skip_repeats: bool = True
    retrieval: bool = True
    verification: bool = True
    completion: bool = True


class SearChain(Program):
    """Search-in-the-Chain (Xu et al., WWW 2024, arXiv 2304.14732, algorithm 1): retrieval checks a chain of query.

    The LM plans a whole chain of query; retrieval walks it node by node; the first node that needs help ends the
    round, and the chain goes on from that node, which opens a new branch of the tree.

    By default we differ from the paper, at fewer calls of the LM (``preset=paper`` does not):

    - A node is checked with its recalled answer in view, in one call over k passages, instead of by a reader that sees
      one passage and no answer: variants of a name are then no contradiction.
    - Later queries refer to earlier answers by number. A corrected or completed answer is filled in, and the LM need
      not plan the rest anew.
    - If the LM plans no query at all, the question itself is looked up.

    With ``preset=paper`` the queries looked up, the feedback and the stops are those of the authors' client, given the
    same replies, except for three things:

    - If the LM leaves a query unsolved after feedback on it, the chain goes on after it. The client repeats its
      feedback until no round is left, although by algorithm 1 the query has been processed.
    - An answer that says that there is none ("Unknown") leaves its query unsolved; the client checks it.
    - An empty span is no evidence. For a short answer the client takes it for agreement, which comes to the same; a
      long answer is compared with the passage even then.

    Its prompts show the path and the plan so far; the client shows the whole conversation.

    With either preset:

    - A reference is cited only where the passage holds the step's answer, or agrees with a long one; the paper cites
      every passage of the path.
    - The algorithm records the reader's span as the answer of a helped node, the text (3.2) the LM's new answer:
      the node keeps both, and the LM's is traced. The algorithm's loop runs r_max + 1 times, the text says r_max:
      ``max_rounds`` is the number of chains that the LM is asked for. The feedback of the last one is not given; where
      the LM is not asked for each answer, the rest of that chain is still looked up.
    - A helped node's successor takes its place on the path; the old node stays in the tree, beside the path.
      Its source is the help that it got, also where the LM kept its answer (table 2).
    - A repeated query shares what was found the first time; an unsolved one is never taken for a repetition
      (as in the authors' client).

    Args:
        retriever: finds passages for each query; may be None where ``settings.retrieval`` is off.
        reader: a trained reader that checks answers in the place of the LM.
        settings: see `SearChainSettings`.
        duplicates: tells whether a query repeats an earlier one; by its words where None.
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
        super().__init__(retriever, settings or SearChainSettings())
        retrieves = self.settings.retrieval
        self.chain_of_query = ChainOfQuery() if self.fills_in else PublishedChainOfQuery(retrieval=retrieves)
        self.reader = reader or (LMReader() if retrieves and self.settings.check == "reader" else None)
        if retrieves and self.reader is None:
            self.step_check = StepCheck()
        if self.fills_in:
            self.revised_chain = RevisedChain()
        elif retrieves:
            self.corrected_chain, self.completed_chain = CorrectedChain(), CompletedChain()
        self.tracing = Tracing()
        self.duplicates = duplicates or ExactDuplicates()

    @property
    def fills_in(self) -> bool:
        """Return whether #n in a query stands for an earlier answer; if not, queries are looked up as written."""
        return self.settings.retrieval and self.settings.continuation == "fill"

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Return the traced answer (algorithm 1, Main)."""
        plan = self.chain_of_query(question=tree.question, answer_style=answer_style)
        if self.fills_in and not plan:  # else nothing would be looked up
            plan = [PlannedStep(query=without_placeholders(tree.question))]
        branch = grow_branch(tree, None, plan, round=1, fill=self.fills_in)
        chains = 1
        while self.settings.retrieval:
            feedback = self.traverse(tree, branch, answer_style)
            if feedback is None:
                break
            asks = self.settings.continuation == "ask" or feedback.kind == "revise"
            if asks and chains == self.settings.max_rounds:
                if self.fills_in:
                    continue  # what is planned is still looked up
                break
            chains += asks
            branch = self.continue_chain(tree, branch, feedback, answer_style)
        path = tree.last_path()
        answer, content, references = self.tracing(question=tree.question, answer_style=answer_style, path=path)
        return answered(tree, answer, content, references)

    def traverse(self, tree: ReasoningTree, branch: list[Node], answer_style: AnswerStyle) -> Feedback | None:
        """Return the first feedback that a node of the branch gives rise to, if any (algorithm 1, Traverse)."""
        for node in (refilled(tree, one) for one in branch):
            if node.stance is not None or self.share_verdict(tree, node):
                continue
            feedback = self.interact(tree, node, answer_style)
            if feedback is not None:
                return feedback
        return None

    def interact(self, tree: ReasoningTree, node: Node, answer_style: AnswerStyle) -> Feedback | None:
        """Retrieve and check; return feedback if the node needs completion or correction (algorithm 1, IR)."""
        found = self.retrieve(node.query, k=self.settings.k)
        node = tree.update(node, found=tuple(found), passage=found[0] if found else None)
        wanted = self.settings.verification if node.answer and node.sure else self.settings.completion
        plans_anew = self.fills_in and node.answer is None
        if not wanted or not (found or plans_anew):
            tree.update(node, stance="silent")
            return None
        verdict = self.check(node, found, answer_style)
        node = tree.update(node, stance=verdict.stance, span=verdict.span, passage=verdict.passage or node.passage)
        if node.answer is None:
            if verdict.answer or self.settings.continuation == "ask":
                return Feedback(node, "complete", verdict)
            return Feedback(node, "remember" if verdict.remembered else "revise", verdict)
        if verdict.stance == "contradicts":
            sources = sources_of(verdict.answer or "", [node.query, tree.question], found)
            node = tree.update(node, single_source=sources < 2)
            return Feedback(node, "correct", verdict) if sources >= self.settings.sources else None
        if verdict.stance == "supports":
            tree.update(node, answer=verdict.answer, support=verdict.support)
        return None

    def check(self, node: Node, found: list[Passage], answer_style: AnswerStyle) -> Verdict:
        """Return what the passages say of the node: the LM's verdict, or a reader's (section 3.2)."""
        if self.reader is None:
            verdict: Verdict = self.step_check(query=node.query, proposed=node.answer, passages=found)
            return verdict
        theta = self.reader.threshold if self.settings.theta is None else self.settings.theta
        try:
            return check_by_reader(
                self.reader,
                node.query,
                node.answer,
                found,
                theta=theta,
                alpha=self.settings.alpha,
                agreement=self.settings.agreement,
                answer_style=answer_style,
            )
        except CallFailedError:
            raise
        except Exception as error:
            raise CallFailedError("reader", f"{type(error).__name__}: {error}") from error

    def share_verdict(self, tree: ReasoningTree, node: Node) -> bool:
        """Return whether the node's query was processed before; the node then shares what came of it.

        Where no answer came of it, what the LM recalls by now is checked, except in the paper's way.
        """
        if not self.settings.skip_repeats or node.answer is None:
            return False
        processed = [earlier for earlier in tree.nodes[: node.id] if earlier.stance is not None]
        index = self.repeated(node.query, [earlier.query for earlier in processed])
        if index is None:
            return False
        first = processed[index]
        helped = (one for one in reversed(processed) if one.replaces == first.id and one.query == first.query)
        settled = next(helped, first)
        if settled.answer is None and self.fills_in:
            return False
        shared = ("answer", "source", "sure", "found", "passage", "span", "support", "stance", "single_source")
        tree.update(node, **{name: getattr(settled, name) for name in shared}, repeats=first.id)
        return True

    def repeated(self, query: str, earlier: list[str]) -> int | None:
        """Return the index of the earlier query that this one repeats, or None."""
        if isinstance(self.duplicates, ExactDuplicates):
            return self.duplicates(query, earlier)

        def compare() -> int | None:
            remote = getattr(self.duplicates, "remote", False)
            return self.from_retriever(
                "a comparison of queries", lambda: self.duplicates(query, earlier), remote=remote
            )

        return step("comparison", "duplicates", {"query": query, "earlier": earlier}, int | None, compare)

    def continue_chain(
        self, tree: ReasoningTree, branch: list[Node], feedback: Feedback, answer_style: AnswerStyle
    ) -> list[Node]:
        """Return the branch that goes on from the node after feedback (algorithm 1, ChainGenerate)."""
        node, round = feedback.node, tree.nodes[-1].round + 1
        later = [tree.nodes[one.id] for one in branch if one.id > node.id]
        if self.settings.continuation == "ask":
            steps = self.ask_for_rest(tree, feedback, later, answer_style)
            answer = steps[0].recalled
            evidence = self.evidence_of(answer, feedback) if answer and answer_style == "long" else None
            helped = grow_successor(tree, feedback, answer, round, evidence)
            return [helped, *grow_branch(tree, helped, steps[1:], round, fill=False)]
        if feedback.kind == "revise":
            return self.revise(tree, branch, feedback, later, answer_style)
        helped = grow_successor(tree, feedback, feedback.verdict.answer or feedback.verdict.remembered, round)
        return [helped, *regrow(tree, helped, later, instead_of=node.answer, round=round)]

    def ask_for_rest(
        self, tree: ReasoningTree, feedback: Feedback, later: list[Node], answer_style: AnswerStyle
    ) -> list[PlannedStep]:
        """Ask the LM for the node's answer and the rest of the chain, as the paper does (section 3.2)."""
        verdict, node = feedback.verdict, feedback.node
        go_on = self.corrected_chain if feedback.kind == "correct" else self.completed_chain
        steps: list[PlannedStep] = go_on(
            question=tree.question,
            answer_style=answer_style,
            solved=tree.path_to(node)[:-1],
            node=node,
            later=later,
            passage=node.passage,
            span=verdict.span or Span(text="", score=0.0),
        )
        return steps

    def evidence_of(self, answer: str, feedback: Feedback) -> str | None:
        """Return what was read in the passage, if the LM's long answer agrees with that passage (section 3.2)."""
        passage, span = feedback.node.passage, feedback.verdict.span
        agrees = passage is not None and agree_at_length(answer, passage, self.settings.alpha)
        return span.text if span and agrees else None

    def revise(
        self,
        tree: ReasoningTree,
        branch: list[Node],
        feedback: Feedback,
        later: list[Node],
        answer_style: AnswerStyle,
    ) -> list[Node]:
        """Ask for another way where nothing was found; return the old branch where the LM has none."""
        node, parent = feedback.node, tree.parent(feedback.node)
        tried = list(dict.fromkeys(one.query for one in tree.nodes if one.stance is not None))
        rest = self.revised_chain(
            question=tree.question,
            answer_style=answer_style,
            solved=tree.path_to(node)[:-1],
            node=node,
            later=later,
            tried=tried,
        )
        if not rest or filled_in(tree, parent, rest[0].query).casefold() in map(str.casefold, tried):
            return branch
        return grow_branch(tree, parent, rest, tree.nodes[-1].round + 1, replaces=node.id)


class SearChainWithoutRetrievalSettings(SearChainSettings):
    """SearChain's settings; there is one round, and nothing to verify or complete with.

    Attributes:
        retrieval: off.
    """

    retrieval: Literal[False] = False


class SearChainWithoutRetrieval(SearChain):
    """SearChain w/o IR (Xu et al., WWW 2024, table 1): the first chain of query answers alone.

    Args:
        settings: see `SearChainWithoutRetrievalSettings`.
    """

    name = "searchain-without-retrieval"
    searches = False
    Settings = SearChainWithoutRetrievalSettings  # type: ignore[assignment]  # narrower than SearChain's

    def __init__(self, retriever: Retriever | None = None, settings: SearChainWithoutRetrievalSettings | None = None):
        super().__init__(settings=settings or SearChainWithoutRetrievalSettings())
