"""What commands print of runs: their scores, what they cost, and what each figure means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..common.text import dollars
from .screen import Screen, echo, print_figures, table_of

if TYPE_CHECKING:
    from ..evaluation import Comparison, Evaluation, Repeats
    from ..evaluation.evaluation import Paired
    from ..optimize import Compiled


def bill(calls: int, tokens: int, cost: float) -> str:
    """Return what was spent in words; dollars only if a price is known."""
    return f"{calls:,} calls, {tokens:,} tokens" + (f", {dollars(cost)}" if cost else "")


def evaluation_table(evaluations: Mapping[str, Evaluation], *, details: bool = False) -> Any:
    """Return six rows, or with details all, each explained; a column for each evaluation, and "simulated" above it."""
    figures = {head: _figures(one) | (_details(one) if details else {}) for head, one in evaluations.items()}
    lines = [
        {"": name, **{head: one.get(name, "") for head, one in figures.items()}, "what it is": _explained(name)}
        for name in {name: None for one in figures.values() for name in one}
    ]
    columns = {head: dict[str, Any]() for head in ("", *evaluations, *(["what it is"] if details else []))}
    return table_of(lines, columns, max((one.warning for one in evaluations.values()), key=len))


def print_evaluations(evaluations: Mapping[str, Evaluation], *, details: bool = False) -> None:
    """Print the table of evaluations, and what shows the rest."""
    console = Screen()
    console.print(evaluation_table(evaluations, details=details))
    if not details:
        echo("what each row means, and the rest of the figures: --details")


def print_comparison(comparison: Comparison, *, details: bool = False) -> None:
    """Print a line for each program: its score and what it cost; with details every figure."""
    from ..evaluation.evaluation import FAILURES

    main = {"program", comparison.metric, "grounded", "declined", "not declined", "p", "failed", "LM calls", "cost"}
    lines = [
        {name: cell for name, cell in line.items() if details or name in main or name.startswith("difference")}
        for line in comparison.table.lines
    ]
    print_figures(lines, simulated=comparison.warning)
    if details:
        print_figures(comparison.table.details, simulated=comparison.warning)
        for name in [name for line in (lines[0], comparison.table.details[0]) for name in line if name != "program"]:
            echo(f"{name}: {_explained(name)}")
        echo(FAILURES)
    else:
        echo("every figure, and what each is: --details")


def print_agreement(evaluations: Iterable[Evaluation]) -> None:
    """Print how far a judge among the metrics agrees with cover-EM, over all the answers."""
    from ..evaluation.lm_judge import agreement
    from ..evaluation.record_scores import by_judges

    records = [record for one in evaluations for record in one.records]
    for judge in dict.fromkeys(name for record in records for name in by_judges(record)):
        if (found := agreement(records, judge)) is not None:  # else no answer was judged
            echo(f"{judge} agrees with cover-EM: {found!s}")


def spread_of(repeats: Repeats) -> str:
    """Return the score of repeated runs, and the variance within and between questions, in a line."""
    mean = f"{repeats.runs[0].metric} {repeats.score:.3f} over {len(repeats.runs)} repeats"
    return f"{mean}; variance within questions {repeats.within:.3f}, between {repeats.between:.3f}"


def print_compiled(compiled: Compiled, *, details: bool = False) -> None:
    """Print the scores before and after, and the gain with its interval."""
    print_evaluations({"before": compiled.before, "after": compiled.after}, details=details)
    gain, calls, paid = compiled.gain, compiled.compilation.spent.calls, compiled.compilation.paid
    echo(
        f"gain {gain:+.3f}, paired over {gain.n} questions; compiling took "
        f"{bill(calls, paid.tokens_in + paid.tokens_out, paid.cost)}, {compiled.compilation.seconds:.0f} s"
    )
    questions = compiled.compilation.questions
    split = f"{questions['train']} to learn from"
    split += f", {questions['val']} to compare candidates" if questions["val"] else ""
    echo(f"questions: {split}, {questions['dev']} to score before and after")
    echo(f"changed: {compiled.compilation.changed}")


def print_paired(evaluations: Mapping[str, Evaluation], paired: Paired) -> None:
    """Print the figures then and now, and the paired difference."""
    print_evaluations(evaluations)
    p = "" if paired.p is None else f"; p {paired.p:.3f} (McNemar, mid-p)"
    echo(f"difference {paired.difference:+.3f}, paired over {paired.after.n} questions{p}")


def _figures(evaluation: Evaluation) -> dict[str, str]:
    """Return the figures that matter most."""
    spent, paid, n = evaluation.spent, evaluation.paid, evaluation.n
    cached = f", {paid.cached:,} of {paid.calls:,} calls from the cache" if paid.cached else ""
    cost = "$0.00" if paid.calls and paid.cached == paid.calls else dollars(paid.cost).replace("–", "no price known")
    return {
        evaluation.metric: f"{evaluation.score:.3f}, n={n}",
        "grounded": f"{evaluation.grounded:.3f}",
        **{name: str(rate) for name, rate in evaluation.rates.items()},
        "failed": ", ".join(f"{count} {cause}" for cause, count in evaluation.failures.items()) or "0",
        "calls": f"{spent.calls / n:.1f} a question",
        "tokens": f"{(spent.tokens_in + spent.tokens_out) / n:,.0f} a question",
        "cost": f"{cost}{cached}",
    }


def _details(evaluation: Evaluation) -> dict[str, str]:
    """Return the other figures of an evaluation."""
    from ..evaluation.evaluation import ANSWERED, of_how_many

    spent, n, nodes = evaluation.spent, evaluation.n, sum(evaluation.sources.values())
    figures = {metric: f"{score:.3f}{of_how_many(evaluation, metric)}" for metric, score in evaluation.others.items()}
    if evaluation.chain_cited:
        figures[f"{evaluation.metric}, chain cited"] = f"{evaluation.chain_cited:.3f}"
    if evaluation.failures and evaluation.answered:
        figures[f"{evaluation.metric}, {ANSWERED}"] = f"{evaluation.answered:.3f}"
    found = {name: f"{value:.3f}{of_how_many(evaluation, name)}" for name, value in evaluation.retrieval.items()}
    figures |= found or {"recall": "–"}
    figures["words in, out"] = f"{spent.words_in / n:.0f}, {spent.words_out / n:.0f} a question"
    figures["seconds"] = f"{evaluation.seconds:.2f} a question"
    return figures | {f"nodes: {source}": f"{count / nodes:.0%}" for source, count in evaluation.sources.items()}


_EXPLAINED = {
    "difference": "question by question, with its 95% interval",
    "grounded": "the score, where only answers count whose deciding fact stands in a cited passage",
    "declined": "the share of the questions without an answer to which none was given",
    "not declined": "the share of the questions with an answer to which one was given",
    "chain cited": "the share of answers that cite every gold passage; of a score, where only such answers count",
    "failed": "questions without an answer, by cause; each counts as wrong",
    "calls": "LM calls",
    "tokens": "of prompts and replies together",
    "cost": "of every LM request, also of stopped attempts and judges; what the cache answers is free",
    "answered alone": "the score of the questions that did not fail",
    "citation_precision": "share of the marks whose passage supports their sentence",
    "citation_recall": "share of the sentences with a mark that supports them",
    "skc": "facts in the answer that a cited passage supports",
    "amp": "share of the marks at the right fact",
    "recall@": "share of the gold passages among the first that were found",
    "recall kept": "share of the gold passages among those that the answer rests on",
    "recall": "nothing was searched, or no gold passages are known",
    "precision": "share of the passages that are gold",
    "documents a call": "passages for each LM call",
    "documents": "passages that the reasoning saw",
    "evidences": "passages that the program kept as evidence",
    "nodes": "share of the steps whose answer comes from there",
    "words": "of prompts, of replies",
    "rounds": "turns between the LM and the searches",
    "p": "chance of such a difference, or a larger one, between equal programs (McNemar, mid-p; Holm if several)",
    "seconds": "from question to answer",
}
"""What each row is; of a row that is not here, the first that stands in its name."""


def _explained(row: str) -> str:
    text = _EXPLAINED.get(row) or next((text for name, text in _EXPLAINED.items() if name in row and name != "p"), None)
    return text or "mean over the questions, with its 95% interval"
