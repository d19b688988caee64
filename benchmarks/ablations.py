"""What each setting of the three methods does: makes the tables of docs/ablations.md.

    python benchmarks/ablations.py DATA --retriever INDEX > tables.md

DATA is a folder with `recorded.jsonl` and `corpora/musique.jsonl`, INDEX an index of that corpus. The questions are
those whose gold passages the corpus tells (`recorded_gold.py`), and the LM is the one that was recorded. Runs that are
in the folder are not made again.
"""

import shlex
from pathlib import Path

from frame import begin, options, run_command, run_questree
from recorded_gold import write_questions

ABLATIONS = [
    "searchain --over preset",
    "tree-of-reviews --over preset",
    "blendfilter --over preset",
    "tree-of-reviews --over expansion",
    "tree-of-reviews --over fusion",
    "tree-of-reviews --over relevance_pruning --over repetitive_pruning",
    "tree-of-reviews --over widths --value '[5, 3, 3]' --value '[5, 3]' --value '[5, 3, 3, 3]' --value '[10, 5, 3]'",
    "tree-of-reviews --over order",
    "tree-of-reviews --over enough_agreement --value 1 --value 2 --value 3",
    "tree-of-reviews --over max_calls --value null --value 6 --value 12 --value 18",
    "blendfilter --over filter",
    "blendfilter --set judgements=false --over topic",
    """blendfilter --over queries --value '["original", "external", "internal"]' --value '["original"]'
    --value '["original", "external"]' --value '["original", "internal"]'""",
    "blendfilter --over k --value 5 --value 3 --value 10",
    "blendfilter --over hops --value 1 --value 2",
    "blendfilter --over samples --value 1 --value 3",
]
"""Arguments of `questree compare`; the first value is the default."""


def main() -> None:
    """Run every ablation and print its command and its table."""
    parser = options(__doc__)
    parser.add_argument("data", type=Path, help="a folder with recorded.jsonl and corpora/musique.jsonl")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--retriever", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/ablations"))
    given = begin(parser)
    questions = write_questions(given.data, given.out)
    common = f"--task {questions} --lm recorded:{questions} --split dev,test --limit {given.limit} --tracking-uri none "
    common += f"--retriever {given.retriever} --metric cover-em --metric em --metric f1"
    # `make stale` names the tables that were made with other prompts
    prompts = run_command(["git", "rev-parse", "--short=7", "HEAD:signatures"])[1].strip()
    for number, arguments in enumerate(ABLATIONS):
        words, folder = shlex.split(arguments), given.out / str(number)
        run_questree("compare", *words, *shlex.split(common), "--out", folder)
        command = f"`{shlex.join(['questree', 'compare', *words])}`"
        print(f"{command} <!-- prompts {prompts} -->\n\n{(folder / 'table.md').read_text()}", flush=True)


if __name__ == "__main__":
    main()
