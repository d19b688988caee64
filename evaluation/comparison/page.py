"""A comparison as one self-contained page, and the values for its template, there and on the pages of runs."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ...metrics import Interval, mean_interval
from ..evaluation import Evaluation
from ..html import as_html
from .plots import dot_rows, scatter
from .rows import PAPERS, Comparison


def as_page(comparison: Comparison) -> str:
    """Return the page."""
    about = {name: getattr(comparison, name) for name in ("title", "simulated", "self_written", "flipped")}
    return as_html("compared.html", root=None, one=shown(comparison), **about)


def shown(comparison: Comparison) -> dict[str, Any]:
    """Return the values for ``comparison.html``."""
    table, plots = comparison.table, plots_of(comparison)
    return {
        **{"facts": table.facts, "lines": table.lines, "details": table.details, "note": table.note},
        **{"numbers": table.numbers, "metric": comparison.metric, "task": comparison.task},
        **{"plots": [(heading, Markup(plot)) for heading, plot in plots], "stopped": comparison.stopped},
        **{"wins": {name: comparison.won_and_lost(name) for name in comparison.evaluations}},
        **{"papers": comparison.papers, "about_papers": PAPERS},
    }


def scores_by_hops(evaluation: Evaluation) -> dict[int, Interval]:
    """Return the mean score of the questions of each number of hops; nothing if the data set has no hops."""
    groups: dict[int, list[float]] = {}
    for record in evaluation.records:
        if record.hops is not None:
            groups.setdefault(record.hops, []).append(record.scores[evaluation.metric])
    return {hops: mean_interval(scores, seed=evaluation.seed) for hops, scores in sorted(groups.items())}


def plots_of(comparison: Comparison) -> list[tuple[str, str]]:
    """Return headings and plots: by calls; by cost where every call was paid; by hops if they differ."""
    said = " (simulated)" if comparison.simulated else ""
    evaluations, metric = comparison.evaluations, comparison.metric + said
    plots = []
    by_calls = {name: (one.spent.calls / one.n, one.score) for name, one in evaluations.items() if one.spent.calls}
    if by_calls:
        plots.append((f"{metric} against LM calls", scatter(by_calls, x="LM calls a question", y=metric)))
    cached = ", ".join(name for name, one in evaluations.items() if one.spent.cached)
    without = f" (without {cached}: the cache answered some of the calls)" if cached else ""
    priced = {name: one for name, one in evaluations.items() if one.spent.cost and not one.spent.cached}
    by_cost = {name: (1000 * one.spent.cost / one.n, one.score) for name, one in priced.items()}
    if by_cost:
        heading = f"{metric} against cost{without}"
        plots.append((heading, scatter(by_cost, x="US dollars for 1,000 questions", y=metric)))
    by_hops = {name: scores_by_hops(evaluation) for name, evaluation in evaluations.items()}
    if len({hops for groups in by_hops.values() for hops in groups}) > 1:
        plots.append((f"{metric} by number of hops", dot_rows(by_hops, x=metric)))
    return plots
