"""One search in HippoRAG's protocol: its sample's own passages, and gold passages by their titles.

    python benchmarks/hipporag.py QUESTIONS CORPUS --out FOLDER [--half test] [--kinds bm25 linked rerank exact]

QUESTIONS and CORPUS are files of the sample, as `questree fetch hipporag-2wiki` writes them. The choice of ``linked``
that is shipped was trained on the first half of questions of three data sets, 2WikiMultiHopQA's among them: with
``--half test`` the others alone are asked. No LM is called.
"""

from collections.abc import Sequence
from pathlib import Path

from frame import begin, options, took
from linked import halves

from questree.data import Question, read_questions
from questree.evaluation.tables import markdown_of
from questree.metrics import mean_interval, normalise_title
from questree.retrieval import Retriever, build_index, load_index
from questree.retrieval.indexes.contents import held_version

MOST = 10


def measures(retriever: Retriever, asked: Sequence[Question]) -> dict[str, str]:
    """The share of each question's gold titles among the first, whether all are among five, and the time."""
    found, taken = took(lambda: retriever.batch([one.question for one in asked], MOST))
    row: dict[str, str] = {}
    titles = [[normalise_title(passage.title) for passage in those] for those in found]
    gold = [{normalise_title(title) for title in one.gold_titles} for one in asked]
    for k in (2, 5, MOST):
        shares = [len(one & set(those[:k])) / len(one) for one, those in zip(gold, titles, strict=True)]
        row[f"recall@{k}"] = str(mean_interval(shares))
        if k == 5:
            row["whole chain@5"] = str(mean_interval([float(share == 1) for share in shares]))
    return row | {"ms a query": f"{1000 * taken.processor / len(asked):.0f}"}


def main() -> None:
    """Make the indexes that are missing, and print the table."""
    parser = options(__doc__)
    parser.add_argument("questions", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of the indexes, which are kept")
    parser.add_argument("--half", choices=("test", "dev"), help="default: all questions")
    parser.add_argument("--kinds", nargs="+", default=["bm25", "linked", "rerank", "exact"])
    given = begin(parser)
    known = list(read_questions(given.questions))
    dev, test = halves(known)
    asked = {"dev": dev, "test": test, None: known}[given.half]
    rows = []
    for kind in given.kinds:
        folder = given.out / kind
        if not held_version(folder):
            build_index(given.corpus, folder, kind=kind)
        rows.append({"index": kind} | measures(load_index(folder), asked))
    print(f"n={len(asked)}{f', the {given.half} half' if given.half else ''}\n\n{markdown_of(rows)}")


if __name__ == "__main__":
    main()
