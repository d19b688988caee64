"""A passage: what is retrieved, shown to the LM, and cited."""

from __future__ import annotations

import re
import unicodedata

from pydantic import BaseModel, ConfigDict

_BRACKETS = {"⟦": "[[", "⟧": "]]", "〚": "[[", "〛": "]]", "【": "[", "】": "]", "〔": "[", "〕": "]"}
_MARKER_EDGE = re.compile(r"(?<=\[)(?=[\s\u200b-\u200f\u2060\ufeff]*\[)|(?<=\])(?=[\s\u200b-\u200f\u2060\ufeff]*\])")
_HASHES = re.compile(r"#{2,}")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def neutralise(text: str) -> str:
    """Text in which no DSPy field marker (``[[ ## name ## ]]``) can be read, in any spelling.

    Whoever writes a passage could otherwise write an output field: the adapter takes the first marker it
    sees in a reply, and a model may copy its input. Look-alike brackets are folded, invisible characters
    removed, double brackets parted and runs of ``#`` cut to one. Idempotent.
    """
    folded = "".join(_BRACKETS.get(c, _ascii_twin(c)) for c in _INVISIBLE.sub("", text))
    return _HASHES.sub("#", _MARKER_EDGE.sub(" ", folded))


def _ascii_twin(character: str) -> str:
    """The bracket or hash that a compatibility character stands for; any other character unchanged."""
    twin = unicodedata.normalize("NFKC", character)
    return twin if twin in "[]#" else character


class Passage(BaseModel):
    """One retrievable piece of text. Immutable.

    Attributes:
        id: unique in its corpus.
        title: of the document that it comes from; may be empty.
        text: the passage itself, as in the corpus.
        score: the retriever's, higher is better; its scale is the retriever's own.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    title: str = ""
    text: str
    score: float = 0.0

    def shown(self, max_words: int | None = None) -> str:
        """The form in which an LM or a reader sees it: title and text, markers neutralised.

        Args:
            max_words: keep only so many words of the text.
        """
        text = self.text if max_words is None else " ".join(self.text.split()[:max_words])
        return neutralise(f"{self.title} | {text}" if self.title else text)

    def cited(self) -> str:
        """The form in which a person sees it in a list of references: title and the text's beginning."""
        beginning = self.text if len(self.text) <= 160 else self.text[:157].rsplit(" ", 1)[0] + "…"
        return f"{self.title}: {beginning}" if self.title else beginning
