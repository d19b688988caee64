"""Search-in-the-Chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field

from ..lm.failure import CallFailedError
from ..metrics import contains, exact_match, normalise, rouge_l
from ..retrieval import DuplicateCheck, Passage, Reader, Retriever, Span
from ..retrieval.duplicates import ExactDuplicates
from ..signatures import AnswerStyle, Step
from .modules import ChainOfQuery, CompletedChain, CorrectedChain, LMReader, Tracing
from .program import Program, answered
from .tree import Node, ReasoningTree


class SearChainSettings(BaseModel):
    """How SearChain reasons; the defaults are those of section 4.1.

    Attributes:
        max_rounds: r_max, the rounds of interaction between LM and retrieval.
        theta: the reader's score above which a passage may overrule the LM; None for the reader's own threshold
            (1.5 for a DPR reader).
        alpha: the ROUGE-L of answer and passage above which a long answer agrees with the passage.
        skip_repeats: whether a query that was processed before is skipped.
        retrieval: if off, the first chain answers alone (table 1, SearChain w/o IR).
        verification: if off, a passage never overrules the LM.
        completion: if off, what the LM does not know stays unsolved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_rounds: int = Field(default=5, ge=1)
    theta: float | None = None
    alpha: float = Field(default=0.35, ge=0, le=1)
    skip_repeats: bool = True
    retrieval: bool = True
    verification: bool = True
    completion: bool = True


@dataclass(frozen=True)
class Feedback:
    """What a passage says about one node: it corrects or completes the LM's answer, and ends a round."""

    node: Node
    kind: Literal["correct", "complete"]
    passage: Passage
    span: Span


class SearChain(Program):
    """Search-in-the-Chain (Xu et al., WWW 2024, arXiv 2304.14732, algorithm 1).

    The LM plans a whole chain of query; retrieval walks it node by node; the first node that needs help ends the
    round, and the LM continues the chain from that node, which opens a new branch of the tree.

    Where the paper leaves open, or contradicts itself:

    - The algorithm records the reader's span as the answer of a helped node, the text (3.2) the LM's new answer:
      the node keeps both, and the LM's is traced. The algorithm's loop runs r_max + 1 times, the text says r_max:
      ``max_rounds`` is the number of chains that the LM is asked for.
    - The successor of a helped node takes its place on the path; the old node stays in the tree, beside the path.
      If the LM has seen the passage and keeps its answer, the answer's source is still the LM.
    - An empty span is no evidence (the authors' code takes it for agreement).
    - A repeated query shares the passage that was found the first time; an unsolved query never counts as repeated
      (as in the authors' code).

    Args:
        retriever: finds the passage for each query; may be None if ``settings.retrieval`` is off.
        reader: reads the passage; None for the LM itself.
        settings: see `SearChainSettings`.
        duplicates: tells whether a query repeats an earlier one; None compares words.
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
        self.chain_of_query = ChainOfQuery()
        self.reader = reader or LMReader()
        self.corrected_chain, self.completed_chain = CorrectedChain(), CompletedChain()
        self.tracing = Tracing()
        self.duplicates = duplicates or ExactDuplicates()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Run algorithm 1, Main."""
        feedback: Feedback | None = None
        for round in range(1, self.settings.max_rounds + 1):
            chain = self.generate_chain(tree, feedback, answer_style)
            branch = add_branch(tree, chain, feedback, round)
            feedback = self.traverse(tree, branch, answer_style) if self.settings.retrieval else None
            if feedback is None:
                break
        path = tree.last_path()
        answer, content, references = self.tracing(question=tree.question, answer_style=answer_style, path=path)
        return answered(tree, answer, content, references)

    def generate_chain(self, tree: ReasoningTree, feedback: Feedback | None, answer_style: AnswerStyle) -> list[Step]:
        """Return the next chain (algorithm 1, ChainGenerate); after feedback, it begins with the query in question."""
        if feedback is None:
            chain: list[Step] = self.chain_of_query(question=tree.question, answer_style=answer_style)
        else:
            continued = self.corrected_chain if feedback.kind == "correct" else self.completed_chain
            chain = continued(
                question=tree.question,
                answer_style=answer_style,
                solved=tree.path_to(feedback.node)[:-1],
                node=feedback.node,
                passage=feedback.passage,
                span=feedback.span,
            )
        return chain

    def traverse(self, tree: ReasoningTree, branch: list[Node], answer_style: AnswerStyle) -> Feedback | None:
        """Return the first feedback about a node of the branch, if there is any (algorithm 1, Traverse)."""
        for node in branch:
            if node.replaces is not None or self.share_passage(tree, node):
                continue
            feedback = self.interact(tree, node, answer_style)
            if feedback is not None:
                return feedback
        return None

    def interact(self, tree: ReasoningTree, node: Node, answer_style: AnswerStyle) -> Feedback | None:
        """Retrieve and read; return feedback if the node needs completion or correction (algorithm 1, IR)."""
        passages = self.retrieve(node.query, k=1)
        if not passages:
            return None
        passage, span = passages[0], self.read(node.query, passages[0])
        node = tree.update(node, passage=passage, span=span)
        if node.answer is None:
            return Feedback(node, "complete", passage, span) if self.settings.completion else None
        if self.settings.verification and self.contradicted(node.answer, passage, span, answer_style):
            return Feedback(node, "correct", passage, span)
        return None

    def contradicted(self, answer: str, passage: Passage, span: Span, answer_style: AnswerStyle) -> bool:
        """Return whether the reader is sure enough, and the answer disagrees with what it read (section 3.2)."""
        theta = self.reader.threshold if self.settings.theta is None else self.settings.theta
        if span.score <= theta or not normalise(span.text):
            return False
        if answer_style == "long":
            return rouge_l(answer, [passage.text]) <= self.settings.alpha
        return not contains(answer, span.text)

    def share_passage(self, tree: ReasoningTree, node: Node) -> bool:
        """Return whether the node's query was processed before; if so, let the node share that passage."""
        if not self.settings.skip_repeats or node.answer is None:
            return False
        processed = [earlier for earlier in tree.nodes[: node.id] if earlier.passage is not None]
        index = self.duplicates(node.query, [earlier.query for earlier in processed]) if processed else None
        if index is None:
            return False
        earlier = processed[index]
        tree.update(node, passage=earlier.passage, span=earlier.span, repeats=earlier.id)
        return True

    def read(self, query: str, passage: Passage) -> Span:
        """Return the reader's span; if it fails, the question fails."""
        try:
            return self.reader(query=query, passage=passage)
        except CallFailedError:
            raise
        except Exception as error:
            raise CallFailedError("reader", f"{type(error).__name__}: {error}") from error


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


def add_branch(tree: ReasoningTree, chain: list[Step], feedback: Feedback | None, round: int) -> list[Node]:
    """Add the chain as a branch, at the root or in place of the node with feedback (algorithm 1, AddChild)."""
    parent, branch = None, list[Node]()
    if feedback is not None:
        parent = add_successor(tree, chain[0], feedback, round)
        branch, chain = [parent], chain[1:]
    for step in chain:
        source = "unsolved" if step.answer is None else "lm"
        parent = tree.grow(parent, round=round, query=step.query, answer=step.answer, source=source)
        branch.append(parent)
    return branch


def add_successor(tree: ReasoningTree, step: Step, feedback: Feedback, round: int) -> Node:
    """Add the node that takes the place of the one with feedback and has the LM's new answer; return it."""
    old = feedback.node
    changed = not exact_match(step.answer or "", [old.answer or ""])
    if step.answer is None:
        source = "unsolved"
    elif feedback.kind == "complete":
        source = "completed"
    else:
        source = "corrected" if changed else "lm"
    return tree.grow(
        None if old.parent is None else tree.nodes[old.parent],
        round=round,
        query=step.query,
        answer=step.answer,
        source=source,
        span=feedback.span,
        passage=feedback.passage,
        replaces=old.id,
    )
