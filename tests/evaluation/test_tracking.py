import json
import logging
import sqlite3
import subprocess
import sys
import threading
from collections import Counter

import dspy
import pytest
from dspy.utils.callback import BaseCallback
from fakes import ListReader
from mini_task import every_question
from urllib3.util.retry import Retry

from questree.common.errors import QuestreeError
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import stored_runs
from questree.evaluation.traces import plain
from questree.evaluation.tracked_runs import fetch_kept, tracked_run
from questree.evaluation.tracking import OFF, Tracking
from questree.evaluation.tracking_store import bound_mlflow, without_password
from questree.metrics import metric
from questree.optimize import Examples, load, optimizer
from questree.optimize import compile as compile_program
from questree.programs import SearChain, TreeOfReviews
from questree.programs.states import state_of
from questree.simulate import Mind, SimulatedEngine, Traits, World
from questree.simulate.server import running_lm

KEY = "sk-planted-0123456789"


@pytest.fixture(scope="module")
def tracked_compile(tmp_path_factory, _task, _index, tracking_store):
    """One tracked compilation, with a key planted in its LM; everything below looks at what it left behind."""
    folder = tmp_path_factory.mktemp("tracked")
    tracking = Tracking(uri=tracking_store(folder))
    examples = Examples(_task.examples("train")[:8], _task.examples("dev")[:4], task="mini")
    served = running_lm(SimulatedEngine(Mind(World(every_question(_task)), Traits(malformed=0))))
    with pytest.MonkeyPatch.context() as own, served as address:
        own.delenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", raising=False)  # as a user's are sent: by a thread of MLflow's
        lm = dspy.LM("openai/simulated", api_base=address, api_key=KEY, cache=False)
        with dspy.context(lm=lm, adapter=None):
            compiled = compile_program(
                SearChain(_index),
                examples,
                metric("by-style"),
                optimizer=optimizer("bootstrap-random-search", candidates=1),
                out=folder / "run",
                tracking=tracking,
            )
    return folder, tracking, compiled, address


@pytest.fixture
def compiled(tracked_compile, mlflow):
    """What the compilation gave; its store is in use."""
    _, tracking, compiled, _ = tracked_compile
    mlflow.set_tracking_uri(tracking.uri)
    return compiled


@pytest.fixture
def runs(compiled, mlflow):
    """The parent run, and the nested ones."""
    found = mlflow.MlflowClient().search_runs([mlflow.get_experiment_by_name("questree").experiment_id])
    [parent] = [run for run in found if "mlflow.parentRunId" not in run.data.tags]
    return parent, [run for run in found if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]


@pytest.fixture
def traces(runs, mlflow):
    """The traces of the compilation."""
    return mlflow.MlflowClient().search_traces(locations=[runs[0].info.experiment_id])


@pytest.fixture
def tracking(tmp_path, tracking_store, mlflow):
    """A tracking to a store that holds nothing yet, which is in use."""
    uri = tracking_store(tmp_path)
    mlflow.set_tracking_uri(uri)
    return Tracking(uri=uri)


def scored(compiled):
    """The records of the questions before and after."""
    return [record for evaluation in (compiled.before, compiled.after) for record in evaluation.records]


def test_one_parent_run_holds_what_was_compiled_and_how_good_it_became(runs, compiled):
    parent, nested = runs
    params, metrics = parent.data.params, parent.data.metrics
    assert (params["program"], params["settings.max_rounds"], params["task"]) == ("searchain", "5", "mini")
    assert params["retriever.fingerprint"] == "words-1"
    assert (params["optimizer.name"], params["optimizer.candidates"]) == ("bootstrap-random-search", "1")
    assert (params["seed"], params["policy.concurrency"]) == ("0", "4")
    assert "versions.dspy" in params
    before, after, gain = compiled.before.score.mean, compiled.after.score.low, compiled.gain.high
    assert [metrics[name] for name in ("before_score", "after_score_low", "gain_high")] == [before, after, gain]
    assert metrics["after_lm_calls"] == compiled.after.spent.calls
    assert metrics["compile_calls"] == compiled.compilation.spent.calls > 0
    assert "after_cost" in metrics
    assert parent.info.status == "FINISHED"
    candidates = compiled.compilation.candidates
    assert sorted(run.data.metrics["score"] for run in nested) == sorted(one.score for one in candidates)
    assert {run.data.tags["simulated"] for run in [parent, *nested]} == {"true"}
    [given] = list(parent.inputs.dataset_inputs)
    assert (given.dataset.name, json.loads(given.dataset.profile)["num_rows"]) == ("mini", 4)


def test_each_trace_holds_what_was_expected_and_what_the_answer_was_worth(compiled, traces):
    told = sorted(
        (one["expected_response"], one["answers"], one["by-style"])
        for one in ({each.name: each.value for each in trace.info.assessments} for trace in traces)
    )
    assert told == sorted(
        (one.gold_answers[0], list(one.gold_answers), one.scores["by-style"]) for one in scored(compiled)
    )
    score = next(each for each in traces[0].info.assessments if each.name == "by-style")
    assert (score.source.source_type, score.source.source_id) == ("CODE", "questree")
    assert score.metadata["simulated"] == "true"


def test_the_prompts_of_a_compiled_program_are_registered_and_linked_to_its_run(runs, compiled, mlflow):
    linked, predictors = json.loads(runs[0].data.tags["mlflow.linkedPrompts"]), compiled.program.named_predictors()
    assert [one["name"] for one in linked] == [f"searchain.{name}" for name, _ in predictors]
    for one, (_, predictor) in zip(linked, predictors, strict=True):
        prompt = mlflow.genai.load_prompt(one["name"], one["version"])
        assert prompt.variables == {*predictor.signature.input_fields}
        assert len(prompt.template) == 2 * len(predictor.demos) + 2
        assert predictor.signature.instructions.splitlines()[0] in prompt.template[0]["content"]


def test_a_prompt_that_did_not_change_gets_no_new_version(tracking, mini, mlflow):
    program = SearChain(mini.index)
    program.tracing.trace.demos = [dspy.Example(steps=["{question} {{braces}}"], answer="a")]
    with tracking.run("first", {}) as run:
        run.prompts(program)
    program.chain_of_query.plan.signature = program.chain_of_query.plan.signature.with_instructions("Plan well.")
    with tracking.run("second", {}) as run:
        run.prompts(program)
    linked = json.loads(mlflow.get_run(run.id).data.tags["mlflow.linkedPrompts"])
    assert len(linked) == len(program.predictors())  # none of the first run's
    versions = {one["name"].removeprefix("searchain."): one["version"] for one in linked}
    assert versions.pop("chain_of_query.plan") == "2"
    assert {*versions.values()} == {"1"}


def test_whoever_listens_to_dspy_hears_of_no_prompt_that_is_only_shown(mini, tracking):
    """MLflow's autologging listens so, and would make a trace of each."""
    heard = []

    class Listener(BaseCallback):
        def on_adapter_format_start(self, call_id, instance, inputs):
            heard.append(instance)

    with dspy.context(callbacks=[Listener()]), tracking.run("compile", {}) as run:
        run.prompts(mini.program())
        assert heard == []
        mini.program()(question=mini.dev[0].question)
    assert heard


def test_a_deleted_experiment_is_named_with_the_ways_out(tracking, mlflow):
    with tracking.run("first", {}):
        pass
    mlflow.delete_experiment(mlflow.get_experiment_by_name(tracking.experiment).experiment_id)
    said = r"'questree' is deleted .*--experiment.*restore --experiment-id 1, "
    with pytest.raises(QuestreeError, match=said), tracking.run("second", {}):
        pass


def test_calls_searches_and_readings_are_spans_of_a_question_also_beside_mlflow_s_autologging(
    mini, tracking, caplog, mlflow
):
    from mlflow.dspy.callback import MlflowCallback
    from mlflow.entities import Document

    question = mini.dev[0].question
    with dspy.context(callbacks=[MlflowCallback()]), tracking.run("evaluate", {}) as run, run.traces():
        evaluate(mini.program(), mini.dev[1:2], mini.metric)
        SearChain(mini.index, reader=ListReader({}))(question=question)
        TreeOfReviews(mini.index)(question=question)
        prediction = mini.program()(question=question)
    traces = mlflow.MlflowClient().search_traces(locations=["1"], order_by=["timestamp_ms DESC"])
    assert [trace.info.request_metadata["mlflow.sourceRun"] for trace in traces] == [run.id] * 4
    assert "Failed to start span" not in caplog.text
    steps = []
    for trace in traces:
        spans = {span.span_id: span for span in trace.data.spans}
        steps += [spans[span.parent_id].name for span in spans.values() if span.span_type == "CHAT_MODEL"]
        steps += [span.name for span in spans.values() if span.name == "Read"]
    assert {"PlanChain", "ReviewPath", "Read"} <= {*steps}
    searches = [span for span in traces[0].data.spans if span.span_type == "RETRIEVER"]
    queries = [span.inputs["query"] for span in searches]
    assert queries == list(dict.fromkeys(node.query for node in prediction.tree.nodes if node.found))
    found = {document.id for span in searches for document in (Document(**one) for one in span.outputs)}
    assert found == {passage.id for node in prediction.tree.nodes for passage in node.found}


def test_a_question_whose_trace_is_not_kept_leads_to_none(mini, tracking, monkeypatch, caplog, mlflow):
    from mlflow.entities.span import NoOpSpan

    monkeypatch.setattr(mlflow, "start_span_no_context", lambda *args, **kwargs: NoOpSpan())
    with tracking.run("sampled", {}) as run:
        with run.traces():
            evaluation = evaluate(mini.program(), mini.dev[:1], mini.metric)
        run.evaluation(evaluation, "mini")
    assert [record.trace for record in evaluation.records] == [""]
    assert "could not be written to their traces" not in caplog.text


def test_one_question_is_one_trace_also_with_several_at_a_time(runs, compiled, traces):
    parent, _ = runs
    place, records = f"experiments/{parent.info.experiment_id}/traces", scored(compiled)
    asked = {f"{place}/{one.info.trace_id}": json.loads(one.data.request)["question"] for one in traces}
    assert {record.trace: record.question for record in records} == asked
    asked = Counter(record.question for record in records)
    assert Counter(trace.data.spans[0].inputs["question"] for trace in traces) == asked
    assert {trace.info.trace_metadata["mlflow.sourceRun"] for trace in traces} == {parent.info.run_id}
    calls = sum(span.span_type == "CHAT_MODEL" for trace in traces for span in trace.data.spans)
    assert calls == compiled.before.spent.calls + compiled.after.spent.calls


def test_the_table_of_questions_is_there(runs, compiled, mlflow):
    table = mlflow.artifacts.load_dict(f"runs:/{runs[0].info.run_id}/after_questions.json")
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    assert [row["id"] for row in rows] == [record.id for record in compiled.after.records]
    assert {"answer", "by-style", "failure", "recall@5", "calls"} <= rows[0].keys()


def test_a_tracked_evaluation_has_every_figure_and_is_read_again_with_its_seed(mini, tmp_path, tracking, mlflow):
    empty = dspy.Example(id="empty", question=" ", answers=["x"]).with_inputs("question")
    with tracking.run("tracked", {}) as run:
        found = evaluate(mini.program(), [empty, *mini.dev[:3]], [metric("f1"), mini.metric], seed=7)
        run.evaluation(found)
    columns = mlflow.artifacts.load_dict(f"runs:/{run.id}/questions.json")["columns"]
    assert "recall@5" in columns, "also if the first question failed before anything was found"
    [kept] = stored_runs([*fetch_kept(tracking, tracked_run(tracking, run.id).kept, tmp_path).values()])
    assert (kept.evaluation.seed, kept.evaluation.scores) == (7, found.scores)
    assert list(kept.evaluation.scores) == ["f1", mini.metric.name]


def test_a_program_is_loaded_from_its_run(compiled, mini):
    loaded = load(compiled.address, retriever=mini.index)
    assert state_of(loaded) == state_of(compiled.program)
    with pytest.raises(QuestreeError, match="Cannot fetch runs:/0000/program"):
        load("runs:/0000/program")
    with pytest.raises(QuestreeError, match=rf"^{compiled.address} was compiled with the reader none"):
        load(compiled.address, retriever=mini.index, reader=ListReader({}))


def test_no_key_and_no_address_is_left_behind(tracked_compile):
    folder, *_, address = tracked_compile
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {"mlflow.db", "runs.db", "questree.json"} <= {file.name for file in files}
    for file in files:
        content = file.read_bytes()
        assert KEY.encode() not in content, file
        assert address.removesuffix("/v1").encode() not in content, file


def test_a_run_that_raises_is_marked_failed(tracking, mlflow):
    with pytest.raises(ZeroDivisionError), tracking.run("broken", {}) as run:
        raise ZeroDivisionError
    assert mlflow.get_run(run.id).info.status == "FAILED"


def test_mlflow_that_was_imported_before_does_not_tell_of_its_tables(monkeypatch):
    tells = logging.getLogger("mlflow.store.db.utils")
    monkeypatch.setattr(tells, "level", logging.INFO)
    bound_mlflow()
    assert tells.level == logging.CRITICAL


@pytest.mark.parametrize("table", ["runs", "latest_metrics"])
def test_a_store_that_has_no_room_is_told_in_one_line(table, tracking, mlflow, capfd, caplog):
    mlflow.MlflowClient(tracking.uri).create_experiment(tracking.experiment)
    with sqlite3.connect(tracking.uri.removeprefix("sqlite:///")) as store:
        full = "SELECT RAISE(ABORT, 'database or disk is full')"
        store.execute(f"CREATE TRIGGER full BEFORE INSERT ON {table} BEGIN {full}; END")
    told = ""
    try:
        with tracking.run("full", {}) as run:
            run.figures({"score": 1.0})
            run.texts({"a.txt": "a"})
    except QuestreeError as error:
        told = str(error)
    said = f"{told}{caplog.text}{capfd.readouterr().err}"
    assert said.count("(sqlite3.IntegrityError) database or disk is full.") == 1
    assert [word for word in ("Traceback", "INSERT INTO", "raised as a result") if word in said] == []


@pytest.mark.parametrize(("told", "waits"), [(None, [2, 4, 8]), ("1", [2])])
def test_a_server_that_is_gone_holds_the_work_for_a_quarter_of_a_minute(told, waits, monkeypatch):
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    if told:
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", told)
    waited = []
    monkeypatch.setattr(Retry, "sleep", lambda retry, *_: waited.append(retry.get_backoff_time()))
    with (
        pytest.raises(QuestreeError, match="no server answers there"),
        Tracking(uri="http://127.0.0.1:9").run("gone", {}),
    ):
        pass
    assert len(waited) == len(waits)
    assert all(wait <= most + 1 for wait, most in zip(waited, waits, strict=True))  # MLflow adds up to a second


def test_a_store_that_is_lost_costs_no_result(mini, tracking, monkeypatch, caplog, mlflow):
    tried = []

    def lost(*given, **how):
        tried.append(given)
        raise mlflow.MlflowException("the server is gone")

    monkeypatch.setattr(mlflow, "log_table", lost)
    compiled = compile_program(
        mini.program(), mini.examples(4, 2), mini.metric, optimizer="labeled-few-shot", tracking=tracking
    )
    assert (len(compiled.after.records), compiled.address) == (2, None)
    assert (len(tried), caplog.text.count("is not tracked any further: the server is gone.")) == (1, 1)
    [run] = mlflow.MlflowClient().search_runs(["1"])
    assert (run.info.status, "before_score" in run.data.metrics) == ("FAILED", True)
    with tracking.run("outer", {}):
        monkeypatch.setattr(Tracking, "_experiment", lost)
        with tracking.run("inner", {}) as inner:
            assert not inner.on
    with mlflow.start_run(), pytest.raises(QuestreeError, match="the server is gone"):  # in a run of the user's own
        tracking.run("first", {}).__enter__()


def test_runs_of_killed_processes_do_not_stay_running(tracking, monkeypatch, mlflow):
    client = mlflow.MlflowClient()
    (ended := subprocess.Popen(["true"])).wait()
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: ended.pid)
        with tracking.run("parent", {}) as parent, tracking.run("nested", {}) as nested:
            pass
    for run in (parent, nested):  # as a process leaves them that is killed
        client.update_run(run.id, "RUNNING")

    def status() -> dict[str, str]:
        return {run.info.run_name: run.info.status for run in client.search_runs(["1"])}

    assert status() == {"parent": "RUNNING", "nested": "RUNNING"}
    with tracking.run("next", {}), tracking.run("of the living", {}):
        assert status() == {"parent": "KILLED", "nested": "KILLED", "next": "RUNNING", "of the living": "RUNNING"}


def test_a_store_that_cannot_be_had_is_named_without_its_password(tmp_path):
    (tmp_path / "file").write_text("no database")
    with pytest.raises(QuestreeError, match="Cannot track to"), Tracking(uri=f"sqlite:///{tmp_path}/file").run("x", {}):
        pass
    assert without_password("https://me:secret@host:5000/x") == "https://…@host:5000/x"
    assert without_password("postgresql://me:sec[ret@host/x") == "postgresql:…"


def test_what_json_does_not_know_is_told_by_its_kind_alone():
    lm = dspy.LM("openai/gpt", api_key=KEY)
    assert plain({"lm": lm, "n": [1, "a", None]}) == {"lm": "<LM>", "n": [1, "a", None]}


def test_a_tracking_that_is_off_does_nothing_and_needs_no_mlflow(mini, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setattr("questree.evaluation.evaluation.Evaluation.figures", None)  # not even added up
    with OFF.run("nothing", {"a": 1}) as run, run.traces(), run.traces(compilation=True):
        run.params({"b": 1})
        run.figures({"c": 1.0})
        run.evaluation(evaluate(mini.program(), mini.dev[:1], mini.metric), prefix="after_")
        run.candidate(0, {}, {})
        run.prompts(mini.program())
        run.texts({"table.md": ""})
        assert (run.on, run.folder(tmp_path, "program")) == (False, None)
    assert list(tmp_path.iterdir()) == []


def test_candidates_are_nested_from_any_thread(tracking, mlflow):
    with tracking.run("compile", {}) as run:
        thread = threading.Thread(target=run.candidate, args=(0, {"score": 0.5}, {}))
        thread.start()
        thread.join()
    [found] = [one for one in mlflow.MlflowClient().search_runs(["1"]) if one.info.run_name == "candidate 0"]
    assert found.data.tags["mlflow.parentRunId"] == run.id


def test_a_metric_may_have_any_name(tracking, mlflow):
    with tracking.run("evaluate", {}) as run:
        run.figures({f"metric_{name}": 1.0 for name in ("<lambda>", "hits@5", "größe", "m" * 300)})
    logged = {"metric_-lambda-", "metric_hits-5", "metric_größe", "metric_" + "m" * 243}
    assert logged <= mlflow.get_run(run.id).data.metrics.keys()
