"""SearChain as its paper has it (Xu et al., WWW 2024, algorithm 1)."""

from __future__ import annotations

import dspy

from ..retrieval import Span
from ..signatures.chain_of_query import PlannedStep
from .chain_search import ChainSearch, Feedback, Help
from .modules.verdict import Verdict, agree_at_length
from .tree import Node


class PublishedSearChain(ChainSearch):
    """Algorithm 1: after each correction or completion, the LM answers the query again and plans the rest anew.

    The queries looked up, the feedback and the stops are those of the authors' client, given the same replies, but:

    - If the LM leaves a query unsolved after feedback on it, the chain goes on after it. The client repeats its
      feedback until no round is left, although by algorithm 1 the query has been processed.
    - An answer that says that there is none ("Unknown") leaves its query unsolved; the client checks it.
    - An empty span is no evidence. For a short answer the client takes it for agreement, which comes to the same; a
      long answer is compared with the passage even then.
    - A span is compared with the answer. The client looks for it in the whole line "[Answer 2]: …", so "2" is there.
    - A query without an answer is unsolved. The client gives it the next answer in the reply.
    - A mark such as [5] that the LM copied from a passage is taken out of the final content; the client leaves it.

    Its prompts show the path and the plan so far; the client shows the whole conversation. The algorithm's loop runs
    r_max + 1 times, the text says r_max: ``max_rounds`` is the number of chains that the LM is asked for, and the
    feedback of the last one is not given.
    """

    def reason(self) -> dspy.Prediction:
        """Plan a chain, retrieve along it, continue it by the feedback, and trace the last path (Main)."""
        branch = self.grow(None, self.program.chain_of_query(**self.asked), round=1)
        for chains in range(1, self.settings.max_rounds + 1 if self.settings.retrieval else 1):
            feedback = self.traverse(branch)
            if feedback is None or chains == self.settings.max_rounds:
                break
            branch = self.continue_chain(branch, feedback)
        return self.trace()

    def help_for(self, verdict: Verdict) -> Help:
        """Ask for completion, whatever was read (section 3.2, completion)."""
        return "complete"

    def continue_chain(self, branch: list[Node], feedback: Feedback) -> list[Node]:
        """Return the branch of the LM's next chain, from the node with feedback on (ChainGenerate)."""
        node, verdict, round = feedback.node, feedback.verdict, self.next_round()
        go_on = self.program.corrected_chain if feedback.kind == "correct" else self.program.completed_chain
        steps: list[PlannedStep] = go_on(
            **self.asked,
            solved=self.tree.path_to(node)[:-1],
            node=node,
            later=self.nodes_after(node, branch),
            passage=node.passage,
            span=verdict.span or Span(text="", score=0.0),
        )
        answer = steps[0].recalled
        helped = self.grow_successor(feedback, answer, round, self.evidence_of(answer, feedback))
        return [helped, *self.grow(helped, steps[1:], round)]

    def evidence_of(self, answer: str | None, feedback: Feedback) -> str | None:
        """Return what was read in the passage, if the LM's long answer agrees with that passage (section 3.2)."""
        passage, span = feedback.node.passage, feedback.verdict.span
        if self.answer_style != "long" or not answer or passage is None or span is None:
            return None
        return span.text if agree_at_length(answer, passage, self.settings.alpha) else None
