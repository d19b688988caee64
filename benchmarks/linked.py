"""Linked retrieval beside what it links, in one command: the tables of docs/retrieval.md and docs/scale.md.

    python benchmarks/linked.py DATA --out FOLDER

DATA holds questions, `recorded.jsonl` and `corpora/`. Questions are halved by a hash of their ids: train, test.
"Task unseen" was trained on the other two tasks. What is in FOLDER is kept. ``--train`` makes FOLDER/choice.json.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np
from frame import begin, in_own_process, memory, options, took
from recorded_gold import gold_of, passages_by_title

from questree.data import Question, read_questions
from questree.evaluation.attacks.seeded_retriever import seeded
from questree.evaluation.tables import markdown_of
from questree.metrics import mean_interval, normalise_title, paired_interval, passage_fingerprint, share_interval
from questree.retrieval import LinkedRetriever, Passage, Retriever, build_index, load_index, read_corpus
from questree.retrieval.indexes.contents import held_version
from questree.retrieval.linked.calibration import Case, cases_of, found_by, train
from questree.retrieval.linked.choice import Choice

TASKS = ("hotpotqa", "2wikimultihopqa", "musique")
INVENTED = ("phantomwiki-easy", "phantomwiki-hard")
OTHERS = tuple(f"{task}.{kind}" for task in TASKS for kind in ("rerank", "exact"))
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
    """A task's corpus with its links and other indexes, and its questions."""

    def __init__(self, data: Path, task: str, out: Path, others: Sequence[str]) -> None:
        self.task, self.corpus, self.out, self.questions = task, data / "corpora" / f"{task}.jsonl", out, {}
        self.linked = cast(LinkedRetriever, self.index(f"{task}.linked"))
        self.others = [one for one in others if one.startswith(f"{task}.")]
        self.questions = questions_of(data, task)
        self.by_fingerprint = {passage_fingerprint(one.title, one.text): one for one in read_corpus(self.corpus)}

    def index(self, name: str) -> Retriever:
        """An index of the corpus, which is made if it is not there."""
        folder = self.out / name
        if not held_version(folder):
            build_index(self.corpus, folder, kind=name.split(".")[1])
        return load_index(folder)

    @cached_property
    def over(self) -> dict[str, Retriever]:
        """The indexes that are compared, BM25 first."""
        return {"bm25": self.linked.base} | {one.split(".")[1]: self.index(one) for one in self.others}

    def steps(self, *parts: str) -> dict[str, list[Question]]:
        """The steps of the questions of some parts, by kind."""
        found = defaultdict(list)
        for asked in (asked for part in parts for asked in self.questions[part]):
            for kind, step in steps_of(asked, self.by_fingerprint):
                found[kind].append(step)
        return found


def trained(worlds: Sequence[World], out: Path) -> Choice:
    """The choice that is in a file, or is trained on the first halves, over BM25 and rerank, and kept there."""
    if not out.exists():
        cases = []
        for world in worlds:
            steps = [asked for kind in world.steps("dev").values() for asked in kind]
            parts = [(world.questions["dev"], 1.0), (steps, STEP_WEIGHT)]
            for (questions, weight), base in product(parts, [one for one in world.over if one != "exact"]):
                found = cases_of(world.linked.over(world.over[base]), questions)
                weight *= OVER_WEIGHT if base == "rerank" else 1
                cases += [case._replace(id=case.id.split("/")[0], weight=weight) for case in found]
        train(cases)[0].save(out)
    return Choice.load(out)


def measures(cases: Sequence[Case], found: Sequence[Sequence[int]]) -> dict[str, list[float]]:
    """What is measured of each case, by name."""
    pairs = list(zip(cases, found, strict=True))
    recall = {k: [float(np.isin(case.gold, list(one)[:k]).mean()) for case, one in pairs] for k in (1, 2, 3, 5, 15)}
    chains = [float(share == 1) for share in recall.pop(15)]
    return {f"recall@{k}": of for k, of in recall.items()} | {"chain in 15": chains}


def tables(world: World, seen: Choice, unseen: Choice) -> Iterator[str]:
    """The tables of whole questions, and of single steps: what each finds, and how that differs from each other one."""
    for name, questions in ({"questions": world.questions["test"]} | world.steps("test", "more test")).items():
        found: dict[str, Sequence[Sequence[int]]] = {}
        cases: Sequence[Case] = ()
        for base, retriever in world.over.items():
            cases = cases_of(world.linked.over(retriever), questions)
            found[base] = [case.ranking.tolist() for case in cases]
            for told, choice in (("linked", seen), ("linked, task unseen", unseen)) if base != "exact" else ():
                found[f"{told}, over {base}"] = [one.tolist() for one in found_by(choice, cases)]
        yield table(f"{world.task}, {name}", cases, found, list(world.over))


def table(name: str, cases: Sequence[Case], found: dict[str, Sequence[Sequence[int]]], over: Sequence[str]) -> str:
    """What was found of the cases by each, and how that differs from each base."""
    measured = {one: measures(cases, those) for one, those in found.items()}
    rows = [{"": one} | {what: str(mean_interval(of)) for what, of in its.items()} for one, its in measured.items()]
    differences = [
        {"": f"{one}, less {base}"} | {what: str(paired_interval(measured[base][what], its[what])) for what in its}
        for one, its in measured.items()
        for base in over
        if one not in over
    ]
    return f"\n{name}, n={len(cases)}\n\n{markdown_of(rows)}\n\n{markdown_of(differences)}"


def without_titles(world: World) -> list[Case]:
    """The test questions over the same passages, none of which has a title; the gold ones are known by position."""
    folder = world.out / f"{world.task}-without-titles.linked"
    if not held_version(folder):
        bare = (one.model_copy(update={"title": ""}) for one in read_corpus(world.corpus))
        build_index(bare, folder, kind="linked")
    text = {asked.id: asked.question for asked in world.questions["test"]}
    cases = cases_of(world.linked, world.questions["test"])
    asked = cast(LinkedRetriever, load_index(folder)).asked([text[case.id] for case in cases])
    return [case._replace(question=one, ranking=ranking) for case, (one, ranking) in zip(cases, asked, strict=True)]


def other_ground(data: Path, out: Path, choice: Choice) -> Iterator[str]:
    """Tables over BM25 of corpora without titles, and of invented worlds by the number of hops."""
    worlds = {task: World(data, task, out, []) for task in (*TASKS, *INVENTED)}
    parts = {f"{task} without titles": without_titles(worlds[task]) for task in TASKS}
    for task in INVENTED:
        for hops in sorted({asked.hops for asked in worlds[task].questions["test"] if asked.hops}):
            those = [asked for asked in worlds[task].questions["test"] if asked.hops == hops]
            parts[f"{task}, {hops} hops"] = cases_of(worlds[task].linked, those)
    for name, cases in parts.items():
        found = {"bm25": [case.ranking.tolist() for case in cases]}
        found["linked, over bm25"] = [one.tolist() for one in found_by(choice, cases)]
        yield table(name, cases, found, ["bm25"])


def planted(world: World) -> str:
    """How often a passage is found that was planted for each question, or for any: by BM25, and by links over it."""
    asked = [one.question for one in world.questions["test"]]
    titles, rows = [one.title for one in world.by_fingerprint.values() if one.title], []
    plants = {f"{n} titles": [", ".join(titles[:: len(titles) // n][:n])] for n in (64, 1000)}
    plants["a question's names, three times"] = [" ".join(re.findall(r"[A-Z]\w+", one) * 3) for one in asked]
    for name, texts in (plants | {"a question, three times": [" ".join([one] * 3) for one in asked]}).items():
        linked = seeded(world.linked, [Passage(id=f"planted {n}", title="", text=text) for n, text in enumerate(texts)])
        for told, one in (("bm25", cast(LinkedRetriever, linked).base), ("linked", linked)):
            found = [[passage.id.startswith("planted") for passage in those] for those in one.batch(asked, 15)]
            shares = {
                f"among {k}": str(share_interval(sum(any(of[:k]) for of in found), len(found))) for k in (1, 5, 15)
            }
            rows.append({"planted": name, "found by": told} | shares)
    return f"\n{world.task}, questions for which a planted passage is found\n\n{markdown_of(rows)}"


def copied(passages: Sequence[Passage], copies: int) -> Iterator[Passage]:
    """The passages so many times. In each further copy every capitalised word has another ending, so names differ."""
    for copy in range(copies):
        mark = "" if copy == 0 else "".join(chr(97 + int(digit)) for digit in str(copy))
        for one in passages:
            title, text = (re.sub(r"\b([A-Z]\w{3,})", rf"\1{mark}", part) for part in (one.title, one.text))
            yield Passage(id=f"{one.id}-{copy}", title=title, text=text)


def build_copies(corpus: Path, folder: Path, copies: int) -> dict[str, str]:
    """Build links over so many copies of a corpus; what that took."""
    passages = copied(list(read_corpus(corpus)), copies)
    _, taken = took(lambda: build_index(passages, folder, kind="linked", overwrite=True))
    return {"built in": f"{taken.processor:.0f} s", "build MB": f"{memory('VmHWM'):,.0f}"}


def search_copies(folder: Path, asked: Sequence[str]) -> dict[str, str]:
    """What the links take on disk, and a search in memory and time."""
    linked = cast(LinkedRetriever, load_index(folder))
    size = sum(path.stat().st_size for path in folder.glob("*/links/*"))
    count, links = len(linked.passages), len(linked.links.links.items) + len(linked.links.names.items)

    def least(one: Retriever) -> str:
        turns = [took(partial(one.batch, [f"{text}{'?' * turn}" for text in asked], 10)) for turn in range(3)]
        return f"{1000 * min(taken.processor for _, taken in turns) / len(asked):.1f}"

    return {
        "passages": f"{count:,}",
        "links and shared names a passage": f"{links / count:.1f}",
        "B a link or name": f"{size / links:.1f}",
        "B a passage": f"{size / count:.0f}",
        "search MB": f"{memory('VmHWM'):,.0f}",
        "ms a query: bm25": least(linked.base),
        "linked": least(linked),
    }


def main() -> None:
    """Make what is missing, and print tables."""
    parser = options(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of indexes and choices")
    parser.add_argument("--train", action="store_true", help="measure a choice that is trained anew")
    parser.add_argument("--others", nargs="*", default=OTHERS, choices=OTHERS, help="indexes that are compared as well")
    parser.add_argument("--copies", type=int, nargs="*", default=[1, 8, 44], help="of HotpotQA's passages")
    parser.add_argument("--other-ground", action="store_true", help="only corpora without titles and invented worlds")
    given = begin(parser)
    if given.other_ground:
        choice = Choice.load(given.out / "choice.json") if given.train else Choice.load()
        print("\n".join(other_ground(given.data, given.out, choice)))
        return
    worlds = [World(given.data, task, given.out, given.others) for task in TASKS]
    seen = trained(worlds, given.out / "choice.json") if given.train else Choice.load()
    for world in worlds:
        others = [one for one in worlds if one is not world]
        print("\n".join(tables(world, seen, trained(others, given.out / f"unseen-{world.task}.json"))), flush=True)
    print(planted(worlds[-1]), flush=True)
    asked, lines = [one.question for one in worlds[0].questions["test"][:30]], []
    for copies in given.copies:
        folder, figures = given.out / f"copies-{copies}", given.out / f"copies-{copies}.json"
        if not figures.exists():
            figures.write_text(json.dumps(in_own_process(build_copies, worlds[0].corpus, folder, copies)))
        lines.append(in_own_process(search_copies, folder, asked) | json.loads(figures.read_text()))
    if lines:
        print(f"\n{markdown_of(lines)}")


if __name__ == "__main__":
    main()
