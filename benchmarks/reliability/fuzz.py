"""Hostile texts against prompts, trees, pages and the screen: how many were tried, and what went through."""

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import dspy
from dspy.adapters.baml_adapter import BAMLAdapter
from pydantic import BaseModel

import questree.signatures
from questree.common.text import printable
from questree.evaluation.records import Record
from questree.lm.adapters import lenient
from questree.lm.guard import guarded, shown_demonstrations
from questree.pages import answer_page
from questree.programs import Node, ReasoningTree
from questree.programs.tree_views import as_mermaid, as_text
from questree.retrieval import Passage, Span

from .hostile_texts import as_copied, hostile_text
from .tally import Tally

SIGNATURES: list[type[dspy.Signature]] = [
    one
    for module in iter_modules(questree.signatures.__path__)
    for one in vars(import_module(f"questree.signatures.{module.name}")).values()
    if isinstance(one, type) and issubclass(one, dspy.Signature) and one.output_fields
]
ADAPTERS: dict[str, Callable[[], dspy.Adapter]] = {
    "chat": lambda: dspy.ChatAdapter(use_json_adapter_fallback=False),
    "json": dspy.JSONAdapter,
    "xml": dspy.XMLAdapter,
    "baml": BAMLAdapter,
}


def part(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Tally]]:
    """Try each property on hostile texts; a row for each."""
    for what, tally in fuzz(given.texts, given.seed).items():
        yield f"hostile texts, {what}", tally


def fuzz(cases: int, seed: int = 0) -> dict[str, Tally]:
    """Try each property on so many texts; return the tally of each.

    Args:
        cases: texts; each meets every property, and one signature after the other with each adapter.
        seed: of the texts.
    """
    draw, found = random.Random(seed), defaultdict[str, Tally](Tally)

    def note(what: str, held: bool) -> None:
        found[what].check("text", held, ascii(text))

    for number in range(cases):
        signature = SIGNATURES[number % len(SIGNATURES)]
        text = hostile_text(draw, draw.choice(list(signature.output_fields)))
        note("markers", not reads_as_marker(Passage(id=text, title=text, text=text).shown()))
        for make in ADAPTERS.values():
            adapter = lenient(make())
            held = echo_sets_nothing(signature, adapter, text) and sections_hold(signature, adapter, text)
            note(type(adapter).__name__, held)
            note("demonstrations", demonstration_holds(signature, adapter, text))
        tree = hostile_tree(text)
        note("tree", ReasoningTree.model_validate_json(tree.model_dump_json()) == tree)
        note("page", page_is_inert(hostile_page(text)))
        note("diagram", mermaid_is_inert(as_mermaid(tree)))
        note("screen", screen_is_still(as_text(tree)) and screen_is_still(printable(text)))
    return dict(found)


def reads_as_marker(text: str) -> bool:
    """Whether anything in it is a field marker, or becomes one by careless copying."""
    copied = as_copied(text)
    return "[[" in copied or "]]" in copied or "##" in copied or "<|" in copied or "|>" in copied


def echo_sets_nothing(signature: type[dspy.Signature], adapter: dspy.Adapter, text: str) -> bool:
    """Whether the reply of a model that first copies all its input can be read, and is read as it replied."""
    inputs = guarded(filled(signature, text), signature, adapter)
    outputs = {name: value_of(info.annotation, "GOOD") for name, info in signature.output_fields.items()}
    reply = adapter.format_assistant_message_content(signature, outputs)
    try:
        with_echo = adapter.parse(signature, f"{_copied(inputs)}\n\n{reply}")
    except dspy.utils.exceptions.AdapterParseError:
        return False  # never an answer, but whoever writes a passage could make its questions fail
    return bool(with_echo == adapter.parse(signature, reply))


def sections_hold(signature: type[dspy.Signature], adapter: dspy.Adapter, text: str) -> bool:
    """Return whether the prompt has the sections that it has with harmless text, and no others."""

    def shown(given: str) -> str:
        inputs = guarded(filled(signature, given), signature, adapter)
        return str(adapter.format(signature, [], inputs)[-1]["content"])

    return _same_sections(shown, text, adapter)


def demonstration_holds(signature: type[dspy.Signature], adapter: dspy.Adapter, text: str) -> bool:
    """Return whether a demonstration with the text in every field has the sections of one with harmless text."""

    def shown(given: str) -> str:
        predict = dspy.Predict(signature)
        replied = {name: value_of(info.annotation, given) for name, info in signature.output_fields.items()}
        predict.demos = [filled(signature, given) | replied]
        messages = adapter.format(signature, shown_demonstrations(predict, adapter), filled(signature, "a river"))
        return "\n".join(str(message["content"]) for message in messages[1:3])

    return _same_sections(shown, text, adapter)


def _same_sections(shown: Callable[[str], str], text: str, adapter: dspy.Adapter) -> bool:
    """Compare the markers, tags and borders of turns in what is shown of a text with those of a harmless one."""
    tags = r"|</?\w+>" if isinstance(adapter, dspy.XMLAdapter) else ""
    found, harmless = (re.findall(rf"\[\[[^\n]*?\]\]|<\||\|>{tags}", shown(one)) for one in (text, "a river"))
    return found == harmless


def filled(signature: type[dspy.Signature], text: str) -> dict[str, Any]:
    """Every input of the signature, with the text wherever a text may stand."""
    return {
        name: [Passage(id="1", title=text, text=text).shown()]
        if name == "passages"
        else value_of(info.annotation, text)
        for name, info in signature.input_fields.items()
    }


def hostile_tree(text: str) -> ReasoningTree:
    """A tree with the text wherever a text may stand, as a file may hold it: growing would drop an empty answer."""
    text = str(text).encode(errors="replace").decode()
    passage = Passage(id=text, title=text, text=text)
    said = {"query": text, "answer": text, "passage": passage}
    first = Node(id=0, source="lm", span=Span(text=text, score=1.0), **said)
    return ReasoningTree(question=text, nodes=[first, Node(id=1, parent=0, source="passage", ended="accepted", **said)])


def hostile_page(text: str) -> str:
    """The page of an answer with the text wherever a text may stand."""
    tree = hostile_tree(text)
    said = {"question": tree.question, "answer": tree.question, "final_content": tree.question}
    return answer_page(Record(id="1", tree=tree, **said), simulated=False)


class _Parsed(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.shape: list[tuple[Any, ...]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape.append((tag, *attrs))

    def handle_endtag(self, tag: str) -> None:
        self.shape.append(("/", tag))

    def handle_comment(self, data: str) -> None:
        self.shape.append(("comment", data))


def shape_of(page: str) -> list[tuple[Any, ...]]:
    """The page's elements with their attributes, its ends and its comments, in order; without its texts."""
    parsed = _Parsed()
    parsed.feed(page)
    parsed.close()
    return parsed.shape


def page_is_inert(page: str) -> bool:
    """Whether a tree's page has the elements of a harmless one, and writes nothing that turns the writing around."""
    harmless = hostile_page("a river")
    return shape_of(page) == shape_of(harmless) and screen_is_still(page)


def mermaid_is_inert(diagram: str) -> bool:
    """Whether the diagram has the lines of a harmless one, each label in its quotes."""
    lines, harmless = diagram.split("\n"), as_mermaid(hostile_tree("a river")).split("\n")
    bare = [re.sub(r'"[^"<>]*(?:<(?:br/|b|/b|i|/i)>[^"<>]*)*"', '""', line) for line in lines]
    return bare == [re.sub(r'"[^"]*"', '""', line) for line in harmless]


def screen_is_still(text: str) -> bool:
    """Whether a terminal would do no more than write it."""
    return re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text) is None


def _copied(inputs: dict[str, Any]) -> str:
    """What of a prompt is other people's: every text of the inputs, bare, and as the prompt encodes it."""
    bare = "\n".join(_texts(inputs))
    encoded = "\n".join(json.dumps(value, ensure_ascii=False, default=str) for value in inputs.values())
    return f"{bare}\n{encoded}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        yield from _texts(dict(value))
    elif isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def value_of(annotation: Any, text: str) -> Any:
    """A value of the type, with the text in it where it holds texts."""
    origin = get_origin(annotation)
    if origin is Literal:
        return get_args(annotation)[0]
    if origin in (Union, UnionType):
        return value_of(get_args(annotation)[0], text)
    if origin is list:
        return [value_of(get_args(annotation)[0], text)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.model_construct(
            **{name: value_of(info.annotation, text) for name, info in annotation.model_fields.items()}
        )
    return {str: text, int: 1, float: 0.5, bool: True}.get(annotation, text)
