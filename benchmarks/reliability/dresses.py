"""Good replies in another dress: for it, no question is lost, answered otherwise, or asked for again."""

import argparse
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dspy

from questree.programs import PROGRAMS, build

from .faulty_lm import Completion, faulty_lm
from .faulty_server import Fault, Schedule
from .small_world import WatchedEngine, mind, small_world
from .tally import Tally

MARKER = re.compile(r"\[\[ ## (\w+) ## \]\]")
END = "[[ ## completed ## ]]"
NBSP = "\N{NO-BREAK SPACE}"


def part(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Tally]]:
    """Put every program before servers that dress all of their replies."""
    yield "replies in another dress", dressed_report()


def dressed_report(
    dresses: Sequence[Fault] | None = None,
    programs: Sequence[str] = tuple(PROGRAMS),
    questions: Sequence[dspy.Example] | None = None,
) -> Tally:
    """Ask programs questions of a simulated LM as it is, and then in each dress; count those that are lost or other.

    Args:
        dresses: that the server gives to all of its replies; all where None.
        programs: by name.
        questions: of the bundled task; its first where None.
    """
    tally = Tally()
    tally.found.update(dict.fromkeys(("lost", "answered otherwise", "asked again"), 0))
    (examples, retriever, _), engine = small_world(), WatchedEngine(mind())  # that replies to a prompt always the same
    for name in programs:
        for example in questions or examples[:1]:
            meant: Any = None
            for dress in (Fault("as it is"), *(DRESSES if dresses is None else dresses)):
                schedule = Schedule([dress], rate=1)
                with faulty_lm(engine, schedule) as address:
                    lm = dspy.LM("openai/simulated", api_base=address, api_key="none", cache=False, num_retries=0)
                    with dspy.context(lm=lm, adapter=None):
                        prediction = build(name, {}, retriever=retriever)(**example.inputs())
                    lm.close()
                said = prediction.answer, prediction.final_content, prediction.tree.nodes
                meant = meant or (said, schedule.requests)
                kind = _difference(prediction, said == meant[0], schedule.requests > meant[1])
                tally.found[kind] += bool(kind)
                tally.check(dress.kind, not kind, f"{name}, {example.id}: {kind}: {prediction.failure}")
    del tally.found[""], tally.tried["as it is"]
    return tally


def _difference(prediction: dspy.Prediction, is_the_same: bool, is_asked_again: bool) -> str:
    """Return how a question ended otherwise than without the dress; an empty text if it did not."""
    if prediction.failure is not None:
        return "lost"
    return "asked again" if is_asked_again else "" if is_the_same else "answered otherwise"


def _saying(dress: Callable[[str], str]) -> Callable[[Completion], Completion]:
    """Return what puts a completion's text into a dress."""
    return lambda completion: _with(completion, content=dress(completion["choices"][0]["message"]["content"]))


def _with(completion: Completion, **fields: Any) -> Completion:
    (choice,) = completion["choices"]
    return {**completion, "choices": [{**choice, "message": {**choice["message"], **fields}}]}


def _thought(field: str) -> Callable[[Completion], Completion]:
    """Return what puts all of a completion's text into its thoughts."""
    return lambda completion: _with(completion, content=None, **{field: completion["choices"][0]["message"]["content"]})


def _marked(before: str, after: str = "") -> Callable[[str], str]:
    return lambda text: MARKER.sub(rf"{before}\g<0>{after}", text)


def _named(written: str, name: Callable[[str], str] = lambda name: name) -> Callable[[str], str]:
    return lambda text: MARKER.sub(lambda found: written.format(name(found[1])), text)


def _title(name: str) -> str:
    return name.replace("_", " ").title()


def _thinking(begin: str, end: str, after: str = "") -> Callable[[str], str]:
    """Return what writes thoughts before a reply, in which all of its fields are drafted, and rejected."""

    def dressed(text: str) -> str:
        draft = MARKER.sub(r"\g<0>\nrejected", text)
        return f"{begin}I could say:\n{draft}\nNo, that is wrong.\n{end}{text}{after}"

    return dressed


def _ending(token: str) -> Callable[[str], str]:
    return lambda text: text.replace(END, "").rstrip() + token


def _json(text: str) -> str:
    """Return a reply as one object of its fields."""
    _, *pieces = MARKER.split(text.replace(END, ""))
    told = {name: said.strip() for name, said in zip(pieces[::2], pieces[1::2], strict=True)}
    return json.dumps({name: json.loads(one) if one[:1] in ("[", "{") else one for name, one in told.items()})


_ASSISTANT = "<|start|>assistant"
_TEXTS: dict[str, Callable[[str], str]] = {
    "one space before markers": _marked(" "),
    "three spaces before markers": _marked("   "),
    "a tab before markers": _marked("\t"),
    "a non-breaking space before markers": _marked(NBSP),
    "the last marker behind the answer": lambda text: re.sub(rf"\s*{re.escape(END)}", f" {END}", text),
    "the last marker cut": lambda text: text.rstrip()[:-4],
    "the last marker hardly begun": lambda text: text.replace(END, "[["),
    "bold markers": _marked("**", "**"),
    "markers as code": _marked("`", "`"),
    "markers as headings": _marked("### "),
    "names in capitals": _named("[[ ## {} ## ]]", str.upper),
    "names with spaces": _named("[[ ## {} ## ]]", _title),
    "names between hashes": _named("## {} ##", _title),
    "markers without spaces": _named("[[##{}##]]"),
    "one object of JSON": _json,
    "one object of JSON in a fence": lambda text: f"```json\n{_json(text)}\n```",
    "thoughts, <think>": _thinking("<think>\n", "</think>\n\n"),
    "thoughts begun in the prompt": _thinking("", "</think>\n\n"),
    "thoughts, [THINK]": _thinking("[THINK]", "[/THINK]"),
    "thoughts, <seed:think>": _thinking("<seed:think>", "</seed:think>"),
    "thoughts, Cohere": _thinking(
        "<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>", "<|END_RESPONSE|><|END_OF_TURN_TOKEN|>"
    ),
    "thoughts, Kimi": _thinking("◁think▷", "◁/think▷"),
    "thoughts, Gemma": _thinking("<|channel>thought\n", "<channel|>", "<turn|>"),
    "harmony": _thinking(
        "<|channel|>analysis<|message|>", f"<|end|>{_ASSISTANT}<|channel|>final<|message|>", "<|return|>"
    ),
    "harmony, the final channel alone": lambda text: f"<|channel|>final<|message|>{text}",
    "harmony without its tokens": _thinking("analysis", "assistantfinal"),
    "all between <think> and </think>": lambda text: f"<think>\n{text}\n</think>\n\n",
    "<|im_end|>": _ending("<|im_end|>"),
    "<|eot_id|>": _ending("<|eot_id|>"),
    "</s>": _ending("</s>"),
    "<end_of_turn>": _ending("<end_of_turn>\n"),
    "a turn of the user": _ending("<|im_end|>\n<|im_start|>user\nAnd what is the capital of France?"),
}
DRESSES = (
    *(Fault(kind, change=_saying(dress)) for kind, dress in _TEXTS.items()),
    Fault("all in reasoning_content", change=_thought("reasoning_content")),
    Fault("all in reasoning", change=_thought("reasoning")),
)
"""How servers and models dress a good reply, as public reports tell."""
