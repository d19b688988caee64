"""What the simulated model can do: one function for each kind of call, found by the fields that are asked for.

To teach it another signature, write a function ``(mind, prompt, salt) -> values of the outputs`` and list it here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .fallback import plausible
from .filtering import filter_knowledge, name_topic, recall_passage
from .fusing import answer_with_knowledge, fuse_assertions
from .mind import Mind
from .planning import complete_chain, correct_chain, plan_chain
from .prompt import Prompt, Values
from .reviewing import complete_paragraphs, review_paragraphs
from .tracing import conclude, trace_answer


@dataclass(frozen=True)
class Skill:
    """How to answer prompts whose signature has at least these fields."""

    inputs: frozenset[str]
    outputs: frozenset[str]
    reply: Callable[[Mind, Prompt, str], Values]

    def fits(self, prompt: Prompt) -> bool:
        """Whether the prompt gives and asks for all of them."""
        return self.inputs <= {f.name for f in prompt.inputs} and self.outputs <= {f.name for f in prompt.outputs}


def read_passage(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The reading, of several, that the model is most confident of."""
    query, passages = str(prompt.values.get("query", "")), prompt.values.get("passages") or []
    readings = [mind.reads(query, str(passage)) for passage in passages]
    best = max(readings, key=lambda reading: (bool(reading.span), reading.confidence), default=None)
    return {"span": best.span, "confidence": best.confidence} if best else {"span": "", "confidence": 0.0}


def answer_question(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """The answer to a question asked outright, from memory."""
    words, style = str(prompt.values.get("question", "")), str(prompt.values.get("answer_style", "short"))
    believed = mind.believes(words)
    return {"answer": believed or conclude(mind, words, style, steps=[])}


SKILLS = [
    Skill(
        frozenset({"question", "your_answer", "reference_answer"}), frozenset({"new_answer", "chain"}), correct_chain
    ),
    Skill(frozenset({"question", "query", "reference_answer"}), frozenset({"new_answer", "chain"}), complete_chain),
    Skill(frozenset({"question"}), frozenset({"chain"}), plan_chain),
    Skill(
        frozenset({"question", "passages"}),
        frozenset({"relevant", "supported", "answer", "next_query"}),
        review_paragraphs,
    ),
    Skill(frozenset({"question", "passages"}), frozenset({"information"}), complete_paragraphs),
    Skill(frozenset({"question", "assertions"}), frozenset({"final_content", "answer"}), fuse_assertions),
    Skill(frozenset({"question", "passages"}), frozenset({"final_content", "answer"}), answer_with_knowledge),
    Skill(frozenset({"question", "passages"}), frozenset({"kept"}), filter_knowledge),
    Skill(frozenset({"question"}), frozenset({"passage"}), recall_passage),
    Skill(frozenset({"question"}), frozenset({"topic"}), name_topic),
    Skill(frozenset({"question", "steps"}), frozenset({"final_content", "answer"}), trace_answer),
    Skill(frozenset({"query", "passages"}), frozenset({"span", "confidence"}), read_passage),
    Skill(frozenset({"question"}), frozenset({"answer"}), answer_question),
]


def respond(mind: Mind, prompt: Prompt, salt: str) -> Values:
    """A value for every output field: the first fitting skill's, and plausible ones for the rest."""
    skill = next((skill for skill in SKILLS if skill.fits(prompt)), None)
    values = skill.reply(mind, prompt, salt) if skill else {}
    return {
        f.name: values.get(f.name) if f.name in values else plausible(mind, prompt, f, salt) for f in prompt.outputs
    }
