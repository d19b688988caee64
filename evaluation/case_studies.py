"""Case studies: the same questions, answered by several runs, side by side on one page."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from ..common.errors import QuestreeError
from ..common.text import in_page
from ..programs.tree_views import TREE_STYLE, as_fragment
from .analyses import check_same_question
from .records import Record
from .run_folder import StoredRun
from .tables import SIMULATED


def telling_questions(runs: Sequence[StoredRun], limit: int) -> list[str]:
    """Return the ids of the questions that all runs finished; first those on which the scores differ most.

    Raises:
        QuestreeError: if there is no such question.
    """
    others = [{record.id: record for record in run.records} for run in runs[1:]]
    spread: dict[str, float] = {}
    for record in runs[0].records:
        finished = [record, *(other[record.id] for other in others if record.id in other)]
        if len(finished) == len(runs):
            scores = [one.scores.get(run.metric, 0.0) for one, run in zip(finished, runs, strict=True)]
            spread[record.id] = max(scores) - min(scores)
    if not spread:
        raise QuestreeError("These runs have no question in common; give runs over the same questions.")
    return sorted(spread, key=lambda id: -spread[id])[:limit]


def case_studies(runs: Sequence[StoredRun], ids: Sequence[str]) -> str:
    """Return a self-contained page: each question with every run's answer, references and tree; all of it escaped.

    Raises:
        QuestreeError: if a run did not finish one of the questions, or one of them differs between the runs.
    """
    return _PAGE.substitute(
        simulated=f"<p class=simulated>{SIMULATED}</p>" if any(run.simulated for run in runs) else "",
        cases="".join(_case(runs, id) for id in ids),
        columns=len(runs),
        style=TREE_STYLE,
    )


def _case(runs: Sequence[StoredRun], id: str) -> str:
    records = [_of(run, id) for run in runs]
    check_same_question(records)
    asked = records[0]
    gold = in_page(" / ".join(asked.answers))
    hops = f" · {asked.hops} hops" if asked.hops else ""
    shown = "".join(_answered(run, record) for run, record in zip(runs, records, strict=True))
    return (
        f"<section><h2>{in_page(asked.question)}</h2><p class=gold>{in_page(id)}{hops} · gold: <b>{gold}</b></p>"
        f'<div class="runs">{shown}</div></section>'
    )


def _answered(run: StoredRun, record: Record) -> str:
    if record.failure is None:
        answer = f"<p class=answer>{in_page(record.answer)}</p>"
    else:
        answer = f"<p class=failed>no answer ({in_page(str(record.failure))})</p>"
    scores = ", ".join(f"{in_page(name)} {score:.2f}" for name, score in record.scores.items())
    references = "".join(f"<li>{in_page(passage.cited())}</li>" for passage in record.references)
    tree = as_fragment(record.tree) if record.tree and record.tree.nodes else "<p>no tree</p>"
    return (
        f"<article><h3>{in_page(run.name)}</h3>{answer}<p class=gold>{scores} · {record.spent.calls} LM calls</p>"
        f"<p>{in_page(record.final_content)}</p><ol>{references}</ol>{tree}</article>"
    )


def _of(run: StoredRun, id: str) -> Record:
    found = next((record for record in run.records if record.id == id), None)
    if found is None:
        raise QuestreeError(f"{run.name} has no question {id!r}; its first is {run.records[0].id!r}.")
    return found


_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>case studies</title><style>
body{font:15px/1.45 system-ui,sans-serif;margin:2rem;color:#222;background:#fff}
h1{font-size:1.4rem} h2{font-size:1.15rem} h3{font-size:1rem;margin:0} section{margin:2.5rem 0}
.runs{display:grid;grid-template-columns:repeat($columns,minmax(20rem,1fr));gap:1.5rem;overflow-x:auto}
article{border-top:3px solid #8886;padding-top:.6rem;min-width:0;overflow-wrap:anywhere}
.answer{font-size:1.1rem;font-weight:600;margin:.3rem 0} .failed{color:#b8321d;font-weight:600}
.gold{color:#777;margin:.2rem 0} ol{font-size:.9rem;padding-left:1.4rem}
.simulated{padding:.5rem .8rem;border-left:4px solid #b8321d;background:#b8321d18;font-weight:600}
@media (prefers-color-scheme:dark){body{background:#191919;color:#ddd}}
$style .tree.root-list>ul{padding-left:0;border:0} .tree ul ul{padding-left:.9rem}
</style></head><body><h1>case studies</h1>$simulated$cases</body></html>
""")
