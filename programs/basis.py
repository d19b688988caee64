"""The state of a step, and what an answer rests on: the same words in the terminal, in notebooks and on pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..metrics import citation_precision, citation_recall, stand_among, stands_in
from ..retrieval import Passage
from .tree import Node, ReasoningTree, without_repeats

SOURCES = ("lm", "corrected", "completed", "unsolved")
"""Where the answer of a step comes from (SearChain, table 2)."""
_STATES = {  # of judged nodes, and why a branch ended
    "query": "searched",
    "open": "found",
    "search": "read, led to the next search",
    "enough agreement": "not read: one path already answered",
    "accepted": "read, answers the question",
    "rejected": "read, does not help",
    "full depth": "given up: the tree is as deep as it may be",
    "repeated": "read before",
    "near-duplicate": "says what another says",
    "no query": "given up: no further search was asked for",
    "nothing retrieved": "given up: the next search found nothing",
    "out of calls": "given up: no LM calls left",
    "filtered out": "left out: does not help",
    "not followed": "found, not followed: the chain has as many branches as it may have",
}

Basis = Literal["passages", "memory", "guess"]
"""What decides an answer (`basis`)."""

NOT_TOLD = "The passages found do not tell this"
"""The words for a question that has no answer although passages were found."""

Tone = Literal["good", "warn", "quiet"]


class Standing(NamedTuple):
    """The state of an answer: whether passages support it.

    Attributes:
        words: the state in a few words.
        tone: whether the state is good.
        steps: for each step behind the answer, whether a passage names its answer; empty if there are no such steps.
        told: a sentence with more detail.
    """

    words: str
    tone: Tone
    steps: tuple[bool, ...] = ()
    told: str = ""

    def __str__(self) -> str:
        """Return the state as a sentence or two."""
        return f"{self.words}. {self.told}".rstrip()


def is_judged(node: Node) -> bool:
    """Return whether the node is a paragraph that is reviewed or filtered, or a query without its own answer."""
    return node.source in ("passage", "query") or node.blend is not None


def node_kind(node: Node) -> str:
    """Return the state of a node in one word: one of `SOURCES`; for a judged node, what was done with it."""
    if not is_judged(node):
        return node.source
    if node.blend or node.source == "query":
        return "query"
    if node.ended == "accepted":
        return "accept"
    return "kept" if node.ended == "kept" else "ended" if node.ended else node.action or "open"


def tone_of(node: Node) -> Tone:
    """Return "good" if a passage says it, "warn" if it is from memory or was wrong at first, "quiet" if it is open."""
    if is_judged(node):
        return "good" if node.ended in ("accepted", "kept") else "quiet"
    if node.answer is None:
        return "quiet"
    return "good" if node.support and node.source != "corrected" else "warn"


def node_state(node: Node, tree: ReasoningTree | None = None) -> str:
    """Return the state of a node, such as "found in Sweden", "recalled, confirmed by IKEA" or "not looked up".

    With its tree, the words also say what the LM recalled before a correction.
    """
    if is_judged(node) or node.ended not in (None, "accepted"):
        state = node.ended or node_kind(node)
        return _STATES.get(state, state)
    return _came_by(node, tree) + ("; one source contradicts the LM" if node.single_source else "")


def _came_by(node: Node, tree: ReasoningTree | None) -> str:
    """Return where a step's answer comes from, and whether passages confirm it."""
    name = (node.passage.title or node.passage.id) + ", read before" * node.read_before if node.passage else ""
    read = f"{len(node.found)} passage{'s' * (len(node.found) != 1)} read"
    stands = bool(node.support and node.passage)
    if node.source == "unsolved" and node.stance == "supports":
        return "found: the step that took its place has the answer"
    if node.source == "unsolved":
        return f"not found: {read}" if node.found else "not looked up"
    if node.source == "completed" and not stands:
        guesses = node.found or node.passage or not node.sure
        return "a guess: no passage names it" if guesses else "read in the passages below"
    if node.source == "completed":
        return f"found in {name}"
    if node.source == "corrected":
        by = f"corrected by {name}" if stands else "corrected; no passage names it"
        old = None if tree is None or node.replaces is None else tree.nodes[node.replaces].answer
        return f"{by}: the model recalled {old}" if old and old != node.answer else by
    if stands:
        return f"recalled, confirmed by {name}"
    if node.found and not node.single_source:
        return f"recalled, not confirmed: {read}"
    return f"recalled, not confirmed by {name}" if node.passage else "recalled, not checked"


def steps_behind(tree: ReasoningTree) -> list[Node]:
    """Return the steps with an answer of their own on the path behind the answer, each once."""
    return [node for node in without_repeats(tree.nodes_behind_answer()) if not is_judged(node)]


def held_among(tree: ReasoningTree, items: Sequence[str], references: Sequence[Passage]) -> list[str]:
    """Return the items of an answer that are named in a passage that is cited or supports a step."""
    read = [*references, *(node.passage for node in tree.nodes if node.support and node.passage)]
    texts = {f"{passage.title} {passage.text}" for passage in read}
    return [one for one in items if any(stands_in(text, one) for text in texts)]


def basis(tree: ReasoningTree, answer: str, references: Sequence[Passage], items: Sequence[str] = ()) -> Basis | None:
    """Return what an answer rests on; None without an answer.

    A chain of steps rests on what its last step rests on: a passage that names its answer, the LM's memory, or a
    guess. If the last step has no answer, and the question has one, that is a guess. An answer of several ``items``
    rests on passages if each of them does.

    Without such steps, an answer rests on passages if a cited one names it; a list, if each item is named; a yes, a no,
    a label or a paragraph, if any passage is cited. Else it rests on memory.
    """
    if not answer:
        return None
    if len(items) > 1:
        return "passages" if len(held_among(tree, items, references)) == len(items) else "memory"
    steps = [node for node in steps_behind(tree) if node.found and (node.answer or not is_closed(answer))]
    if steps:
        last = next((node for node in reversed(steps) if node.ended and node.support), steps[-1])  # of several paths
        return "passages" if last.support else "memory" if last.sure or last.source == "lm" else "guess"
    texts = [f"{passage.title} {passage.text}" for passage in references]
    return "passages" if texts and (is_closed(answer) or stand_among(texts, answer)) else "memory"


def is_closed(answer: str) -> bool:
    """Return whether no passage can hold an answer word for word: a yes, a no, a label, or a paragraph."""
    return len(answer.split()) > _PHRASE or answer.casefold().strip(" .") in _CLOSED


_PHRASE = 12  # words
_CLOSED = {"yes", "no", "supports", "refutes", "not enough info"}


def standing_of(prediction: Any) -> Standing:
    """Return the state of a prediction's answer."""
    tree, references, content = prediction.tree, prediction.references, prediction.final_content
    steps = steps_behind(tree)
    found = tuple(bool(node.support) for node in steps)
    if not prediction.answer:
        solved = tuple(bool(node.answer) for node in steps)
        nearest = getattr(prediction, "nearest", "")
        told = f"What came nearest: {nearest}. " if nearest else ""
        told += f"Steps that were answered: {sum(solved)} of {len(steps)}." if not all(solved) else ""
        return Standing(NOT_TOLD if tree.passages() else "No answer found", "quiet", solved, told.strip())
    if prediction.rests_on == "guess":
        return Standing("A guess", "warn", found, "No passage says it, and the model was not sure.")
    texts = [f"{passage.title} {passage.text}" for passage in references]
    if citation_precision(content, texts, tree.question) not in (None, 1):
        told = "A cited passage holds less than half of the names and numbers that it is cited for."
        return Standing("Weakly supported", "warn", found, told)
    told, by = "", f"{len(references)} passage{'s' * (len(references) != 1)}"
    if any(found):
        has, by = "has its" if sum(found) == 1 else "have their", "passages"
        told = f"{sum(found)} of {len(found)} steps {has} answer in a passage."
        if not references:
            return Standing("No source cited", "warn", found, f"{told} The text cites none.")
        if not all(found):
            return Standing("Partly from the model’s memory", "warn", found, told)
    elif not references:
        return Standing("From the model’s memory alone", "warn", found, "No passage stands behind this answer.")
    elif prediction.rests_on != "passages":
        return Standing("No cited passage names the answer", "warn", found, "It may come from the model’s memory.")
    if citation_recall(content, texts, tree.question) not in (None, 1):
        told = f"{told} A sentence of the text has no mark that supports it.".strip()
        return Standing("Partly supported", "warn", found, told)
    return Standing(f"Supported by {by}", "good", found, told)
