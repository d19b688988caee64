"""A passage, which is retrieved, shown to the LM, and cited."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, FiniteFloat

from ..common.text import neutralise, without_surrogates

_MARK = re.compile(r"\[(\s*(?:(?:passages?|sources?)\s|[#^])?\s*\d[^\[\]]{0,40})\]", re.IGNORECASE)  # in any form
_Text = Annotated[str, BeforeValidator(without_surrogates)]


class Passage(BaseModel):
    """One retrievable piece of text. Immutable.

    Attributes:
        id: unique in its corpus.
        title: of the document that it comes from; may be empty.
        text: the passage itself, as in the corpus.
        score: the retriever's, higher is better; its scale is the retriever's own.
        linked_from: the title of the passage that led to this one, where a linked retriever found it so.
        source: where it stands, for a browser: a path from the folder that was indexed, or a URL, with the place in it
            (``leave.pdf#page=4``, ``teams.md#heads-of-department``); empty if that is not known. The passages of a
            document that was read stand one behind the other in their index, with ids ``PATH:1``, ``PATH:2`` …, so that
            the neighbours of a passage are those of the numbers before and after its own.
        start: where in the text that was read of its document (of a PDF: of its page) the passage begins; None if that
            is not known.
        end: where it ends there.
    """

    model_config = ConfigDict(frozen=True)

    id: _Text
    title: _Text = ""
    text: _Text
    score: FiniteFloat = 0.0
    linked_from: _Text = ""
    source: _Text = ""
    start: int | None = None
    end: int | None = None

    def shown(self, max_words: int | None = None) -> str:
        """Return what an LM or a reader sees of the passage: title and text, with markers neutralised.

        Marks of its own, ``[1]`` or ``[1-3]``, are shown as ``(1)``: copied into an answer they would cite another
        passage, and at the beginning of a line they would number one.

        Args:
            max_words: how many words of the text to keep; None keeps all.
        """
        text = self.text if max_words is None else " ".join(self.text.split()[:max_words])
        return _MARK.sub(r"(\1)", neutralise(f"{self.title} | {text}" if self.title else text))

    @property
    def url(self) -> str:
        """Return its source if that is an address of the web; else nothing."""
        with suppress(ValueError):
            parts = urlsplit(self.source)
            if parts.scheme in ("http", "https") and parts.netloc and self.source.isprintable():
                return "" if " " in self.source else self.source
        return ""

    @property
    def place(self) -> str:
        """Return where it stands, in words: ``leave.pdf, page 4``, ``teams.md › Heads of department``, or its URL.

        Of a passage whose source is not known it is the id.
        """
        path, _, fragment = self.source.partition("#")
        if self.url or not path:
            return self.url or self.id
        part, heading = fragment.removeprefix("page="), self.title.rpartition(" › ")[2]
        told = f", page {part}" if part.isdecimal() and part != fragment else f" › {heading}" if fragment else ""
        return " ".join(unquote(path).split()) + told

    def cited(self, told: str = "") -> str:
        """Return what a person sees of the passage in a list of references: title, place, and what it says.

        Args:
            told: what it is cited for; the text's beginning if empty.
        """
        beginning = self.text if len(self.text) <= 160 else self.text[:157].rsplit(" ", 1)[0] + "…"
        named = f"{self.title} ({self.place})" if self.title and (self.url or not self.source) else self.place
        named = f"{named}: {told or beginning}"
        return f"{named} (linked from {self.linked_from})" if self.linked_from else named
