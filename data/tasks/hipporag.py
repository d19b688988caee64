"""HippoRAG's samples (Gutiérrez et al., NeurIPS 2024 and ICML 2025): 1,000 dev questions each of three data sets.

Published on the hub as ``musique.json``, ``hotpotqa.json`` and ``2wikimultihopqa.json``, in the forms of their own
authors. The corpus of each is the paragraphs of its own questions (11,656, 9,811 and 6,119 passages), which the hub
holds once more as ``…_corpus.json``: small enough to compare retrievers on a laptop. Nothing of it trains.
"""

from __future__ import annotations

from dataclasses import replace

from .base import Hub, KnownTask
from .hotpotqa import HOTPOTQA
from .musique import MUSIQUE
from .twowiki import TWOWIKI

_ADDRESS = "hf://datasets/osunlp/HippoRAG_2@5ec05b38deecc3318bb432c69865959c56058990/"
_PAPERS = "Gutiérrez et al., NeurIPS 2024 and ICML 2025 (HippoRAG); "


def _sample(name: str, task: KnownTask, columns: tuple[str, ...]) -> KnownTask:
    """Return HippoRAG's sample of a task."""
    return replace(
        task,
        name=name,
        citation=_PAPERS + task.citation,
        source="https://huggingface.co/datasets/osunlp/HippoRAG_2",
        sizes={"dev": 1_000},
        only_split="dev",
        hub=Hub(id="json", splits={"dev": "dev"}, files={"dev": f"{_ADDRESS}{task.name}.json"}, columns=columns),
        files=f"{task.name}.json",
        samples={},
    )


_SUPPORTED = ("_id", "question", "answer", "supporting_facts", "context")

MUSIQUE_HIPPORAG = _sample(
    "hipporag-musique", MUSIQUE, ("id", "paragraphs", "question", "question_decomposition", "answer")
)
HOTPOTQA_HIPPORAG = _sample("hipporag-hotpotqa", HOTPOTQA, _SUPPORTED)
TWOWIKI_HIPPORAG = _sample("hipporag-2wiki", TWOWIKI, (*_SUPPORTED, "evidences"))
