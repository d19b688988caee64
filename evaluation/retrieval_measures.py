"""Measures of a question's retrieval and citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import dspy

from ..metrics import citation_scores, precision, recall_at_k, s_precision
from ..metrics.found_passages import answer_stands_in, answers_in_passages, gold_names, names_as

RECALL_AT, CONTEXTS = (2, 5, 15), (5, 15)
"""The numbers of passages at which recall, chains and answers are measured."""


def retrieval_scores(prediction: dspy.Prediction, gold: Mapping[str, Any] | dspy.Example) -> dict[str, float]:
    """Return the measures of a question's retrieval and citations.

    ``recall@2``, ``@5``, ``@15`` and ``@all``, and ``precision@all``, of the passages that were seen, in the common
    order; ``chain@5`` and ``@15``, whether all gold passages are among them; ``recall``, ``precision`` and
    ``s-precision`` "kept" of those that the answer rests on; ``chain cited``, whether it cites all gold passages. If
    only the titles of the gold passages are known, each name begins with ``title``. ``answer@5`` and ``@15``: whether a
    gold answer stands in them. Also ``documents``, the different passages that were looked at, and ``evidences`` (ToR,
    table 5); ``skc`` and ``amp`` of the citations (SearChain, section 4.3.4), their precision and recall; ``skc`` and
    ``citation_recall`` also where nothing is cited.

    Args:
        prediction: of the question; one that does not tell what was seen has no recall@k.
        gold: the example; the titles of its gold passages are taken where these are not known.
    """
    scores: dict[str, float | None] = {}
    passages, titles = gold.get("gold_passages") or (), gold.get("gold_titles") or ()
    tree, evidence, told = prediction.get("tree"), prediction.get("evidence"), prediction.get("seen")
    if (passages or titles) and prediction.get("passages") is not None:
        wanted = gold_names(passages, titles)
        kept, seen = (names_as(ranking, passages) for ranking in (prediction.passages, told or prediction.passages))
        measures: dict[str, float | None] = {}
        if told is not None:
            measures = {f"recall@{k}": recall_at_k(seen, wanted, k) for k in RECALL_AT}
            measures |= {f"chain@{k}": measures[f"recall@{k}"] == 1 for k in CONTEXTS}
        measures |= {"recall@all": recall_at_k(seen, wanted), "precision@all": precision(seen, wanted)}
        measures |= {"recall kept": recall_at_k(kept, wanted), "precision kept": precision(kept, wanted)}
        measures["s-precision kept"] = s_precision(kept, wanted)
        measures["chain cited"] = recall_at_k(names_as(prediction.get("references") or (), passages), wanted) == 1
        scores = {name if passages else f"title {name}": value or 0.0 for name, value in measures.items()}
    needed: Sequence[Sequence[str]] = gold.get("needed") or [gold.get("answers") or ()]
    style = "count" if gold.get("kind") == "count" else gold.get("answer_style") or "short"  # no passage holds a count
    looked_for = [answers_in_passages(item, style) for item in needed]
    if all(looked_for) and told is not None:
        of = partial(answer_stands_in, are_regex=bool(gold.get("answers_are_regex")))
        scores |= {f"answer@{k}": float(all(of(told[:k], item) for item in looked_for)) for k in CONTEXTS}
    scores |= {} if tree is None else {"documents": len(tree.passages())}
    scores |= {} if evidence is None else {"evidences": len(evidence)}
    if tree is not None and prediction.get("final_content") is not None:
        scores |= citation_scores(prediction)
    return {name: float(value) for name, value in scores.items() if value is not None}
