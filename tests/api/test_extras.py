"""What is not installed, or not for this machine, is told in one line, before anything is paid."""

import os
import subprocess
import sys

from house import ROOT

LACKING = """
import sys
from questree.cli import main
from questree.optimize import optimizer

sys.modules |= dict.fromkeys(["fastapi", "mcp", "optuna", "qdrant_client", "ray", "semantic_text_splitter"])

def told(call):
    try:
        call()
    except BaseException as end:
        print(end.code if isinstance(end, SystemExit) else end, file=sys.stderr)

for words in WORDS:
    sys.argv = ["questree", *words.split()]
    told(main)
"""
NEEDS = {
    "serve direct": "serve",
    "serve-retriever indexes": "serve",
    "simulate serve": "serve",
    "mcp direct": "mcp",
    "ask Why? --retriever qdrant:folder/mini": "qdrant",
    "index mini --engine qdrant:folder/mini": "qdrant",
    "index mini --out made --on ray": "cluster",
    f"index {ROOT / 'docs'} --out made --kind bm25": "documents",
    "compile direct --optimizer mipro --out made": "optimizers",
}


def test_a_command_without_its_extra_names_it_in_one_line(workplace):
    code = LACKING.replace("WORDS", repr([*NEEDS]))
    ran = subprocess.run([sys.executable, "-c", code], cwd=workplace, env=os.environ, capture_output=True, text=True)
    said = [line for line in ran.stderr.splitlines() if line.strip("2")]
    named = [line.rpartition("pip install ")[2] for line in said]
    assert named == [f"'questree[{extra}]'" for extra in NEEDS.values()], ran.stderr
    assert not [path for path in workplace.iterdir() if path.name != "cache"]


def test_a_library_of_another_platform_is_told_in_one_line(questree, monkeypatch):
    def load(*_, **__):
        raise ImportError("/env/faiss/_swigfaiss.so: invalid ELF header")

    monkeypatch.setattr("questree.retrieval.build_index", load)
    ran = questree("index", "mini", "--out", "ix")
    assert ran.code == 2
    assert ran.err.splitlines()[-1] == (
        "error: /env/faiss/_swigfaiss.so: invalid ELF header. "
        "This library is not of this machine and this Python: install it in a new environment."
    )
