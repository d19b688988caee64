"""Scores of an answer, its passages and its citations: pure functions, and DSPy metrics by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazily

if TYPE_CHECKING:
    from .answer_lists import count_match as count_match
    from .answer_lists import declined as declined
    from .answer_lists import declined_rates as declined_rates
    from .answer_lists import list_scores as list_scores
    from .answer_scores import compared as compared
    from .answer_scores import contains as contains
    from .answer_scores import cover_exact_match as cover_exact_match
    from .answer_scores import exact_match as exact_match
    from .answer_scores import f1 as f1
    from .answer_scores import label_accuracy as label_accuracy
    from .answer_scores import normalise as normalise
    from .answer_scores import pattern_in as pattern_in
    from .answer_scores import pattern_match as pattern_match
    from .answer_scores import read_label as read_label
    from .answer_scores import read_yes_no as read_yes_no
    from .answer_scores import rouge_l as rouge_l
    from .answer_scores import without_marks as without_marks
    from .answer_scores import yes_no_accuracy as yes_no_accuracy
    from .citations import citation_precision as citation_precision
    from .citations import citation_recall as citation_recall
    from .citations import citation_scores as citation_scores
    from .citations import keep_marks as keep_marks
    from .citations import marked_fragments as marked_fragments
    from .citations import marking_accuracy as marking_accuracy
    from .citations import marks_before_stops as marks_before_stops
    from .citations import supported_knowledge_count as supported_knowledge_count
    from .claims import agree as agree
    from .claims import all_stand_in as all_stand_in
    from .claims import claim_terms as claim_terms
    from .claims import items as items
    from .claims import stand_among as stand_among
    from .claims import stands_in as stands_in
    from .claims import supports_fragment as supports_fragment
    from .claims import telling_sentence as telling_sentence
    from .claims import tells as tells
    from .found_passages import normalise_title as normalise_title
    from .found_passages import passage_fingerprint as passage_fingerprint
    from .found_passages import passage_names as passage_names
    from .found_passages import precision as precision
    from .found_passages import ranked as ranked
    from .found_passages import recall_at_k as recall_at_k
    from .found_passages import s_precision as s_precision
    from .intervals import Interval as Interval
    from .intervals import bootstrap_interval as bootstrap_interval
    from .intervals import holm as holm
    from .intervals import mcnemar as mcnemar
    from .intervals import mean_interval as mean_interval
    from .intervals import paired_interval as paired_interval
    from .intervals import share_interval as share_interval
    from .registry import METRICS as METRICS
    from .registry import REGISTRY as REGISTRY
    from .registry import Gold as Gold
    from .registry import Metric as Metric
    from .registry import metric as metric
    from .registry import metric_for as metric_for
    from .values import by_value as by_value
    from .values import forms as forms

__getattr__ = lazily(__name__)
