"""FRAMES (Krishna et al., NAACL 2025): questions that need two to fifteen articles of Wikipedia, and work on them.

Published as one table, ``test.tsv``, here read from the hub or as JSON lines of the same columns. It is for testing
alone. ``wiki_links`` lists the addresses of the articles: their titles are the gold titles. An entry may hold several
addresses, and words after them.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from .base import Corpus, Fields, Hub, KnownTask, Row, distinct_texts, words_id
from .open_questions import answers_of

_ARTICLE = re.compile(r"/wiki/((?:(?!,?https?:)[^#?\s])+)")


def _read(row: Row) -> Fields:
    question = row.text("Prompt")
    named = [name.rstrip(",;") for link in answers_of(row, "wiki_links") for name in _ARTICLE.findall(link)]
    titles = distinct_texts(unquote(name).replace("_", " ") for name in named)
    return {
        "id": words_id("frames", question),
        "question": question,
        "answers": [row.text("Answer")],
        "type": row.data.get("reasoning_types"),
        "hops": len(titles) or None,
        "gold_titles": titles,
    }


FRAMES = KnownTask(
    name="frames",
    licence="Apache-2.0",
    citation="Krishna et al., NAACL 2025",
    source="https://huggingface.co/datasets/google/frames-benchmark",
    sizes={"test": 824},
    only_split="test",
    corpus=Corpus("Wikipedia of June 2023"),
    hub=Hub(
        id="google/frames-benchmark",
        revision="58d9fb6330f3ab1316d1eca12e5e8ef23dcc22ef",
        splits={"test": "test"},
        columns=("Prompt", "Answer", "reasoning_types", "wiki_links"),
    ),
    files="the rows of test.tsv as JSON lines",
    read=_read,
)
