"""What the simulated model can do: one function for each kind of call, found by the fields that are asked for.

A signature that no skill fits is answered all the same (`reply.respond`). To teach the model that signature, write a
function ``(asked) -> values of the outputs`` beside those of its family, and list it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..asked import Asked
from ..prompt import Prompt, Values
from . import answers, chain_of_query, hops, knowledge, searches, subquestions


class Skill(NamedTuple):
    """How to answer prompts whose signature has at least these fields, in words with spaces between them."""

    inputs: str
    outputs: str
    reply: Callable[[Asked], Values]

    def fits(self, prompt: Prompt) -> bool:
        """Tell whether the prompt gives and asks for all of them."""
        given, wanted = {f.name for f in prompt.inputs}, {f.name for f in prompt.outputs}
        return given.issuperset(self.inputs.split()) and wanted.issuperset(self.outputs.split())


SKILLS = [
    Skill("question your_answer reference_answer", "new_answer new_steps", chain_of_query.correct_chain),
    Skill("question query reference_answer", "new_answer new_steps", chain_of_query.complete_chain),
    Skill("question failed_query", "rest", chain_of_query.revise_chain),
    Skill("question", "planned_chain", chain_of_query.plan_steps),
    Skill("question", "answered_plan", chain_of_query.plan_whole_chain),
    Skill("question", "chain", chain_of_query.plan_chain),
    Skill("query proposed_answer passages", "found verdict", chain_of_query.check_step),
    Skill("question passages", "facts last_adds next_query", knowledge.review_path),
    Skill("question passages", "judgements", knowledge.judge_passages),
    Skill("question passages", "relevant supported answer next_query", knowledge.review_paragraphs),
    Skill("question passages", "information", knowledge.complete_paragraphs),
    Skill("question assertions", "final_content answer", answers.fuse_assertions),
    Skill("question passages", "final_content answer", answers.answer_with_knowledge),
    Skill("question notes", "final_content answer", hops.answer_from_notes),
    Skill("question notes passages", "new_notes", hops.take_notes),
    Skill("question notes", "thoughts query", hops.write_hop_query),
    Skill("question summaries", "final_content answer", hops.answer_from_notes),
    Skill("question summaries passages", "summary", hops.summarize_passages),
    Skill("question summaries", "thoughts query", hops.write_hop_query),
    Skill("question written passages", "finding", hops.condense_passages),
    Skill("question", "searches_needed", hops.judge_searches_needed),
    Skill("question thoughts", "tentative uncertain", hops.write_tentatively),
    Skill("question passages", "kept", knowledge.filter_knowledge),
    Skill("question", "passage", knowledge.recall_passage),
    Skill("question", "topic", knowledge.name_topic),
    Skill("question steps", "final_content answer", answers.trace_answer),
    Skill("query passages", "span confidence", knowledge.read_passage),
    Skill("query passages", "ranking", knowledge.rank_passages),
    Skill("question trajectory", "next_tool_name next_tool_args", searches.act_next),
    Skill("question trajectory", "answer", searches.answer_from_trajectory),
    Skill("question written", "continuation search answer", searches.write_or_search),
    Skill("question passages thoughts", "thought", searches.write_next_thought),
    Skill("question passages", "thoughts query", searches.write_search_query),
    Skill("question solved", "follow_up", subquestions.ask_follow_up),
    Skill("question solved count", "follow_ups", subquestions.propose_follow_ups),
    Skill("question solved", "complete promise", subquestions.judge_steps),
    Skill("question solved query", "query_answer", subquestions.answer_subquestion),
    Skill("question", "subquestions", chain_of_query.split_question),
    Skill("question", "plan", chain_of_query.split_question),
    Skill("question sentence", "query", subquestions.ask_to_verify),
    Skill("query sentence passages", "edited references", subquestions.edit_sentence),
    Skill("question thoughts", "answer", answers.answer_from_thoughts),
    Skill("question passages", "answer", answers.answer_from_passages),
    Skill("question", "final_content answer", answers.answer_step_by_step),
    Skill("question", "answer", answers.answer_question),
]
"""The first that fits a prompt answers it."""
