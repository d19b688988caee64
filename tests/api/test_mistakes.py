"""What is typed wrongly is told in one line, or in typer's box, with what to do instead."""

import pytest

from questree.data import MINI_CORPUS

MISTAKES = [
    ("ask Why? --program searchian", "searchian"),
    ("ask Why? --set max_rounds=0", "max_rounds"),
    ("ask Why? --set round=1", "max_rounds (5)"),
    ("ask Why? --set max_rounds", "NAME=VALUE"),
    ("ask Why? --retriever nowhere", "nowhere"),
    ("ask Why? --retriever rows.csv", "rows.csv --out DIR"),
    ("ask Why? --retriever index+", "each side of +"),
    ("ask Why? --retriever http://127.0.0.1:x", "no address"),
    ("ask Why? --task nosuchtask", "nosuchtask"),
    ("ask Why? --task mine.jsonl", "questree index"),
    ("ask Why? --out absent/told.html --lm openai/never-asked", "nothing can be written to the folder absent"),
    ("ask Why? --json --format html", "leave --format html out"),
    ("ask Why? --lm recorded:nowhere.jsonl", "nowhere.jsonl"),
    ("ask Why? --adapter two-step", "two-step"),
    ("ask ''", "question is empty"),
    ("prompts cot --set k=1", "no setting of cot 'k'. There are: abstain (off)."),
    *(
        (f"{words}:/0123456789abcdef/program --tracking-uri sqlite:///here.db", "There is no MLflow store at here.db")
        for words in ("ask Why? --program runs", "show runs", "show models", "serve runs", "evaluate models")
    ),
    (
        "evaluate direct --tracking-uri sqlite:///token/x.db",
        "Cannot track to sqlite:///token/x.db: unable to open database",
    ),
    ("evaluate --metric cover", "Did you mean 'cover-em'"),
    ("evaluate --split validation", "train"),
    ("evaluate --task notes.txt", '{"question": "…", "answers": ["…"]}'),
    ("evaluate --task questions.jsonl", "There is no file questions.jsonl"),
    ("evaluate --retriever index+nowhere", "no index at"),
    ("compile --optimizer bootstrap", "bootstrap-few-shot"),
    ("compile --optimizer-set cadidates=2", "Did you mean 'candidates'"),
    ("compare", "name at least one program"),
    ("compare searchain direct searchain", "searchain is named more than once"),
    ("compare c/p c/p", "c/p is named more than once"),
    ("compare direct runs:/0123456789abcdef/program", "--tracking-uri none names no store"),
    ("compare searchain:rounds=2", "max_rounds"),
    ("compare searchain --over k --value 1 --value 2 --set k=3", "k is varied here (--over k) and cannot be set"),
    ("compare searchain --over preset --set k=3", "k is varied here (--over preset) and cannot be set as well"),
    ("attack nosuch", "nosuch"),
    ("attack oner-cot --kind luck", "no attack 'luck'"),
    ("attack oner-cot --defence luck", "no defence 'luck'"),
    ("attack oner-cot --credulous 2", "Invalid value for '--credulous'"),
    ("attack", "Missing argument"),
    ("attack oner-cot --limit 3 --deadline 0.000001 --max-failures 0 --concurrency 1", "1 of 1 questions"),
    ("fetch musique --from absent.jsonl", "Cannot read absent.jsonl"),
    ("fetch musique --train-limit -1", "Invalid value"),
    ("index nowhere.jsonl --out ix", "nowhere.jsonl"),
    ("index rows.csv --out ix --kind bm25", '{"id": "1", "title": "…", "text": "…"}'),
    (f"index '{MINI_CORPUS}' --out /proc/x --kind bm25", "Cannot write an index to /proc/x"),
    ("index a.jsonl --out ix --kind psychic", "no index of kind 'psychic'"),
    ("index a.jsonl --out ix --format docx", "no corpus format 'docx'"),
    ("index a.jsonl --out ix --add --kind bm25", "added to as it was built"),
    ("index a.jsonl --out ix --add --overwrite", "added to as it was built"),
    ("index a.jsonl --out ix --add --set k1=1", "added to as it was built"),
    ("index a.jsonl --out ix --set k1=1", "name it with --kind"),
    ("index a.jsonl --out ix --kind bm25 --set nbits=1", "no setting of bm25 'nbits'. There are: k1 (1.2), b (0.7"),
    ("index a.jsonl --out ix --kind exact --set nbits=1", "kind exact has no settings"),
    ("index a.jsonl --out ix --kind colbert --set nbits=3", "nbits=3 does not fit: Input should be 1, 2, 4 or 8"),
    ("index a.jsonl --out ix --kind bm25 --set k1=much", "k1='much' does not fit"),
    ("index a.jsonl --out ix --kind bm25 --checkpoint x --on ray", "nothing to encode: leave out --on and --checkp"),
    ("index a.jsonl --out ix --workers 2", "name it with --on, or leave --workers out"),
    ("serve-retriever nowhere", "nowhere"),
    ("serve-retriever index --host 0.0.0.0", "needs a token: put a long random one into a file"),
    ("serve-retriever index --token-file nowhere", "token cannot be read"),
    ("serve-retriever index --host 192.0.2.1 --token-file token", "cannot be listened at"),
    ("simulate serve --host 0.0.0.0", "needs a token"),
    ("simulate serve --lm openai/gpt-4.1", "no simulated LM"),
    ("serve direct --host 0.0.0.0", "needs a token"),
    ("serve direct x/direct", "Two programs are called 'direct'"),
    ("serve =direct", "Give a name before the = and a program after it: NAME=direct"),
    ("serve mine=", "Give a name before the = and a program after it: mine=PROGRAM"),
    ("serve direkt", "Did you mean 'direct'"),
    ("serve direct --questions token", "cannot be kept in token"),
    ("serve direct --mlflow-ui http://127.0.0.1:5000", "name them with --runs"),
    ("serve direct --runs index --mlflow-ui http://[", "give the address of MLflow's pages"),
    ("serve direct --runs mlflow --tracking-uri none", "Nothing is tracked to 'none'"),
    ("mcp direct --port 8000", "add --http"),
    ("prompts oner --out text --page page", "leave one of them out"),
    ("ui --tracking-uri none", "Name the store"),
    ("ui --tracking-uri sqlite:///here.db", "There is no MLflow store at here.db"),
    ("ui --tracking-uri sqlite:///token --host 0.0.0.0", "ask for no token"),
    ("ui --tracking-uri http://127.0.0.1:1", "open it in a browser"),
    ("show nowhere", "nowhere"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_says_what_to_do(questree, index, workplace, words, said):
    (workplace / "rows.csv").write_text("id,question,answer\n1,Who?,Me\n")
    (workplace / "notes.txt").write_text("Who? Me")
    (workplace / "a.jsonl").write_text('{"id": "amber", "text": "words of amber"}\n')
    (workplace / "mine.jsonl").write_text('{"id": "1", "question": "Why?", "answers": ["Because"]}\n')
    (workplace / "token").write_text("a-token-that-is-long-enough")
    ran = questree(words)
    assert said in ran.refused()
    assert ran.err.strip().splitlines()[-1].startswith(("error: ", "╰"))
    assert not {"ix", "varied", "here.db"} & {path.name for path in workplace.iterdir()}
