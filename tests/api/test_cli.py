"""Every command, with right and with wrong arguments."""

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import dspy
import pytest
import typer
from fakes import ListRetriever
from parrot import Parrot
from run_files import change, rows

from questree.cli import main
from questree.cli.ask import answer_text
from questree.cli.demo import demo
from questree.evaluation import evaluate
from questree.metrics import Interval
from questree.optimize import save
from questree.programs import build
from questree.retrieval import Passage

QUESTION = "Which Ostrogothic king had his seat in the city where the author of the Divine Comedy died?"


def test_a_question_is_answered_with_its_tree_and_references(questree):
    told = questree("ask", QUESTION).done().out
    assert [word for word in ("●", "[1]", "Answer: ", "(simulated)") if word not in told] == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Why?", "No answer found. Steps that were answered: 0 of 1."),
        ("Who is the president of France?", "Johann Sebastian Bach"),
    ],
)
def test_what_the_simulated_lm_says_of_a_question_that_it_cannot_know_means_nothing(question, answer, questree):
    ran = questree("ask", question).done()  # no answer is an answer
    assert f"Answer: {answer}  (simulated)" in ran.out
    (asked,) = re.findall(r"The simulated LM knows only the questions of its task.*such as “(.*?)” and “.*”", ran.err)
    assert "What it says of this one means nothing." in ran.err
    assert re.sub(r"^LM requests: .*\n$", "", questree("ask", asked).done().err) == ""


def test_a_mark_is_shown_with_the_id_of_its_passage_and_the_sentence_that_supports_it(questree):
    shown = questree("ask", "Which river nearly encircles the birthplace of Charles Darwin?").done().out
    assert (
        "\n[1] Charles Darwin (mini-2): Charles Darwin was an English naturalist born in Shrewsbury in 1809.\n" in shown
    )


def test_of_a_passage_the_sentences_behind_each_mark_are_shown_and_without_any_its_beginning():
    told = "The crane is red. Marta Holm\nbuilt it in Elin. It hums. In 1998 it was moved to Lindau."
    passages = [Passage(id="7", title="Crane", text=told), Passage(id="8", text="Nothing of it.")]
    content = "Marta Holm built it [1]. It was moved to Lindau in 1998 [1]. So what [2]."
    assert answer_text(content, passages, "Marta Holm", simulated=False).splitlines()[1:3] == [
        "[1] Crane (7): Marta Holm built it in Elin. … In 1998 it was moved to Lindau.",
        "[2] 8: Nothing of it.",
    ]


def test_an_answer_as_json_keeps_marks_and_references_together(questree):
    told = questree("ask --json", QUESTION).json()
    assert told["simulated"] is True
    assert told["tree"]["question"] == QUESTION
    assert f"[{len(told['references'])}]" in told["final_content"]


def test_an_answer_as_a_page(questree, workplace):
    questree("ask --format html --out tree.html", QUESTION).done()
    assert (workplace / "tree.html").read_text().startswith("<!doctype html>")


def test_a_setting_of_the_program_reaches_it(questree):
    nodes = questree("ask --format json --set k=2", QUESTION).json()["tree"]["nodes"]
    assert {len(node["found"]) for node in nodes if node["found"]} == {2}


def test_an_evaluation_as_json_has_the_score_of_the_table(questree):
    words = "evaluate direct --out run --limit 2"
    table, told = questree(words).out, questree(words, "--json").json()
    score = told["score"]
    assert f"{score['mean']:.3f} [{score['low']:.3f}, {score['high']:.3f}]" in table
    assert (told["program"], told["task"], told["n"], told["simulated"]) == ("direct", "mini", 2, True)


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_what_a_library_prints_keeps_out_of_the_json(command, questree, monkeypatch):
    monkeypatch.setattr("questree.evaluation.run._check_corpus", lambda records: sys.stdout.write("View run at x"))
    ran = questree(f"{command} direct --out run --limit 1 --json")
    assert ran.json()["simulated"]
    assert "View run" in ran.err


def test_repeats_as_json_have_every_run(questree, workplace):
    told = questree("evaluate direct --out run --limit 2 --repeats 2 --temperature 0.7 --json").json()
    assert sum(run["score"]["mean"] for run in told["runs"]) / 2 == pytest.approx(told["score"]["mean"])
    assert json.loads((workplace / "run" / "repeats.json").read_text()) == told
    shown = questree("show run").out
    assert f"{told['metric']} {told['score']['mean']:.3f}" in shown
    assert f"over 2 repeats; variance within questions {told['within']:.3f}, between" in shown


@pytest.mark.parametrize(("listed", "heading", "one"), [
    ("tasks", "task", "mini"), ("programs", "program", "searchain"), ("metrics", "metric", "cover-em"),
    ("optimizers", "optimizer", "labeled-few-shot"),
])  # fmt: skip
def test_a_list_as_json_names_what_the_table_names(questree, listed, heading, one):
    assert one in [line[heading] for line in questree(f"list {listed} --json").json()]


def test_an_evaluation_goes_on_where_it_was(questree, workplace):
    words, first_three = "evaluate searchain --out run --limit", "SELECT id, question, record, details FROM questions"
    assert "simulated" in questree(words, 3).done().out
    there = rows(workplace / "run", first_three)
    questree(words, 4).done()
    assert rows(workplace / "run", f"{first_three} ORDER BY rowid LIMIT 3") == there
    id, question, *_ = there[0]
    assert id in questree("show run").out
    assert question in questree("show run", id).out
    assert "no question 'nobody'" in questree("show run nobody").refused()
    questree(words, 1).done()
    assert questree("show run --json").json()["run"]["n"] == 1
    for id, *_ in there:  # also a question that the last evaluation did not have
        questree("show run", id).done()


def test_show_says_why_a_question_failed(questree):
    assert "context-window" in questree("evaluate cot --out run --limit 1 --window 60").out
    record = questree("show run --jsonl").json()
    why = questree("show run --why", record["id"]).out
    told = ("context-window: AnswerStepByStep", "program: cot", "predictor: step_by_step_answer", "system: ")
    assert [word for word in (record["question"], *told) if word not in why] == []
    assert "QUESTION --why" in questree("show run --why").refused()
    assert "failure" in questree("show run").out


def test_a_program_is_compiled_shown_and_asked(questree):
    ran = questree(
        "compile searchain --optimizer bootstrap-few-shot --optimizer-set max_bootstrapped_demos=2 "
        "--teacher annotations --train-limit 30 --limit 3 --out compiled"
    ).done()
    assert "gain" in ran.out
    shown = questree("show compiled/program").out
    said = dict(re.findall(r"(?m)^(\w[\w, -]*?)  +(\S.*?) *$", shown))
    assert said["optimizer"].startswith("bootstrap-few-shot max_bootstrapped_demos=2 ")
    assert said["retriever"].startswith("mini (")
    assert said["demonstrations"].startswith("2 of chain_of_query.plan")
    assert (said["task"], said["instructions that changed"]) == ("mini", "none")
    assert all(f"n={3}" in said[name] for name in ("by-style before", "by-style", "gain, paired"))
    assert questree("show compiled/program --json").json()["demonstrations"]["chain_of_query.plan"] == 2
    hint = next(line for line in ran.out.splitlines() if line.startswith("ask it: "))
    assert hint == "ask it: questree ask QUESTION --program compiled/program"
    questree(hint.removeprefix("ask it: questree ").replace("QUESTION", f"'{QUESTION}'")).done()


@pytest.mark.parametrize(("gain", "warned"), [(-0.4, True), (0.0, False), (0.4, False)])
def test_a_compilation_that_lost_ends_with_a_warning(questree, monkeypatch, gain, warned):
    monkeypatch.setattr("questree.optimize.Compiled.gain", Interval(gain, gain, gain, 2))
    ran = questree("compile oner --optimizer labeled-few-shot --train-limit 4 --limit 2 --out made").done()
    lost = "warning: the compiled program scores lower than before, -0.400 [-0.400, -0.400] over 2 questions: keep"
    assert (lost in ran.err) == warned


def test_of_a_compiled_program_the_instructions_that_changed_are_shown(questree, workplace):
    program = build("cot", {})
    program.step_by_step_answer.signature = program.step_by_step_answer.signature.with_instructions("Answer\nin verse.")
    save(program, workplace / "saved", optimizer={"name": "mipro", "trials": 3})
    shown = questree("show saved").done().out
    assert re.search(r"(?m)^instructions that changed +step_by_step_answer *$", shown)
    assert "\ninstructions of step_by_step_answer:\nAnswer\nin verse.\n" in shown
    assert re.search(r"(?m)^optimizer +mipro trials=3 *$", shown)


@pytest.mark.parametrize(("path", "named"), [("here", "questree"), (None, ".venv/bin/questree")])
def test_the_last_hint_of_the_demo_can_be_typed_where_it_runs(monkeypatch, workplace, capsys, path, named):
    made = SimpleNamespace(passages=[], name="exact", address="runs:/1/program", program=lambda name: None)
    for place in (
        "retrieval.index_builder.load_or_build",
        "cli.compile.compile",
        "experiment.Experiment",
        "cli.ask.ask_live",
    ):
        monkeypatch.setattr(f"questree.{place}", lambda *_, **how: made)
    monkeypatch.setattr("questree.pages.question_page.answer_page", lambda *_, **how: "")
    monkeypatch.setattr("questree.cli.demo.which", lambda name: path)
    monkeypatch.setattr(sys, "argv", [".venv/bin/questree", "demo"])
    demo()
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"each run and trace: {named} ui --tracking-uri sqlite:///runs/demo/mlflow.db"


def test_a_list_tells_of_a_chain_of_queries(questree):
    [about] = [line for line in questree("list programs --json").json() if line["program"] == "searchain"]
    assert "retrieval checks a chain of queries." in str(about)


def test_another_adapter_is_another_run_and_goes_with_what_was_compiled(questree, caplog):
    first = "compile oner --optimizer labeled-few-shot --train-limit 4 --limit 2 --out made"
    told = questree(first, "--adapter", "xml").done().out
    assert "ask it: questree ask QUESTION --program made/program --adapter xml" in told.splitlines()
    assert "lm.adapter was 'xml' and is now None. " in questree(first).refused()
    questree("ask --program made/program", QUESTION).done()
    assert "compiled with the adapter xml and is asked with chat" in caplog.text
    for adapter, marker in (("chat", "[[ ## answer ## ]]"), ("xml", "<answer>"), ("json", '"answer": "{answer}')):
        assert marker in questree(f"prompts oner --adapter {adapter}").out


def test_no_stand_in_answers_for_the_lm_and_the_index_of_a_compiled_program(questree, workplace):
    with dspy.context(lm=dspy.LM("openai/gpt-4.1-mini", api_key="none")):
        save(build("searchain", {}, retriever=ListRetriever({})), workplace / "saved")
    for words in ("ask Why? --program saved", "evaluate saved", "compare saved direct"):
        assert "'openai/gpt-4.1-mini'. Say which LM to ask: --lm" in questree(words).refused()
        assert "over the index list, list. Name it: --retriever" in questree(words, "--lm", "simulated").refused()


def test_debug_shows_where_a_mistake_was_found(questree):
    ran = questree("show nowhere --debug")
    assert ran.code == 1
    assert "in _manifest" in ran.err
    assert "QuestreeError: " in ran.err.splitlines()[-1]
    ran = questree("evaluate direct --limit 1 --tracking-uri sqlite:///absent/x.db --debug")
    assert "in check_store" in ran.err, "what the message leaves out"


@pytest.mark.parametrize("words", ["ask Why?", "evaluate direct --limit 2"])
def test_an_lm_that_cannot_be_reached_is_an_error_and_no_answer(words, questree, monkeypatch):
    monkeypatch.setenv("QUESTREE_RETRIES", "0")
    ran = questree(words, "--lm", "openai/none", "--api-base", "http://127.0.0.1:9/v1")
    assert ran.out == ""
    assert "Connection refused" in ran.refused()
    assert "127.0.0.1:9" in ran.err  # as it was typed


def test_the_pages_of_mlflow_start_without_fetching_a_price_list(questree, monkeypatch):
    called, store = [], "postgresql://me:secret@db/runs"
    monkeypatch.setattr("questree.cli.ui._run", lambda command, env: called.append((command, env)) or 0)
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    told = questree(f"ui --tracking-uri {store} --port 0").done().out
    [(command, env)] = called
    assert command[1:-4] == ["-m", "mlflow", "server", "--host", "127.0.0.1"]
    port = command[-3]
    assert f"postgresql://…@db/runs at http://127.0.0.1:{port};" in told
    assert int(port) > 0
    assert env["MLFLOW_BACKEND_STORE_URI"] == store  # every user can read a command, and not another's environment
    assert env["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"


def test_the_pages_of_mlflow_are_not_started_where_the_address_is_taken(questree, monkeypatch, workplace):
    monkeypatch.setattr("questree.cli.ui._run", lambda command, env: pytest.fail("it was started"))
    (workplace / "here.db").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = questree(f"ui --tracking-uri sqlite:///here.db --port {taken.getsockname()[1]}")
    assert refused.out == ""
    assert "Choose another --port" in refused.refused()


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


def test_mlflow_s_own_variables_name_store_and_experiment(workplace, monkeypatch):
    """They are read once, when a process begins."""
    monkeypatch.delenv("QUESTREE_TRACKING_URI")
    code = "from questree.settings import run_settings as s; own = s(); "
    code += "print(own.tracking_uri, own.experiment, s(experiment='m').experiment)"
    own = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:1", "MLFLOW_EXPERIMENT_NAME": "theirs"}
    told = subprocess.check_output([sys.executable, "-c", code], env=os.environ | own, text=True)
    assert told.split() == ["http://127.0.0.1:1", "theirs", "m"]


def test_show_lists_questions_without_gold_answers(questree, workplace):
    bare = dspy.Example(id="bare", question="say what").with_inputs("question")
    evaluate(Parrot(), [bare], lambda *_: 1.0, out=workplace / "bare", task="none")
    assert "say what" in questree("show bare").done().out


def test_a_file_is_kept_if_there_is_nothing_to_write(questree, workplace):
    (file := workplace / "told.txt").write_text("precious")
    assert questree("show absent --out told.txt").refused()
    assert file.read_text() == "precious"


def test_show_takes_the_folder_of_a_compilation_and_of_a_comparison(questree, workplace):
    told = questree("compile oner --optimizer labeled-few-shot --train-limit 4 --limit 2 --out made").out
    assert "questions: 4 to learn from, 2 to score before and after" in told
    assert "changed: nothing; more questions or another optimizer may find more" in told
    shown = questree("show made").done().out
    assert "questree show made/program" in shown
    assert {"before", "after"} <= {*shown.replace("/", " ").split()}
    questree("compare oner direct --limit 2 --out both").done()
    shown = questree("show both").out
    assert "simulated LM" in shown
    assert {"oner", "direct"} <= {*shown.split()}
    unscored = "DELETE FROM scores WHERE run = (SELECT number FROM run WHERE name = '{}')"
    change(workplace / "both", unscored.format("oner"))  # as if it were killed before the first score
    assert "direct" in questree("show both").done().out
    assert list(questree("show both --json").json()) == ["direct"]
    change(workplace / "both", unscored.format("direct"))
    assert "No answer of these runs is scored yet" in questree("show both").refused()


def test_debug_logs_each_call_and_each_node(questree):
    root = logging.getLogger()
    before, root.handlers = root.handlers, []
    try:
        told = questree("--debug ask", QUESTION).err
    finally:
        root.handlers = before
        root.setLevel(logging.WARNING)
    assert "PlanChain: " in told
    assert " tokens in, " in told


def test_the_version_is_that_of_the_package(questree):
    assert questree("--version").out == f"questree {version('questree')}\n"


def test_a_result_explains_itself_on_demand(questree):
    short, long = (" ".join(questree("evaluate direct --limit 2", *more).out.split()) for more in ((), ("--details",)))
    assert "--details" in short
    assert "its deciding fact" not in short
    assert "deciding fact stands in a cited passage" in long


def test_a_narrow_screen_shows_ids_that_can_be_typed_and_a_mark_its_passage(questree, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    questree("evaluate searchain --out run --limit 8").done()
    shown = questree("show run").out
    headings = next(line.split() for line in shown.splitlines() if "question" in line)
    assert headings == ["id", "question", "answer", "gold", "by-style"], "none failed"
    assert max(map(len, shown.splitlines())) <= 80
    assert "simulated LM" in shown
    records = [json.loads(line) for line in questree("show run --jsonl").out.splitlines()]
    assert all(record["id"] in shown for record in records)
    cited = next(record for record in records if record["references"])
    first = cited["references"][0]
    told = questree("show run", cited["id"]).out
    assert f"\n[1] {first['title']} ({first['id']}): " in told
    assert "(simulated)" in told


def test_a_stop_that_is_passed_on_twice_interrupts_once(monkeypatch, capsys):
    """A second interrupt within the first could break a lock of Python's."""
    app, told = typer.Typer(), []

    @app.command()
    def interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGTERM)
            told.append("all that was open is closed")

    monkeypatch.setattr("questree.cli.app", app)
    monkeypatch.setattr(sys, "argv", ["questree"])
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(SystemExit):
            main()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert told
    assert "stopped:" in capsys.readouterr().err
