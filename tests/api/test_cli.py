"""Every command, with right and with wrong arguments."""

import json
import logging
import os
import re
import socket
import subprocess
import sys
from importlib.metadata import version

import dspy
import pytest
from dspy.clients.provider import Provider
from fakes import ListRetriever
from parrot import Parrot
from run_files import change, rows

from questree.evaluation import evaluate
from questree.optimize import save
from questree.programs import build

QUESTION = "Which Ostrogothic king had his seat in the city where the author of the Divine Comedy died?"


def test_a_question_is_answered_with_its_tree_and_references(questree, index):
    ran = questree("ask", QUESTION, "--retriever", index).done()
    assert "●" in ran.out
    assert "[1]" in ran.out
    assert "Answer: " in ran.out
    assert "(simulated)" in ran.out


@pytest.mark.parametrize(("question", "code"), [("Why?", 2), ("Who is the president of France?", 0)])  # 0: made up
def test_a_question_that_the_simulated_lm_cannot_know_is_told_with_two_that_it_knows(question, code, questree, index):
    ran = questree("ask", question, "--retriever", index)
    assert ran.code == code
    (asked,) = re.findall(r"knows only the questions of its task.*such as “(.*?)” and “.*”", ran.err)
    known = questree("ask", asked, "--retriever", index)
    assert (known.code, re.sub(r"^LM requests: .*\n$", "", known.err)) == (0, "")


def test_an_answer_as_json_keeps_marks_and_references_together(questree, index):
    told = json.loads(questree("ask", QUESTION, "--retriever", index, "--json").out)
    assert told["simulated"] is True
    assert told["tree"]["question"] == QUESTION
    assert f"[{len(told['references'])}]" in told["final_content"]
    both = questree("ask", QUESTION, "--retriever", index, "--json", "--format", "html")
    assert (both.code, both.out) == (2, "")
    assert "leave --format html out" in both.err


def test_an_evaluation_as_json_has_the_score_of_the_table(questree, index, workplace):
    words = ("evaluate", "direct", "--retriever", index, "--tracking-uri", "none", "--out", "run", "--limit", "2")
    table, ran = questree(*words).out, questree(*words, "--json")
    told = json.loads(ran.out)
    score = told["score"]
    assert f"{score['mean']:.3f} [{score['low']:.3f}, {score['high']:.3f}]" in table
    assert (told["program"], told["task"], told["n"], told["simulated"]) == ("direct", "mini", 2, True)


@pytest.mark.parametrize("words", [["evaluate", "direct"], ["compare", "direct"]])
def test_what_a_library_prints_keeps_out_of_the_json(words, questree, index, monkeypatch):
    monkeypatch.setattr("questree.evaluation.run._check_corpus", lambda records: sys.stdout.write("View run at x"))
    ran = questree(*words, "--retriever", index, "--tracking-uri", "none", "--out", "run", "--limit", "1", "--json")
    assert json.loads(ran.out)["simulated"]
    assert "View run" in ran.err


def test_repeats_as_json_have_every_run(questree, index):
    ran = questree(
        "evaluate", "direct", "--retriever", index, "--tracking-uri", "none", "--out", "run", "--limit", "2",
        "--repeats", "2", "--temperature", "0.7", "--json",
    )  # fmt: skip
    told = json.loads(ran.out)
    assert sum(run["score"]["mean"] for run in told["runs"]) / 2 == pytest.approx(told["score"]["mean"])
    kept = index.parent / "run" / "repeats.json"
    assert json.loads(kept.read_text()) == told
    score = f"{told['metric']} {told['score']['mean']:.3f}"
    assert score in (shown := questree("show", "run").out)
    assert f"over 2 repeats; variance within questions {told['within']:.3f}, between" in shown


@pytest.mark.parametrize(("listed", "heading", "one"), [
    ("tasks", "task", "mini"), ("programs", "program", "searchain"), ("metrics", "metric", "cover-em"),
    ("optimizers", "optimizer", "labeled-few-shot"),
])  # fmt: skip
def test_a_list_as_json_names_what_the_table_names(questree, listed, heading, one):
    names = [line[heading] for line in json.loads(questree("list", listed, "--json").out)]
    assert one in names


def test_an_answer_as_a_page(questree, index, workplace):
    questree("ask", QUESTION, "--retriever", index, "--format", "html", "--out", "tree.html").done()
    assert (workplace / "tree.html").read_text().startswith("<!doctype html>")


def test_a_setting_of_the_program_reaches_it(questree, index):
    ran = questree("ask", QUESTION, "--retriever", index, "--format", "json", "--set", "k=2")
    found = [node["found"] for node in json.loads(ran.out)["tree"]["nodes"]]
    assert {len(passages) for passages in found if passages} == {2}


def test_an_evaluation_goes_on_where_it_was(questree, index):
    words = ("evaluate", "searchain", "--retriever", index, "--tracking-uri", "none", "--out", "run")
    first = questree(*words, "--limit", "3").done()
    assert "simulated" in first.out
    first_three = "SELECT id, question, record, details FROM questions ORDER BY rowid LIMIT 3"
    there = rows(index.parent / "run", first_three)
    questree(*words, "--limit", "4").done()
    assert rows(index.parent / "run", first_three) == there
    table = questree("show", "run")
    id, question, *_ = there[0]
    assert id in table.out
    assert question in questree("show", "run", id).out
    assert "no question 'nobody'" in questree("show", "run", "nobody").err
    questree(*words, "--limit", "1").done()
    assert json.loads(questree("show", "run", "--json").out)["run"]["n"] == 1
    shown = [questree("show", "run", id).code for id, *_ in there]
    assert shown == [0, 0, 0], "also a question that the last evaluation did not have"


def test_show_says_why_a_question_failed(questree, index):
    ran = questree("evaluate", "cot", "--tracking-uri", "none", "--out", "run", "--limit", "1", "--window", "60")
    assert "context-window" in ran.out
    [record] = map(json.loads, questree("show", "run", "--jsonl").out.splitlines())
    why = questree("show", "run", record["id"], "--why").out
    for told in (
        record["question"],
        "context-window: AnswerStepByStep",
        "program: cot",
        "predictor: answer",
        "system: ",
    ):
        assert told in why
    assert "QUESTION --why" in questree("show", "run", "--why").err
    assert "failure" in questree("show", "run").out


def test_a_program_is_compiled_shown_and_asked(questree, index):
    ran = questree(
        "compile", "searchain", "--optimizer", "bootstrap-few-shot", "--optimizer-set", "max_bootstrapped_demos=2",
        "--teacher", "annotations", "--train-limit", "30", "--limit", "3", "--retriever", index,
        "--tracking-uri", "none", "--out", "compiled",
    ).done()  # fmt: skip
    assert "gain" in ran.out
    shown = questree("show", "compiled/program")
    assert "bootstrap-few-shot" in shown.out
    assert '"chain_of_query.plan": 2' in shown.out
    hint = next(line for line in ran.out.splitlines() if line.startswith("ask it: "))
    assert hint == f"ask it: questree ask QUESTION --program compiled/program --retriever {index}"
    questree(*hint.replace("QUESTION", QUESTION.replace(" ", "_")).split()[3:]).done()


def test_the_command_that_trains_an_lm_says_which_one_to_ask_then(questree, index, monkeypatch):
    class Trainer(Provider):
        def __init__(self) -> None:
            super().__init__()
            self.finetunable = True

        def finetune(self, *asked: object) -> str:
            return "trained"

    words = (
        "compile", "oner", "--optimizer", "bootstrap-finetune", "--train-limit", "6", "--limit", "2",
        "--retriever", index, "--tracking-uri", "none", "--out", "made",
    )  # fmt: skip
    refused = questree(*words)
    assert (refused.code, refused.out) == (2, "")
    assert "cannot be trained: DSPy knows no provider that trains it" in refused.err
    monkeypatch.setattr(dspy.LM, "infer_provider", lambda lm: Trainer())
    ran = questree(*words).done()
    assert "the LM, which was trained: simulated/trained" in ran.out
    hint = f"ask it: questree ask QUESTION --program made/program --lm simulated/trained --retriever {index}"
    assert hint in ran.out.splitlines()
    assert '"name": "simulated/trained"' in questree("show", "made/program").out


def test_another_adapter_is_another_run_and_goes_with_what_was_compiled(questree, index, caplog):
    shared = ("--limit", "2", "--retriever", index, "--tracking-uri", "none", "--out", "made")
    first = ("compile", "oner", "--optimizer", "labeled-few-shot", "--train-limit", "4", *shared)
    ran = questree(*first, "--adapter", "xml").done()
    hint = f"ask it: questree ask QUESTION --program made/program --adapter xml --retriever {index}"
    assert hint in ran.out.splitlines()
    refused = questree(*first)
    assert refused.code == 2
    assert "'adapter': 'xml', 'simulated': True} and is now {'name'" in refused.err
    questree("ask", QUESTION, "--program", "made/program", "--retriever", index).done()
    assert "compiled with the adapter xml and is asked with chat" in caplog.text
    for adapter, marker in (("chat", "[[ ## answer ## ]]"), ("xml", "<answer>"), ("json", '"answer": "{answer}')):
        assert marker in questree("prompts", "oner", "--adapter", adapter).out


def test_no_stand_in_answers_for_the_lm_and_the_index_of_a_compiled_program(questree, workplace):
    with dspy.context(lm=dspy.LM("openai/gpt-4.1-mini", api_key="none")):
        save(build("searchain", {}, retriever=ListRetriever({})), workplace / "saved")
    for words in (("ask", QUESTION, "--program", "saved"), ("evaluate", "saved"), ("compare", "saved", "direct")):
        assert "'openai/gpt-4.1-mini'. Say which LM to ask: --lm" in questree(*words, "--tracking-uri", "none").err
        refused = questree(*words, "--lm", "simulated", "--tracking-uri", "none")
        assert (refused.code, refused.out) == (2, "")
        assert "over the index 'list' (list). Name it: --retriever" in refused.err


def test_debug_shows_where_a_mistake_was_found(questree):
    ran = questree("show", "nowhere", "--debug")
    assert ran.code == 1
    assert "in _program_figures" in ran.err
    assert "QuestreeError: " in ran.err.splitlines()[-1]


def test_without_an_index_the_command_that_makes_one_is_named(questree, workplace):
    (workplace / "mine.jsonl").write_text('{"id": "1", "question": "Why?", "answers": ["Because"]}\n')
    assert "questree index" in questree("ask", "Why?", "--task", "mine.jsonl").err


@pytest.mark.parametrize("words", [("ask", "Why?"), ("evaluate", "direct", "--limit", "2")])
def test_an_lm_that_cannot_be_reached_is_an_error_and_no_answer(words, questree, index, monkeypatch):
    monkeypatch.setenv("QUESTREE_RETRIES", "0")
    monkeypatch.setenv("QUESTREE_TRACKING_URI", "none")
    ran = questree(*words, "--retriever", index, "--lm", "openai/none", "--api-base", "http://127.0.0.1:9/v1")
    assert (ran.code, ran.out) == (2, "")
    assert "Connection refused" in ran.err
    assert "127.0.0.1:9" in ran.err  # as it was typed


def test_the_pages_of_mlflow_start_without_fetching_a_price_list(questree, monkeypatch):
    called, store = [], "postgresql://me:secret@db/runs"
    monkeypatch.setattr("questree.cli.ui._run", lambda command, env: called.append((command, env)) or 0)
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    said = questree("ui", "--tracking-uri", store, "--port", "0")
    assert said.code == 0
    [(command, env)] = called
    assert command[1:-4] == ["-m", "mlflow", "server", "--host", "127.0.0.1"]
    port = command[-3]
    assert f"postgresql://…@db/runs at http://127.0.0.1:{port};" in said.out
    assert int(port) > 0
    assert env["MLFLOW_BACKEND_STORE_URI"] == store  # every user can read a command, and not another's environment
    assert env["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"


def test_the_pages_of_mlflow_are_for_this_machine_at_an_address_that_is_free(questree, monkeypatch, workplace):
    monkeypatch.setattr("questree.cli.ui._run", lambda command, env: pytest.fail("it was started"))
    assert "There is no MLflow store at here.db" in questree("ui", "--tracking-uri", "sqlite:///here.db").err
    assert not (workplace / "here.db").exists()
    (workplace / "here.db").touch()
    store = ("--tracking-uri", "sqlite:///here.db")
    assert "ask for no token" in questree("ui", *store, "--host", "0.0.0.0").err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = questree("ui", *store, "--port", str(taken.getsockname()[1]))
    assert (refused.code, refused.out) == (2, "")
    assert "Choose another --port" in refused.err


def test_what_ends_the_pages_ends_every_process_of_mlflow(workplace):
    fake = workplace / "fake" / "mlflow"
    fake.mkdir(parents=True)
    (fake / "__init__.py").touch()
    # as MLflow does, it starts another process, which holds the other end of the pipe as long as it lives
    waits = "import signal; print('up', flush=True); signal.pause()"
    (fake / "__main__.py").write_text(f"import subprocess, sys; subprocess.call([sys.executable, '-c', {waits!r}])")
    (workplace / "x.db").touch()
    command = [sys.executable, "-c", "from questree.cli import main; main()", "ui", "--tracking-uri", "sqlite:///x.db"]
    command += ["--port", "0"]
    paths = os.pathsep.join([str(fake.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True) as ui:
        assert any(line == "up\n" for line in ui.stdout)
        ui.terminate()
        ui.communicate(timeout=30)  # ends when nobody is left who could write


def test_mlflow_s_own_variables_name_store_and_experiment(workplace):
    """They are read once, when a process begins."""
    code = "from questree.settings import run_settings as s; own = s(); "
    code += "print(own.tracking_uri, own.experiment, s(experiment='m').experiment)"
    own = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:1", "MLFLOW_EXPERIMENT_NAME": "theirs"}
    told = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | own, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["http://127.0.0.1:1", "theirs", "m"]


def test_show_lists_questions_without_gold_answers(questree, workplace):
    bare = dspy.Example(id="bare", question="say what").with_inputs("question")
    evaluate(Parrot(), [bare], lambda *_: 1.0, out=workplace / "bare", task="none")
    ran = questree("show", "bare").done()
    assert "say what" in ran.out


def test_a_file_to_write_is_looked_at_first_and_kept_if_there_is_nothing_to_write(questree, index):
    (file := index.parent / "told.txt").write_text("precious")
    assert questree("show", "absent", "--out", "told.txt").code == 2
    assert file.read_text() == "precious"
    ran = questree("ask", QUESTION, "--out", "absent/told.html", "--lm", "openai/never-asked", "--retriever", index)
    assert (ran.code, "nothing can be written to the folder absent" in ran.err) == (2, True)


def test_show_takes_the_folder_of_a_compilation_and_of_a_comparison(questree, index):
    few = ("--retriever", index, "--tracking-uri", "none", "--limit", "2")
    ran = questree("compile", "oner", "--optimizer", "labeled-few-shot", "--train-limit", "4", *few, "--out", "made")
    assert "questions: 4 to learn from, 2 to score before and after" in ran.out
    assert "changed: nothing; more questions or another optimizer may find more" in ran.out
    shown = questree("show", "made").done()
    assert "questree show made/program" in shown.out
    assert {"before", "after"} <= {*shown.out.replace("/", " ").split()}
    questree("compare", "oner", "direct", *few, "--out", "both").done()
    shown = questree("show", "both").out
    assert "simulated LM" in shown
    assert {"oner", "direct"} <= {*shown.split()}
    unscored = "DELETE FROM scores WHERE run = (SELECT number FROM run WHERE name = '{}')"
    change(index.parent / "both", unscored.format("oner"))  # as if it were killed before the first score
    shown = questree("show", "both")
    assert (shown.code, "direct" in shown.out) == (0, True), shown.err
    assert list(json.loads(questree("show", "both", "--json").out)) == ["direct"]
    change(index.parent / "both", unscored.format("direct"))
    assert "No answer of these runs is scored yet" in questree("show", "both").err


def test_debug_logs_each_call_and_each_node(questree, index):
    root = logging.getLogger()
    before, root.handlers = root.handlers, []
    try:
        told = questree("--debug", "ask", QUESTION, "--retriever", index).err
    finally:
        root.handlers = before
        root.setLevel(logging.WARNING)
    assert "PlanChain: " in told
    assert " tokens in, " in told


def test_a_store_that_cannot_be_written_is_said_at_once(questree, index):
    (index.parent / "file").touch()
    ran = questree("evaluate", "direct", "--limit", "1", "--tracking-uri", "sqlite:///file/mlflow.db", "--out", "run")
    assert ran.code == 2
    assert "Cannot track to sqlite:///file/mlflow.db: unable to open database file" in ran.err


def test_the_version_is_that_of_the_package(questree):
    assert questree("--version").out == f"questree {version('questree')}\n"


def test_a_result_explains_itself_on_demand(questree):
    words = ("evaluate", "direct", "--limit", "2", "--tracking-uri", "none")
    assert "--details" in questree(*words).out
    assert "its deciding fact" not in questree(*words).out
    assert "deciding fact stands in a cited passage" in " ".join(questree(*words, "--details").out.split())


def test_a_narrow_screen_shows_ids_that_can_be_typed_and_a_mark_its_passage(questree, index, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    questree("evaluate", "searchain", "--tracking-uri", "none", "--out", "run", "--limit", "8").done()
    shown = questree("show", "run").out
    headings = next(line.split() for line in shown.splitlines() if "question" in line)
    assert headings == ["id", "question", "answer", "gold", "by-style"], "none failed"
    assert max(map(len, shown.splitlines())) <= 80
    assert "simulated LM" in shown
    records = [json.loads(line) for line in questree("show", "run", "--jsonl").out.splitlines()]
    assert all(record["id"] in shown for record in records)
    cited = next(record for record in records if record["references"])
    first = cited["references"][0]
    told = questree("show", "run", cited["id"]).out
    assert f"\n[1] {first['title']}: {first['text'][:60]}" in told
    assert "(simulated)" in told
