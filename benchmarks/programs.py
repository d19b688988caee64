"""What programs take over the same questions, and whether the quotes of evidence-chain stand at its marks.

    questree compare evidence-chain --all --metric grounded --retriever linked:INDEX --out runs/all
    python benchmarks/programs.py runs/all CORPUS

CORPUS is the file of passages that INDEX was made of. Seconds are those of an LM that takes half a second a call: calls
that run at the same time count once. A mark is false if no quote that the LM gave for its fact stands in the passage.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean

from questree.evaluation import Record
from questree.evaluation.evaluation import is_grounded
from questree.evaluation.run_file import reading
from questree.evaluation.stored_runs import runs_in, steps_of
from questree.evaluation.tables import markdown_of
from questree.lm.episode import EpisodeStep, Place
from questree.metrics.citations import marked_fragments
from questree.retrieval import read_corpus

SECONDS = 0.5  # of a call
CHARACTERS = 4  # of a token: the simulated LM counts words
_EVIDENCE = re.compile(r"\[\[ ## evidence ## \]\]\s*(\[.*?\])\s*\[\[ ## ", re.DOTALL)


def main() -> None:
    """Print the table, and the marks of evidence-chain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a comparison or an evaluation")
    parser.add_argument("corpus", type=Path)
    given = parser.parse_args()
    texts = {passage.id: passage.text for passage in read_corpus(given.corpus)}
    rows, marks = [], list[bool]()
    with reading(given.run / "runs.db") as file:
        for run in runs_in(file):
            asked = [(record, steps_of(file, run.number, record.id)) for record in run.records]
            rows.append(row(run.name, run.metric, asked))
            marks += [mark for one in asked for mark in marks_of(*one, texts)]
    print(markdown_of(rows))
    print(f"evidence-chain: {len(marks)} marks, {marks.count(False)} at a passage that lacks the quote")


def row(name: str, metric: str, asked: Sequence[tuple[Record, Sequence[EpisodeStep]]]) -> dict[str, str]:
    """Return the line of a program: means over its questions."""
    calls = [[step for step in steps if step.kind == "request" and not step.fault] for _, steps in asked]
    searches = [sum(step.kind == "search" for step in steps) for _, steps in asked]
    depths = [in_a_row([step.place for step in steps]) for steps in calls]
    sizes = [sum(map(size, steps)) for steps in calls]
    right = [record.scores[metric] for record, _ in asked]
    grounded = [record.scores[metric] * is_grounded(record) for record, _ in asked]
    return {
        "program": name,
        "calls": f"{mean(map(len, calls)):.1f}",
        "tokens": f"{mean(sizes) / CHARACTERS:,.0f}",
        "seconds": f"{SECONDS * mean(depths):.2f}",
        "searches": f"{mean(searches):.1f}",
        "one call": f"{mean(len(one) == 1 for one in calls):.0%}",
        metric: f"{mean(right):.2f}",
        "grounded": f"{mean(grounded):.2f}",
    }


def size(step: EpisodeStep) -> int:
    """Return how many characters a request and its reply have."""
    return sum(len(text) for _, text in step.request["messages"]) + sum(
        len(reply["text"] or "") for reply in step.outcome
    )


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


def marks_of(record: Record, steps: Sequence[EpisodeStep], texts: dict[str, str]) -> Iterator[bool]:
    """Yield for each mark whether a quote that the LM gave for its fact stands in the passage."""
    quotes = defaultdict[str, list[str]](list)
    for reply in (reply for step in steps if step.kind == "request" and not step.fault for reply in step.outcome):
        for fact in json.loads(found[1]) if (found := _EVIDENCE.search(reply["text"] or "")) else ():
            quotes[_plain(fact["fact"])] += [fact["quote"]] if fact["quote"] else []
    if not quotes:  # another program's
        return
    for told, numbers in marked_fragments(record.final_content):
        for number in numbers:
            text = _plain(texts[record.references[number - 1].id])
            yield any(_plain(quote) in text for quote in quotes[_plain(told)])


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).casefold().strip()


if __name__ == "__main__":
    main()
