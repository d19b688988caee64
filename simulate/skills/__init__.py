"""What the simulated model can do: one function for each kind of call, found by the fields that are asked for.

A signature that no skill fits is answered all the same (`reply.respond`). To teach the model that signature, write a
function ``(asked) -> values of the outputs`` beside those of its family, and list it here. A family is imported when it
is first asked.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from ..asked import Asked
from ..prompt import Prompt, Values

TEXTS = ("written", "trajectory", "thoughts", "notes", "summaries", "sentence", "solved")
"""The fields of texts that are filled in by their shape (`shapes`)."""


class Skill(NamedTuple):
    """How to answer prompts whose signature has at least these fields, in words with spaces between them."""

    inputs: str
    outputs: str
    function: str  # after its family, which is a module beside this one

    def fits(self, prompt: Prompt) -> bool:
        """Tell whether the prompt gives and asks for all of them."""
        given, wanted = {f.name for f in prompt.inputs}, {f.name for f in prompt.outputs}
        return given.issuperset(self.inputs.split()) and wanted.issuperset(self.outputs.split())

    def reply(self, asked: Asked) -> Values:
        """Return the values of the outputs."""
        family, _, name = self.function.partition(".")
        return getattr(import_module(f".{family}", __name__), name)(asked)  # type: ignore[no-any-return]


SKILLS = [
    Skill("question your_answer reference_answer", "new_answer new_steps", "chain_of_query.correct_chain"),
    Skill("question query reference_answer", "new_answer new_steps", "chain_of_query.complete_chain"),
    Skill("question failed_query", "rest", "chain_of_query.revise_chain"),
    Skill("question", "planned_chain", "chain_of_query.plan_steps"),
    Skill("question", "answered_plan", "chain_of_query.plan_whole_chain"),
    Skill("question", "chain", "chain_of_query.plan_chain"),
    Skill("query proposed_answer passages", "found verdict", "chain_of_query.check_step"),
    Skill("question passages", "facts last_adds next_query", "knowledge.review_path"),
    Skill("question passages", "facts supported_answer recalled", "knowledge.draft_answer"),
    Skill("question passages", "judgements", "knowledge.judge_passages"),
    Skill("question passages", "relevant supported answer next_query", "knowledge.review_paragraphs"),
    Skill("question passages", "information", "knowledge.complete_paragraphs"),
    Skill("question passages", "evidence searches sure", "evidence.read_evidence"),
    Skill("question proposed_answer", "lacking follows", "evidence.confirm_answer"),
    Skill("question", "steps_planned", "evidence.plan_lookups"),
    Skill("passages asks_for", "written_question steps answers", "written_questions.write_question"),
    Skill("question", "well_asked remembered", "written_questions.hear_question"),
    Skill("lookups passages", "looked_up", "evidence.answer_lookups"),
    Skill("question assertions", "final_content answer", "answers.fuse_assertions"),
    Skill("question passages", "kept", "knowledge.filter_knowledge"),
    Skill("question", "passage", "knowledge.recall_passage"),
    Skill("question", "topic", "knowledge.name_topic"),
    Skill("question steps", "final_content answer", "answers.trace_answer"),
    Skill("query passages", "span confidence", "knowledge.read_passage"),
    Skill("conversation question", "restated", "knowledge.restate"),
    Skill("question", "subquestions", "chain_of_query.split_question"),
    Skill("question", "plan", "chain_of_query.split_question"),
    *(Skill(text, "", "shapes.respond_by_shape") for text in TEXTS),
    Skill("question", "query", "shapes.respond_by_shape"),
    Skill("question passages", "final_content answer", "answers.answer_with_knowledge"),
    Skill("question passages", "answer", "answers.answer_from_passages"),
    Skill("question", "final_content answer", "answers.answer_step_by_step"),
    Skill("question", "answer", "answers.answer_question"),
]
"""The first that fits a prompt answers it."""
