"""SearChain as its paper has it (Xu et al., WWW 2024, algorithm 1)."""

from __future__ import annotations

import dspy

from ..lm.call import call
from ..metrics import without_marks
from ..signatures.chain_of_query import PlannedStep, Step
from .chain_search import ChainSearch, Feedback
from .modules.chain_of_query import as_steps
from .modules.verdict import Verdict, agree_at_length
from .references import numbered
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
        branch = self.grow(None, self.plan(), round=1)
        for chains in range(1, self.settings.max_rounds + 1 if self.settings.retrieval else 1):
            feedback = self.traverse(branch)
            if feedback is None or chains == self.settings.max_rounds:
                break
            branch = self.continue_chain(branch, feedback)
        return self.trace()

    def plan(self) -> list[PlannedStep]:
        """Return the first chain: queries written out, and answered where the LM is sure (section 3.1).

        Without retrieval every query has to be answered (table 1, SearChain w/o IR).
        """
        reply = call(self.program.chain_of_query, **self.asked)
        return as_planned(reply.chain if "chain" in reply else reply.answered_plan)

    def help_for(self, node: Node, verdict: Verdict) -> Feedback:
        """Return feedback that asks for completion, whatever was read (section 3.2, completion)."""
        return Feedback(node, "complete", verdict)

    def continue_chain(self, branch: list[Node], feedback: Feedback) -> list[Node]:
        """Return the branch of the LM's next chain, from the node with feedback on (ChainGenerate)."""
        node, verdict, round = feedback.node, feedback.verdict, self.next_round()
        go_on = self.program.corrected_chain if feedback.kind == "correct" else self.program.completed_chain
        reply = call(
            go_on,
            **self.asked,
            solved=as_steps(self.tree.path_to(node)[:-1]),
            query=node.query,
            passages=numbered([node.passage] if node.passage else []),
            reference_answer=verdict.span.text if verdict.span else "",
            later_steps=as_steps(self.nodes_after(node, branch)),
            **({"your_answer": node.answer} if feedback.kind == "correct" else {}),
        )
        (step,) = as_planned([Step(query=node.query, answer=without_marks(reply.new_answer))])
        helped = self.grow_successor(feedback, step.recalled, round, self.evidence_of(step.recalled, feedback))
        return [helped, *self.grow(helped, as_planned(reply.new_steps), round)]

    def evidence_of(self, answer: str | None, feedback: Feedback) -> str | None:
        """Return what was read in the passage, if the LM's long answer agrees with that passage (section 3.2)."""
        passage, span = feedback.node.passage, feedback.verdict.span
        if self.answer_style != "long" or not answer or passage is None or span is None:
            return None
        return span.text if agree_at_length(answer, passage, self.settings.alpha) else None


def as_planned(steps: list[Step]) -> list[PlannedStep]:
    """Return steps of which the LM is sure where it answers them."""
    return [PlannedStep(query=step.query, recalled=step.answer, sure=step.answer is not None) for step in steps]
