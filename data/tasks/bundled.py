"""Tasks that come with Questree, or with a file of recorded replies."""

from __future__ import annotations

from dataclasses import replace

from .base import Corpus, KnownTask

MINI = KnownTask(
    name="mini",
    style="mixed",
    metric="by-style",
    licence="Apache-2.0",
    citation="Questree",
    source="bundled with Questree",
    sizes={"train": 74, "dev": 53, "test": 53},
    corpus=Corpus("bundled"),
)
MINI_LISTS = replace(MINI, name="mini-lists", sizes={"train": 8, "dev": 8, "test": 8})
RECORDED = KnownTask(
    name="recorded",
    licence="MIT (questions as their data sets)",
    citation="Cao et al., EMNLP 2023 (ProbTree), over the questions' data sets",
    source="https://github.com/THU-KEG/ProbTree",
)
