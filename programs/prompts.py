"""The whole prompt of each predictor of a program, as it is sent."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

import dspy

from ..common.sentences import sentences
from ..lm.adapters import lenient
from ..lm.guard import adapter_in_use, shown_demonstrations
from ..lm.window import most_tokens
from .program import Program


@dataclass(frozen=True)
class RenderedPrompt:
    """The prompt of one predictor, with the names of its inputs in the place of their values.

    Attributes:
        predictor: its name in the program, such as ``chain_of_query.plan``.
        signature: the name of its signature.
        messages: role and text, in order: the instructions, each demonstration's question and reply, and the request.
        instructions: as they are sent if no demonstration shows the form of a reply.
        demonstrations: how many there are.
    """

    predictor: str
    signature: str
    messages: tuple[tuple[str, str], ...]
    instructions: str
    demonstrations: int

    @property
    def text(self) -> str:
        """Return all of it as one text, each message under its role."""
        return "\n\n".join(f"<<{role}>>\n{text.strip()}" for role, text in self.messages) + "\n"

    @property
    def tokens(self) -> int:
        """Return an upper bound of its tokens, see `questree.lm.window.most_tokens`."""
        return sum(most_tokens(text) for _, text in self.messages)


def rendered_prompts(program: Program) -> list[RenderedPrompt]:
    """Return the prompts of all predictors of a program, in the order in which it names them."""
    return [rendered_prompt(name, predictor) for name, predictor in program.named_predictors()]


def rendered_prompt(name: str, predictor: dspy.Predict) -> RenderedPrompt:
    """Return the prompt of one predictor, written by the adapter that is configured."""
    adapter = lenient(adapter_in_use())
    signature = predictor.signature
    inputs = {field: f"{{{field}}}" for field in signature.input_fields}
    demonstrations = shown_demonstrations(predictor, adapter)
    with dspy.context(callbacks=[]):  # without callbacks: no LM is asked, but MLflow's autologging would make a trace
        messages = adapter.format(signature, demonstrations, inputs)
    pairs = tuple((message["role"], str(message["content"])) for message in messages)
    instructions = adapter.format_system_message(signature)
    return RenderedPrompt(name, signature.__name__, pairs, instructions, len(demonstrations))


def differences(before: list[RenderedPrompt], after: list[RenderedPrompt]) -> dict[str, str]:
    """Return a unified diff of two programs' prompts for each predictor that differs.

    Each sentence of the instructions is a line of the diff, however they are wrapped.
    """
    texts = [{prompt.predictor: prompt.text for prompt in prompts} for prompts in (before, after)]
    diffs = {}
    for name in dict.fromkeys([*texts[0], *texts[1]]):
        pair = [text.get(name, "") for text in texts]
        if pair[0] != pair[1]:
            diffs[name] = _diff(name, *map(_by_sentence, pair)) or _diff(name, *pair)  # if only the wrapping differs
    return diffs


def _diff(name: str, *texts: str) -> str:
    old, new = map(str.splitlines, texts)
    return "\n".join(difflib.unified_diff(old, new, f"{name}, before", f"{name}, after", lineterm="", n=2))


_INSTRUCTIONS = re.compile(r"(?m)^ {8}\S.*(?:\n {8}\S.*)*")  # DSPy's adapters indent them


def _by_sentence(text: str) -> str:
    return _INSTRUCTIONS.sub(lambda found: "\n".join(sentences(" ".join(found[0].split()))), text)
