"""A comparison as one self-contained page: the table, plots, and the papers' figures. Everything in it is escaped."""

from __future__ import annotations

from string import Template

from ...common.text import in_page
from ...metrics import Interval, mean_interval
from ..evaluation import Evaluation
from ..tables import SIMULATED, html_of
from .plots import dot_rows, scatter
from .rows import PAPERS, Comparison


def as_page(comparison: Comparison) -> str:
    """Return the page."""
    table, papers = comparison.table, comparison.papers
    return _PAGE.substitute(
        title=in_page(comparison.title),
        simulated=f"<p class=simulated>{SIMULATED}</p>" if comparison.simulated else "",
        facts="".join(f"<li>{in_page(fact)}</li>" for fact in table.facts),
        stopped=f"<p class=stopped>{in_page(comparison.stopped)}</p>" if comparison.stopped else "",
        read=in_page(table.note),
        table=html_of(table.lines),
        details=f"<h2>Details</h2>{html_of(table.details)}" if table.details else "",
        plots="".join(_figure(*plot) for plot in plots_of(comparison)),
        papers=f"<h2>What the papers report (%)</h2><p>{PAPERS}</p>{html_of(papers)}" if papers else "",
    )


def scores_by_hops(evaluation: Evaluation) -> dict[int, Interval]:
    """Return the mean score of the questions of each number of hops; nothing if the data set has no hops."""
    groups: dict[int, list[float]] = {}
    for record in evaluation.records:
        if record.hops is not None:
            groups.setdefault(record.hops, []).append(record.scores[evaluation.metric])
    return {hops: mean_interval(scores, seed=evaluation.seed) for hops, scores in sorted(groups.items())}


def plots_of(comparison: Comparison) -> list[tuple[str, str]]:
    """Return headings and plots: by calls, by cost where every call was paid, by hops if their number differs."""
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


def _figure(heading: str, plot: str) -> str:
    return f"<figure><figcaption>{in_page(heading)}</figcaption><div class='wide' tabindex='0'>{plot}</div></figure>"


_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>$title</title><style>
:root{--ink:#222;--quiet:#5a626e;--page:#fff;--line:#e2e2e2}
@media (prefers-color-scheme:dark){:root{--ink:#ddd;--quiet:#a5adb9;--page:#191919;--line:#333}}
body{font:16px/1.5 system-ui,sans-serif;max-width:78rem;margin:2rem auto;padding:0 1rem}
body{color:var(--ink);background:var(--page);overflow-wrap:anywhere}
h1{font-size:1.4rem} h2{font-size:1.15rem;margin-top:2.5rem} .facts{padding:0;list-style:none;color:var(--quiet)}
.facts li{display:inline} .facts li+li::before{content:" · "}
.simulated,.stopped{padding:.5rem .8rem;border-left:4px solid #b8321d;background:#b8321d18;font-weight:600}
.wide{overflow-x:auto} table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .5rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{vertical-align:bottom;font-weight:600} th:first-child,td:first-child{text-align:left}
.note{font-size:.85rem;color:var(--quiet)}
figure{margin:2.5rem 0 0} figcaption{font-weight:600;margin-bottom:.5rem}
.plot{max-width:none}</style></head><body>
<main><h1>$title</h1>$simulated<ul class="facts">$facts</ul>$stopped
$table<p class="note">$read</p>$plots$details$papers</main></body></html>
""")
