"""The papers' tasks by name. A task is added with its file and its name here; it is imported when it is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.lazy import PartsByName, lazily

if TYPE_CHECKING:
    from .base import BadRow as BadRow
    from .base import Corpus as Corpus
    from .base import KnownTask as KnownTask
    from .base import Row as Row
    from .base import Sample as Sample

__getattr__ = lazily(__name__)

KNOWN_TASKS: PartsByName[KnownTask] = PartsByName(
    __name__,
    {
        "mini": ".base:MINI",
        "mini-lists": ".base:MINI_LISTS",
        "hotpotqa": ".hotpotqa:HOTPOTQA",
        "hotpotqa-fullwiki": ".hotpotqa:HOTPOTQA_FULLWIKI",
        "musique": ".musique:MUSIQUE",
        "musique-full": ".musique:MUSIQUE_FULL",
        "2wikimultihopqa": ".twowiki:TWOWIKI",
        "strategyqa": ".strategyqa:STRATEGYQA",
        "hover": ".hover:HOVER",
        "hipporag-musique": ".hipporag:MUSIQUE_HIPPORAG",
        "hipporag-hotpotqa": ".hipporag:HOTPOTQA_HIPPORAG",
        "hipporag-2wiki": ".hipporag:TWOWIKI_HIPPORAG",
        "zsre": ".slots:ZSRE",
        "trex": ".slots:TREX",
        "fever": ".fever:FEVER",
        "eli5": ".eli5:ELI5",
        "nq": ".open_questions:NQ",
        "triviaqa": ".triviaqa:TRIVIAQA",
        "webquestions": ".webquestions:WEBQUESTIONS",
        "trec": ".trec:TREC",
        "squad": ".squad:SQUAD",
        "bamboogle": ".open_questions:BAMBOOGLE",
        "popqa": ".open_questions:POPQA",
        "frames": ".frames:FRAMES",
        "phantomwiki": ".phantomwiki:PHANTOMWIKI",
        "recorded": ".base:RECORDED",
    },
)
"""Every task known by name. A file of another name is read by its questions' own types."""
