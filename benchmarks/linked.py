"""Linked retrieval beside what it links, for docs/retrieval.md; and the choice that is shipped.

    python benchmarks/linked.py train DATA --out FOLDER
    python benchmarks/linked.py tables DATA --out FOLDER --over musique=INDEX

DATA holds questions, `recorded.jsonl` and `corpora/`. Questions are halved by a hash of their ids: `train` reads the
first halves alone and writes `choice.json` and, for each task, a choice without it; `tables` reads the second halves.
`--over` names other indexes of the corpora.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import cast

import numpy as np
from frame import begin, options
from recorded_gold import gold_of, passages_by_title

from questree.data import Question, read_questions
from questree.metrics import mean_interval, normalise_title, paired_interval, passage_fingerprint
from questree.retrieval import LinkedRetriever, Passage, Retriever, build_index, load_index
from questree.retrieval.linked.calibration import cases_of, found_by
from questree.retrieval.linked.choice import Choice
from questree.retrieval.linked.choice_training import Case, train

TASKS = ("hotpotqa", "2wikimultihopqa", "musique")
STEP_WEIGHT, OVER_WEIGHT = 0.35, 0.7


def halves(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """The questions to develop on, and those to report."""
    ordered = sorted(questions, key=lambda asked: sha256(f"half {asked.id}".encode()).hexdigest())
    return ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]


def questions_of(data: Path, task: str) -> dict[str, list[Question]]:
    """The halves of a task's own questions, and of those recorded ones whose gold passages its corpus tells."""
    own = list(read_questions(data / f"{task}.jsonl"))
    by_title, known = passages_by_title(data / "corpora" / f"{task}.jsonl"), {asked.id for asked in own}
    recorded = [
        asked.model_copy(update={"gold_passages": tuple(gold)})
        for asked in read_questions(data / "recorded.jsonl")
        if asked.task == task and asked.id not in known and (gold := gold_of(asked, by_title))
    ]
    (dev, test), (more_dev, more_test) = halves(own), halves(recorded)
    return {"dev": [*dev, *more_dev], "test": test, "more test": more_test}


def steps_of(asked: Question, by_fingerprint: dict[str, Passage]) -> Iterator[tuple[str, Question]]:
    """The annotated steps whose gold passage can be told, each natural, or a relation of Wikidata's (``>>``)."""
    gold = [by_fingerprint[one] for one in asked.known_gold() if one in by_fingerprint]
    for number, step in enumerate(asked.resolved_steps()):
        titled = [one for one in gold if normalise_title(one.title) == normalise_title(step.support_title or "")]
        held = [one for one in titled if (step.answer or "").lower() in one.text.lower()] or titled
        if len(held) == 1:
            known = (passage_fingerprint(held[0].title, held[0].text),)
            update = {"id": f"{asked.id}/{number}", "question": step.question, "gold_passages": known, "paragraphs": ()}
            yield ">>" if ">>" in step.question else "natural", asked.model_copy(update=update)


class World:
    """A task's corpus with its links, and its questions."""

    def __init__(self, data: Path, task: str, out: Path) -> None:
        folder = out / f"{task}.linked"
        if not folder.exists():
            build_index(data / "corpora" / f"{task}.jsonl", folder, kind="linked")
        retriever = cast(LinkedRetriever, load_index(folder, full_check=False))
        self.task, self.linked, self.questions = task, retriever, questions_of(data, task)
        passages = [retriever.passages[place] for place in range(len(retriever.passages))]
        self.by_fingerprint = {passage_fingerprint(one.title, one.text): one for one in passages}

    def steps(self, *parts: str) -> dict[str, list[Question]]:
        """The steps of the questions of some parts, by kind."""
        found = defaultdict(list)
        for asked in (asked for part in parts for asked in self.questions[part]):
            for kind, step in steps_of(asked, self.by_fingerprint):
                found[kind].append(step)
        return found

    def cases(self, base: Retriever, questions: Sequence[Question], weight: float) -> list[Case]:
        """The questions over a base, to train on."""
        cases = cases_of(self.linked.over(base), questions)
        return [replace(case, id=case.id.split("/")[0], weight=weight) for case in cases]


def trained(worlds: Sequence[World], over: Mapping[str, Retriever]) -> Choice:
    """A choice trained on the first halves, over BM25 and over the other indexes."""
    cases = []
    for world in worlds:
        steps = [asked for kind in world.steps("dev").values() for asked in kind]
        for base, weight in ((world.linked.base, 1.0), (over.get(world.task), OVER_WEIGHT)):
            if base is not None:
                cases += world.cases(base, world.questions["dev"], weight)
                cases += world.cases(base, steps, weight * STEP_WEIGHT)
    return train(cases)[0]


def row(name: str, found: Sequence[Sequence[int]], base: Sequence[Sequence[int]], cases: Sequence[Case]) -> str:
    """A line of a table: recall at 1, 2, 3 and 5, chains among 15, and their differences to the base."""

    def recalls(of: Sequence[Sequence[int]], k: int) -> list[float]:
        return [float(np.isin(case.gold, list(one)[:k]).mean()) for case, one in zip(cases, of, strict=True)]

    def chains(of: Sequence[Sequence[int]]) -> list[float]:
        return [float(share == 1) for share in recalls(of, 15)]

    cells = [f"{np.mean(recalls(found, k)):.3f}" for k in (1, 2, 3)]
    for measure in (lambda of: recalls(of, 5), chains):
        cells += [str(mean_interval(measure(found)))]
        cells += ["" if found is base else str(paired_interval(measure(base), measure(found)))]
    return f"| {name} | {' | '.join(cells)} |"


HEAD = "| | recall@1 | @2 | @3 | recall@5 | less its base | chain among 15 | less its base |\n" + "|---" * 8 + "|"


def tables(worlds: Sequence[World], over: Mapping[str, Retriever], out: Path) -> Iterator[str]:
    """The tables: whole questions, and single steps."""
    for world in worlds:
        unseen = Choice.load(out / f"unseen-{world.task}.json")
        seen = Choice.load(out / "choice.json")
        parts = {"questions": world.questions["test"]} | world.steps("test", "more test")
        for name, questions in parts.items():
            lines = []
            for base in filter(None, [world.linked.base, over.get(world.task)]):
                cases = cases_of(world.linked.over(base), questions)
                ranked = [case.ranking.tolist() for case in cases]
                lines.append(row(base.name, ranked, ranked, cases))
                for told, choice in (("linked", seen), ("linked, task unseen", unseen)):
                    found = [list(one) for one in found_by(choice, cases)]
                    lines.append(row(f"{told} over {base.name}", found, ranked, cases))
            yield f"\n{world.task}, {name}, n={len(cases)}\n\n{HEAD}\n" + "\n".join(lines)


def main() -> None:
    """Train, or print tables."""
    parser = options(__doc__)
    parser.add_argument("step", choices=["train", "tables"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of indexes and choices")
    parser.add_argument("--over", action="append", default=[], help="TASK=INDEX, another index of the task's corpus")
    given = begin(parser)
    worlds = [World(given.data, task, given.out) for task in TASKS]
    over = {task: load_index(place, full_check=False) for task, place in (one.split("=") for one in given.over)}
    if given.step == "tables":
        print("\n".join(tables(worlds, over, given.out)))
        return
    for name, left_out in (("choice", None), *((f"unseen-{task}", task) for task in TASKS)):
        trained([world for world in worlds if world.task != left_out], over).save(given.out / f"{name}.json")


if __name__ == "__main__":
    main()
