"""Which passages of a corpus the recorded questions rest on: the file of recordings tells only their titles.

What is written is a task and a recorded LM as well: its recall is by passage, and its LM reads gold passages alone. If
several passages bear a gold title, the gold one is the only one that holds the answer of the title's step. Questions
in which this does not tell one passage for each step are left out. Of MuSiQue's 200 questions with known paragraphs
(`musique.jsonl`), this tells the passages of 140, and is right for 138 of these.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from questree.data import Question, read_questions
from questree.metrics import contains, normalise_title, passage_fingerprint
from questree.retrieval import Passage, read_corpus

ByTitle = Mapping[str, Sequence[Passage]]


def rows_with_gold(file: Path, corpus: Path, task: str) -> Iterator[str]:
    """Yield the lines of a task's questions with ``gold_passages``, where the corpus tells which they are."""
    by_title = passages_by_title(corpus)
    gold = {one.id: gold_of(one, by_title) for one in read_questions(file) if one.task == task}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if told := gold.get(row["id"]):
            yield json.dumps(row | {"gold_passages": told}, ensure_ascii=False)


def write_questions(data: Path, out: Path) -> Path:
    """Write MuSiQue's recorded questions of a folder of data with their gold passages; return the file."""
    file, corpus = out / "questions.jsonl", data / "corpora" / "musique.jsonl"
    file.write_text("\n".join(rows_with_gold(data / "recorded.jsonl", corpus, "musique")), encoding="utf-8")
    return file


def passages_by_title(corpus: Path) -> ByTitle:
    """Return the corpus's passages by their normal titles."""
    found = defaultdict(list)
    for passage in read_corpus(corpus):
        found[normalise_title(passage.title)].append(passage)
    return found


def gold_of(question: Question, by_title: ByTitle) -> list[str]:
    """Return the fingerprints of the question's gold passages; nothing if one of them cannot be told."""
    gold = [passage for title in question.gold_titles for passage in _of_title(question, title, by_title)]
    return [] if None in gold else list(dict.fromkeys(passage_fingerprint(one.title, one.text) for one in gold if one))


def _of_title(question: Question, title: str, by_title: ByTitle) -> list[Passage | None]:
    """Return the title's passage for each step that it supports; None where several, or none, may be meant."""
    bearing = by_title.get(normalise_title(title), ())
    if len(bearing) == 1:
        return [bearing[0]]
    answers = [step.answer for step in question.steps if step.support_title == title and step.answer]
    holding = [[one for one in bearing if contains(one.text, answer)] for answer in answers]
    return [those[0] if len(those) == 1 else None for those in holding] or [None]
