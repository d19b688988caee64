"""The study that we would publish: programs over several tasks, with links and without, the papers' way and ours.

    for task in hipporag-hotpotqa hipporag-2wiki hipporag-musique phantomwiki; do questree fetch $task; done
    make study LM=openai/gpt-4.1-mini MAX_COST=50

It types commands that you can type yourself: index, compile, compare, pack, export. If it is stopped, run it again:
what was paid counts against the budget. ``--dry-run`` asks five questions of each program with the simulated LM and
says what the whole would take, compilation included. Seconds are those of an LM that takes half a second a call.
"""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Any

from frame import begin, options, run_questree

from questree.data import load_task
from questree.evaluation import Record
from questree.evaluation.evaluation import is_grounded
from questree.evaluation.run_file import reading
from questree.evaluation.stored_runs import runs_in, steps_of
from questree.evaluation.tables import markdown_of
from questree.lm.episode import EpisodeStep, Place
from questree.lm.models import facts_of
from questree.lm.spent import Spent, total

TASKS = ["hipporag-hotpotqa", "hipporag-2wiki", "hipporag-musique", "phantomwiki"]
METHODS = ["searchain", "tree-of-reviews", "blendfilter"]
PROGRAMS = ["oner-cot", "react", "ircot", "evidence-chain", *METHODS, *(f"{name}:preset=paper" for name in METHODS)]
REHEARSED = 5  # questions of each program in a dry run
SECONDS = 0.5  # of a call
CHARACTERS = 4  # of a token


def main() -> None:
    """Run the study, or say what it would take."""
    parser = options(__doc__)
    parser.add_argument("--lm", required=True)
    parser.add_argument("--task", action="append", help=f"repeat it; default: {', '.join(TASKS)}")
    parser.add_argument("--program", action="append", help="repeat it; as `questree compare` takes it")
    parser.add_argument("--kind", default="bm25", help="of the index")
    parser.add_argument("--limit", type=int, default=1000, help="questions of each task")
    parser.add_argument("--max-cost", type=float)
    parser.add_argument("--max-calls", type=int)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("runs/study"))
    given = begin(parser)
    if given.dry_run:
        rehearsal = Namespace(**{**vars(given), "lm": "simulated", "limit": REHEARSED, "out": given.out / "rehearsal"})
        folders = list(compared(rehearsal))
        for folder in folders:
            print(f"\n## {folder.name}\n\n{markdown_of(rows_of(folder))}")
        print(f"\nIn all: {forecast(folders, given.lm, given.limit)}")
        return
    folders = list(compared(given))
    for folder in folders:
        print(f"\n## {folder.name}\n\n{markdown_of(rows_of(folder))}")
    questree("pack", *folders, "--out", given.out / "study.capsule")
    questree("export", given.out / "study.capsule", "--out", given.out / "site")
    print(f"\n{given.out / 'study.capsule'}, {given.out / 'site'}")


def compared(given: Namespace) -> Iterable[Path]:
    """Yield the folder of each comparison, once it is done: each task over the index, and over its links."""
    for task in given.task or TASKS:
        index = given.out / "indexes" / f"{task}-{given.kind}"
        if not index.exists():
            questree("index", load_task(task).corpus, "--kind", given.kind, "--out", index)
        for retriever in (f"linked:{index}", str(index)):
            asks = ["--task", task, "--lm", given.lm, "--retriever", retriever, "--limit", given.limit]
            programs = given.program or PROGRAMS
            out = given.out / (f"{task}-linked" if retriever.startswith("linked:") else task)
            uncompiled = [name for name in programs if ":" not in name and name in (*METHODS, "evidence-chain")]
            for name in uncompiled:
                made, few = given.out / "compiled" / f"{out.name}-{name}", [*asks[:-1], REHEARSED]
                questree("compile", name, "--optimizer", "annotated-few-shot", *few, *left(given), "--out", made)
                programs = [*programs, str(made / "program")]
            questree("compare", *programs, *metrics(task), *asks, *left(given), "--out", out)
            yield out


def metrics(task: str) -> list[str]:
    """Return the options that name a task's metrics: where it asks for lists, F1 and EM would take an item for all."""
    has_lists = any(one.style == "list" for asked in load_task(task).questions.values() for one in asked)
    return ["--metric", "by-style"] if has_lists else ["--metric", "f1", "--metric", "em"]


def left(given: Namespace) -> list[Any]:
    """Return the options that bound what may still be paid."""
    spent = paid(given.out)
    bounds = {"--max-cost": (given.max_cost, spent.cost), "--max-calls": (given.max_calls, spent.calls - spent.cached)}
    for name, (bound, used) in bounds.items():
        if bound is not None and bound <= used:
            raise SystemExit(f"The budget {name} {bound} is spent. Give more of it and run the same command again.")
    return [word for name, (bound, used) in bounds.items() if bound is not None for word in (name, bound - used)]


def paid(out: Path) -> Spent:
    """Return what the whole study has paid until now."""
    spent = []
    for file in out.glob("**/runs.db"):
        with reading(file) as runs:
            spent += runs.paid().values()
    return total(spent)


def questree(*words: Any) -> None:
    """Show a command of ours, and run it."""
    print("questree", *words, flush=True)
    run_questree(*words)


def rows_of(folder: Path) -> list[dict[str, str]]:
    """Return a line for each program: means over its questions."""
    with reading(folder / "runs.db") as file:
        return [
            {"program": f"{folder.name}: {run.name}"}
            | row(run.metric, run.records, [steps_of(file, run.number, one.id) for one in run.records])
            for run in runs_in(file)
        ]


def row(metric: str, records: Sequence[Record], steps: Sequence[Sequence[EpisodeStep]]) -> dict[str, str]:
    """Return the figures of a program, from its answers and their steps."""
    calls = [[step for step in those if step.kind == "request" and not step.fault] for those in steps]
    sizes = [[size(step) for step in those] for those in calls]
    return {
        metric: f"{mean(one.scores[metric] for one in records):.3f}",
        "grounded": f"{mean(one.scores[metric] * is_grounded(one) for one in records):.3f}",
        "calls": f"{mean(map(len, calls)):.2f}",
        "prompt tokens": f"{mean(sum(prompt for prompt, _ in those) for those in sizes) / CHARACTERS:.0f}",
        "reply tokens": f"{mean(sum(reply for _, reply in those) for those in sizes) / CHARACTERS:.0f}",
        "searches": f"{mean(sum(step.kind == 'search' for step in those) for those in steps):.1f}",
        "one call": f"{mean(len(one) == 1 for one in calls):.0%}",
        "seconds": f"{SECONDS * mean(in_a_row([step.place for step in steps]) for steps in calls):.1f}",
    }


def size(step: EpisodeStep) -> tuple[int, int]:
    """Return the characters of a prompt, and of its replies."""
    prompt: Any = step.request["messages"]
    replies: Any = step.outcome or []
    return sum(len(text) for _, text in prompt), sum(len(reply.get("text") or "") for reply in replies)


def in_a_row(places: Sequence[Place], depth: int = 1) -> int:
    """Return how many steps wait for one another; those of tasks that run at the same time do not.

    Args:
        places: of the steps, such as (1, 3); of the second task that the fourth step starts, (1, 4, 1, 1).
        depth: of the index in a place that counts the steps which wait for one another.
    """
    count = 0
    for _, same in groupby(sorted(places), key=lambda place: place[depth]):
        inner = [place for place in same if len(place) > depth + 2]
        tasks = groupby(inner, key=lambda place: place[depth + 1])
        count += max((in_a_row(list(task), depth + 2) for _, task in tasks), default=1)
    return count


def forecast(folders: Sequence[Path], lm: str, limit: int) -> str:
    """Return calls, tokens and dollars of the whole, of what each program took in the rehearsal.

    Args:
        folders: of the rehearsed comparisons; compilation asks as many questions in the rehearsal as in the whole.
        lm: the model that is to be asked.
        limit: questions of each task, if it has so many.
    """
    asked = [(folder, load_task(folder.name.removesuffix("-linked")).split("dev")) for folder in folders]
    counted = [(folder, min(limit, len(questions))) for folder, questions in asked]
    counted += [(file.parent, REHEARSED) for file in folders[0].parent.glob("compiled/*/runs.db")]
    whole = [0.0, 0.0, 0.0]
    for folder, count in counted:
        for line in rows_of(folder):
            taken = (line["calls"], line["prompt tokens"], line["reply tokens"])
            whole = [before + count * float(one) for before, one in zip(whole, taken, strict=True)]
    calls, prompts, replies = whole
    price = [facts_of(lm).get(f"{way}_cost_per_token") for way in ("input", "output")]
    dollars = "no price is known" if None in price else f"${prompts * price[0] + replies * price[1]:,.2f}"
    tokens = f"{prompts / 1e6:,.1f} million tokens of prompts and {replies / 1e6:,.1f} of replies"
    told = f"{calls:,.0f} calls, {tokens}, {dollars} ({lm}; without the thoughts of a model that reasons)."
    unknown = {questions[0].task: None for _, questions in asked if not any(one.steps for one in questions)}
    more = f" The simulated LM knows no step of {', '.join(unknown)}: there, a model may take twice as many calls."
    return told + (more if unknown else "")


if __name__ == "__main__":
    main()
