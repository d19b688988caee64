"""KILT's knowledge source (Petroni et al., NAACL 2021): Wikipedia of August 2019, an article a line.

``kilt_knowledgesource.json``: ``wikipedia_id``, ``wikipedia_title`` and ``text``, the article's paragraphs, of which
the first is the title again. Cut as DPR cuts Wikipedia (Karpukhin et al., EMNLP 2020, section 4.1): into 100 words
each, across paragraphs, without headings.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from ..base import batched
from ..passage import Passage
from .corpus_format import CorpusFormat, passage_of
from .json_lines import Article, read_line

WORDS = 100
_HEADING, _BULLET = "Section::::", "BULLET::::-"


class _KiltArticle(Article):
    id: str | int = Field(validation_alias="wikipedia_id")
    title: str = Field(validation_alias="wikipedia_title")


def _passages(line: str, number: int) -> Iterable[Passage]:
    """Yield ``ID-0``, ``ID-1`` …; nothing for an article without text."""
    article = read_line(_KiltArticle, line)
    words = _words(article.title, article.text)
    for part, some in enumerate(batched(words, WORDS)):
        yield passage_of(f"{article.id}-{part}", " ".join(some), article.title)


def _words(title: str, paragraphs: list[str]) -> list[str]:
    if paragraphs and paragraphs[0].strip() == title:
        paragraphs = paragraphs[1:]
    kept = [paragraph for paragraph in paragraphs if not paragraph.lstrip().startswith(_HEADING)]
    return [word for paragraph in kept for word in paragraph.replace(_BULLET, " ").split()]


KILT = CorpusFormat("kilt", lambda path, first: '"wikipedia_title"' in first, _passages)
