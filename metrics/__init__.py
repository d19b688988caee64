"""What an answer, its passages and its citations are worth: pure functions, and DSPy metrics by name."""

from .citations import marked_fragments, marking_accuracy, supported_knowledge_count
from .closed_answers import label_accuracy, read_label, read_yes_no, yes_no_accuracy
from .found_passages import normalise_title, precision, recall_at_k, s_precision
from .intervals import Interval, mean_interval, paired_interval
from .long_answers import rouge_l
from .of_predictions import citation_scores
from .registry import METRICS, Gold, Metric, metric, metric_for
from .short_answers import cover_exact_match, exact_match, f1, pattern_in, pattern_match
from .text import contains, normalise, without_marks

__all__ = [
    "METRICS",
    "Gold",
    "Interval",
    "Metric",
    "citation_scores",
    "contains",
    "cover_exact_match",
    "exact_match",
    "f1",
    "label_accuracy",
    "marked_fragments",
    "marking_accuracy",
    "mean_interval",
    "metric",
    "metric_for",
    "normalise",
    "normalise_title",
    "paired_interval",
    "pattern_in",
    "pattern_match",
    "precision",
    "read_label",
    "read_yes_no",
    "recall_at_k",
    "rouge_l",
    "s_precision",
    "supported_knowledge_count",
    "without_marks",
    "yes_no_accuracy",
]
