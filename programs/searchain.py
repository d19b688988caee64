"""Search-in-the-Chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field

from ..lm.failure import CallFailedError
from ..metrics import contains, normalise, rouge_l
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
        theta: the reader's score above which a passage may overrule the LM; None takes the reader's own
            threshold (1.5 for a DPR reader).
        alpha: the ROUGE-L of answer and passage above which a long answer agrees with the passage.
        skip_repeats: whether a query that was processed before is passed over.
        retrieval: off, the first chain answers alone (table 1, SearChain w/o IR).
        verification: off, a passage never overrules the LM.
        completion: off, what the LM does not know stays unsolved.
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
    """What retrieval has to say to the LM about one node; it ends a round."""

    node: Node
    kind: Literal["correct", "complete"]
    passage: Passage
    span: Span


class SearChain(Program):
    """Search-in-the-Chain (Xu et al., WWW 2024, arXiv 2304.14732, algorithm 1).

    The LM plans a whole chain of query; retrieval walks it node by node; the first node that needs help ends the
    round, and the LM goes on from that node, which opens a new branch of the tree.

    Where the paper leaves open, or is at odds with itself:

    - The algorithm records the reader's span as the answer of a helped node, the text (3.2) the LM's new answer:
      the node keeps both, and the LM's is traced. The algorithm's loop runs r_max + 1 times, the text says r_max:
      ``max_rounds`` is the number of chains that the LM is asked for.
    - A helped node's successor takes its place on the path; the old node stays in the tree, beside the path.
      An answer that the LM keeps, having seen the passage, stays its own knowledge.
    - An empty span is no evidence (the authors' code takes it for agreement).
    - A repeated query shares the passage that was found the first time; an unsolved one is never taken for a
      repetition (as in the authors' code).

    Args:
        retriever: finds the passage for each query; may be None where ``settings.retrieval`` is off.
        reader: reads the passage; the LM itself where None.
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
        self.chain_of_query = ChainOfQuery()
        self.reader = reader or LMReader()
        self.corrected_chain, self.completed_chain = CorrectedChain(), CompletedChain()
        self.tracing = Tracing()
        self.duplicates = duplicates or ExactDuplicates()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Algorithm 1, Main."""
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
        """Algorithm 1, ChainGenerate. After feedback, the first step is the query that it was about."""
        if feedback is None:
            chain: list[Step] = self.chain_of_query(question=tree.question, answer_style=answer_style)
        else:
            go_on = self.corrected_chain if feedback.kind == "correct" else self.completed_chain
            chain = go_on(
                question=tree.question,
                answer_style=answer_style,
                solved=tree.path_to(feedback.node)[:-1],
                node=feedback.node,
                passage=feedback.passage,
                span=feedback.span,
            )
        return chain

    def traverse(self, tree: ReasoningTree, branch: list[Node], answer_style: AnswerStyle) -> Feedback | None:
        """Algorithm 1, Traverse: the first feedback that a node of the branch gives rise to, if any."""
        for node in branch:
            if node.replaces is not None or self.share_passage(tree, node):
                continue
            feedback = self.interact(tree, node, answer_style)
            if feedback is not None:
                return feedback
        return None

    def interact(self, tree: ReasoningTree, node: Node, answer_style: AnswerStyle) -> Feedback | None:
        """Algorithm 1, IR: retrieve and read; feedback where the node needs completion or correction."""
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
        """Whether the reader is sure enough, and the answer does not agree with what it read (section 3.2)."""
        theta = self.reader.threshold if self.settings.theta is None else self.settings.theta
        if not normalise(span.text) or span.score <= theta:
            return False
        if answer_style == "long":
            return rouge_l(answer, [passage.text]) <= self.settings.alpha
        return not contains(answer, span.text)

    def share_passage(self, tree: ReasoningTree, node: Node) -> bool:
        """Whether the node's query was processed before; the node then shares that passage."""
        if not self.settings.skip_repeats or node.answer is None:
            return False
        processed = [earlier for earlier in tree.nodes[: node.id] if earlier.passage is not None]
        index = self.duplicates(node.query, [earlier.query for earlier in processed])
        if index is None:
            return False
        earlier = processed[index]
        tree.update(node, passage=earlier.passage, span=earlier.span, repeats=earlier.id)
        return True

    def read(self, query: str, passage: Passage) -> Span:
        """The reader's span; its failure is the question's."""
        try:
            return self.reader(query=query, passage=passage)
        except CallFailedError:
            raise
        except Exception as error:
            raise CallFailedError("reader", f"{type(error).__name__}: {error}") from error


def add_branch(tree: ReasoningTree, chain: list[Step], feedback: Feedback | None, round: int) -> list[Node]:
    """Algorithm 1, AddChild: the chain as a branch, from the root or in the place of the node that got feedback."""
    parent, branch = None, list[Node]()
    if feedback is not None:
        parent = successor(tree, chain[0], feedback, round)
        branch, chain = [parent], chain[1:]
    for step in chain:
        source = "unsolved" if step.answer is None else "lm"
        parent = tree.grow(parent, round=round, query=step.query, answer=step.answer, source=source)
        branch.append(parent)
    return branch


def successor(tree: ReasoningTree, step: Step, feedback: Feedback, round: int) -> Node:
    """The node that takes the place of the one that got feedback, with the LM's new answer."""
    old = feedback.node
    changed = normalise(step.answer or "") != normalise(old.answer or "")
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
