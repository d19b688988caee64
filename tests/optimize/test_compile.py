import json
import re
import shutil
from dataclasses import replace
from functools import partial
from threading import Lock

import dspy
import pytest
from dspy import lm15
from fakes import FunctionEngine
from run_files import change, rows

from questree.common.errors import QuestreeError
from questree.evaluation.record_scores import MetricError
from questree.evaluation.run import Interrupted
from questree.evaluation.run_file import writing
from questree.evaluation.tracking import Tracking
from questree.lm.limits import RunPolicy
from questree.lm.spent import Spent
from questree.metrics import metric
from questree.optimize import Examples, Optimizer, load, optimizer
from questree.optimize import candidates as observers
from questree.optimize import compile as compile_program
from questree.optimize.artifact import save
from questree.optimize.candidates import CandidateKeeper, read_candidates
from questree.optimize.result import Compilation
from questree.programs import REGISTRY, SearChain, SearChainSettings, build, saved_name
from questree.programs.composed import Majority


def test_compiling_helps_and_says_how_sure_that_is(mini):
    compiled = mini.compiled("bootstrap-few-shot", train=40, dev=20)
    assert compiled.after.score.mean > compiled.before.score.mean
    assert compiled.gain.low <= compiled.gain.mean <= compiled.gain.high
    assert compiled.gain.mean == pytest.approx(compiled.after.score.mean - compiled.before.score.mean)
    assert compiled.after.simulated
    assert compiled.compilation.judged["accepted"] > 0


@pytest.mark.parametrize("optimizer", ["bootstrap-few-shot", "gepa", "mipro"])
def test_a_metric_that_fails_in_compilation_ends_it(mini, optimizer, tmp_path):
    def untraced(gold, prediction):
        return 1.0

    said = r"'untraced' cannot judge .* called with \(example, prediction, trace\); what .*kept in .*run the same again"
    with pytest.raises(MetricError, match=said):
        mini.compiled(optimizer, train=8, dev=2, metric=untraced, out=tmp_path)
    assert not (tmp_path / "program").exists()


def test_a_question_that_is_scored_is_none_of_training_whatever_its_id(mini):
    examples = mini.examples(8, 2)
    again = examples.train[3].copy(id="another", question=f"{examples.train[3].question.upper().rstrip('?')} ?")
    examples = replace(examples, dev=[*examples.dev, again])
    said = f"1 questions are for compiling and for scoring, '{re.escape(again.question)}' for one"
    with pytest.raises(QuestreeError, match=said):
        compile_program(mini.program(), examples, mini.metric, optimizer="labeled-few-shot")


def test_a_compilation_can_be_compiled_again_and_stays_as_it_is(mini):
    once = mini.compiled("bootstrap-few-shot")
    before = once.program.dump_state()
    again = mini.compiled("bootstrap-few-shot", program=once.program)
    assert again.before.score == once.after.score
    assert once.program.dump_state() == before


def test_the_same_again_takes_what_is_there(mini, searched, tmp_path):
    folder, first = searched
    told, out = [], shutil.copytree(folder, tmp_path / "run")
    second = mini.compiled(out=out, on_progress=told.append)
    assert [progress.stage for progress in told] == ["before", "after"]
    assert (second.before, second.after) == (first.before, first.after)
    assert second.compilation.spent == first.compilation.spent
    assert second.compilation.candidates == first.compilation.candidates


def test_a_finished_compilation_is_tracked_once_and_registered_by_name(mini, tmp_path, tracking_store):
    from mlflow import MlflowClient

    tracking = Tracking(uri=tracking_store(tmp_path), traces=False)
    again = partial(mini.compiled, "labeled-few-shot", train=4, dev=2, out=tmp_path / "run", tracking=tracking)
    first, second = again(), again()
    client = MlflowClient(tracking.uri)
    runs = client.search_runs(["1"])
    assert second.address == first.address
    (parent,) = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    assert parent.info.run_name == "searchain labeled-few-shot"
    assert runs[-1].data.metrics["score"] == first.after.score.mean
    assert not client.search_registered_models()
    assert again(register="chain").address == again(register="chain").address
    assert [version.version for version in client.search_model_versions("name = 'chain'")] == [1]


def test_what_was_changed_is_said(mini):
    def changed(program):
        return Compilation(program, (), Spent(), Spent(), 0.0, {}).changed

    program = mini.program()
    assert changed(program) == "nothing; more questions or another optimizer may find more"
    plan = program.predictors()[0]
    plan.signature, plan.demos = plan.signature.with_instructions("Plan well."), [dspy.Example()]
    assert changed(program) == "instructions of 1 of 4 prompts, 1 demonstration"
    assert changed(Majority([program, program])).startswith("2 programs that vote, instructions of 1 of 4 prompts, ")


def interrupted(mini, out):
    """A compilation that was stopped at its second candidate."""

    def stop(progress):
        if progress.candidate is not None and progress.candidate.number == 1:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stopped:
        mini.compiled(dev=1, out=out, on_progress=stop)
    return str(stopped.value)


CANDIDATES = "SELECT * FROM candidates ORDER BY number"


def test_an_interrupted_compilation_goes_on_and_finds_its_candidates_again(mini, searched, tmp_path, caplog):
    assert interrupted(mini, tmp_path).startswith("Stopped while compiling; what was scored is kept in")
    kept = rows(tmp_path, CANDIDATES)
    assert (len(kept), (tmp_path / "program").exists()) == (2, False)
    done = mini.compiled(dev=1, out=tmp_path)
    assert rows(tmp_path, CANDIDATES)[:2] == kept
    assert not caplog.text
    assert done.program.dump_state() == searched[1].program.dump_state()


def test_candidates_that_are_not_found_again_are_replaced(mini, tmp_path):
    interrupted(mini, tmp_path)
    change(tmp_path, "UPDATE candidates SET score = 0.125 WHERE number = 1")
    change(tmp_path, "INSERT INTO candidates SELECT 9, score, questions, state FROM candidates WHERE number = 1")
    done = mini.compiled(dev=1, out=tmp_path).compilation.candidates
    assert rows(tmp_path, "SELECT number, score FROM candidates") == [(one.number, one.score) for one in done]


def test_who_stops_an_optimizer_is_told_whether_its_calls_are_kept(mini, tmp_path):
    assert "asks it all of its questions anew" in interrupted(mini, tmp_path / "without")
    dspy.configure_cache(disk_cache_dir=str(tmp_path / "cache"))
    with dspy.context(lm=dspy.settings.lm.copy(cache=True)):
        assert "come from the cache" in interrupted(mini, tmp_path / "with")


def test_another_plan_in_the_same_folder_is_refused(mini, tmp_path):
    mini.compiled("labeled-few-shot", out=tmp_path)
    with pytest.raises(QuestreeError, match="seed was 0 and is now 1"):
        mini.compiled("labeled-few-shot", out=tmp_path, seed=1)


def _majority():
    return Majority([SearChain(None), SearChain(None)])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"examples": None}, r"train=None is no list of dspy\.Example; give .*Examples\(train=\.\.\., dev=\.\.\.\)"),
        ({"examples": Examples([], ["Who?"])}, r"dev=\['Who\?'\] is no list of dspy\.Example"),
        ({"examples": Examples([dspy.Example(question="Who?")], [])}, r"'Who\?' cannot be asked: .*with_inputs"),
        ({"optimizer": dspy.BootstrapFewShot()}, r"optimizer=.* is of the type BootstrapFewShot; give one of .*mipro"),
        ({"optimizer": "gepa", "teacher": "annotations"}, "gepa asks no teacher: .*mipro"),
        ({"optimizer": optimizer("mipro", candidates=3)}, "mipro takes .*auto"),
        ({"optimizer": optimizer("mipro", trials=3)}, "mipro takes .*auto"),
        ({"optimizer": optimizer("mipro", auto=None)}, "mipro takes .*auto"),
        ({"optimizer": optimizer("gepa", auto=None)}, "gepa takes .*auto"),
        ({"prompt_lm": dspy.LM("a/b")}, "bootstrap-random-search asks no prompt_lm: .*mipro"),
        ({"teacher": "annotation"}, r"'annotation' is no teacher; give a program \(questree\.load.* or 'annotations'"),
        ({"teacher": build("direct", {})}, "has other prompts than this searchain"),
        ({"teacher": _majority()}, "has other prompts than this searchain"),
        ({"metric": [metric("f1")]}, "is no metric: give a function"),
        ({"policy": {"max_calls": 5}}, r"is of the type dict; give questree\.evaluation\.RunPolicy"),
        ({"program": _majority()}, r"made of compiled programs \(majority\).*members"),
        ({"register": "chain"}, "register='chain' needs MLflow: name a store"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_asked(mini, given, said, tmp_path):
    asked = {"program": mini.program(), "examples": mini.examples(), "metric": mini.metric, "out": tmp_path / "run"}
    with pytest.raises(QuestreeError, match=said):
        compile_program(**{**asked, **given})
    assert not (tmp_path / "run").exists()


def test_a_class_that_nothing_can_load_is_told_before_anything_is_asked(mini, tmp_path, caplog, monkeypatch):
    class Local(SearChain):
        pass

    told = []
    with pytest.raises(QuestreeError, match="Local stands inside a function"):
        mini.compiled(None, program=Local(mini.index), out=tmp_path, on_progress=told.append)
    assert told == []
    Local.__module__, Local.__qualname__ = "__main__", "Local"
    monkeypatch.setattr(REGISTRY, "_imported", {})
    assert [saved_name(Local), saved_name(Local)] == ["__main__:Local"] * 2
    assert caplog.text.count("Local stands in a script or notebook, which alone can load it") == 1


@pytest.mark.parametrize("made", [None, dspy.Predict("question -> answer"), build("direct", {})])
def test_an_optimizer_that_returns_something_else_is_told_what_to_return(mini, made):
    class Own(Optimizer):
        name = "own"

        def make(self, student, job):
            return made

    with pytest.raises(QuestreeError, match=r"own returned .* no copy of searchain .* return it"):
        mini.compiled(Own(), train=6, dev=2)


def test_a_program_that_was_compiled_for_other_code_of_one_s_own_metric_is_not_taken(mini, tmp_path):
    def compiled(accepts):
        def own(example, prediction, trace=None):
            return accepts

        return mini.compiled("bootstrap-few-shot", train=6, dev=2, metric=own, out=tmp_path)

    first = compiled(True)
    assert compiled(True).program.dump_state() == first.program.dump_state()
    with pytest.raises(QuestreeError, match=r"demonstrations of searchain have changed .* name another folder"):
        compiled(False)
    assert load(tmp_path / "program", retriever=mini.index).dump_state() == first.program.dump_state()


def test_another_teacher_of_the_same_name_is_another_compilation(mini, tmp_path):
    taught = partial(mini.compiled, "bootstrap-few-shot", train=6, dev=2, out=tmp_path)
    taught(teacher=mini.program())
    taught(teacher=mini.program())
    others = [SearChain(mini.index, settings=SearChainSettings(max_rounds=1)), mini.program(), mini.program()]
    others[1].predictors()[0].demos = [dspy.Example(question="Who?")]
    others[2].set_lm(dspy.LM("openai/better", api_key="none"))
    for other in others:
        with pytest.raises(QuestreeError, match=r"state of the teacher was .* name another folder"):
            taught(teacher=other)


def test_copies_of_a_program_share_its_lm_and_duplicate_check_and_leave_its_history_behind(mini):
    class Check:
        def __init__(self):
            self.held = Lock()  # as a model has, which cannot be copied

        def __call__(self, query, seen):
            return None

    program = build("searchain", {}, retriever=mini.index, duplicates=Check())
    program.set_lm(dspy.settings.lm)
    program(**mini.dev[0].inputs())
    copied = program.deepcopy()
    assert copied.duplicates is program.duplicates
    assert copied.predictors()[0].lm is dspy.settings.lm
    assert program.history
    assert copied.history == []


@pytest.mark.parametrize("name", ["bootstrap-few-shot", "infer-rules"])
def test_a_teacher_teaches_with_its_own_lm_instructions_and_demonstrations(mini, heard, tmp_path, name):
    chosen = optimizer(name, **({} if name == "bootstrap-few-shot" else {"candidates": 1}))
    taught = mini.compiled("bootstrap-few-shot", train=8, dev=2).program
    teacher = load(save(taught, tmp_path / "teacher"), retriever=mini.index)
    plan = teacher.predictors()[0]
    plan.signature = plan.signature.with_instructions("Plan as a teacher does.")
    teacher.set_lm(dspy.settings.lm.copy(seed=77))

    mini.compiled(chosen, train=8, dev=2, teacher=teacher)
    seen = [messages for lm, messages in heard.asked if lm.kwargs.get("seed") == 77]
    plans = [messages for messages in seen if "Plan as a teacher does." in messages[0]["content"]]
    assert plans
    assert {len(messages) for messages in plans} == {2 + 2 * len(plan.demos)}
    assert plan.demos


def test_a_dead_lm_ends_it_before_the_optimizer_starts(mini):
    dead = dspy.LM("openai/x", api_base="http://127.0.0.1:9/v1", api_key="none", num_retries=0, cache=False)
    told, policy = [], RunPolicy(give_up_after=2)
    with dspy.context(lm=dead), pytest.raises(QuestreeError, match="Check the LM"):
        mini.compiled(None, policy=policy, on_progress=told.append)
    assert {progress.stage for progress in told} == {"before"}


def test_what_was_made_while_the_index_could_not_be_had_is_not_kept(mini, tmp_path):
    class Flaky(type(mini.index)):
        down = False

        def __call__(self, query, k=1):
            if self.down:
                raise ConnectionError("index is down")
            return super().__call__(query, k)

    index = Flaky(mini.index.passages)

    def go_down(progress):
        index.down = progress.stage == "compile"

    with pytest.raises(QuestreeError, match="retrieval"):
        mini.compiled(program=SearChain(index), out=tmp_path, on_progress=go_down)
    assert not (tmp_path / "program").exists()


@pytest.mark.parametrize("error", [lm15.RateLimitError("slow down"), lm15.TimeoutError("too slow")])
def test_what_was_made_while_the_lm_gave_no_answers_is_not_kept_and_is_made_by_the_next_call(mini, tmp_path, error):
    inner, closed = dspy.settings.lm.engine, [False]

    def complete(request):
        if closed[0]:
            raise error
        return inner.complete(request)

    def turn_away(progress):
        closed[0] = progress.stage == "compile" and not (tmp_path / "again").exists()

    def compiled():
        return mini.compiled(dev=1, out=tmp_path, on_progress=turn_away)

    lm = dspy.LM("limited/test", engine=FunctionEngine(complete), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        with pytest.raises(QuestreeError, match=r"questions asked in compilation \d+ failed .*says nothing"):
            compiled()
        assert not (tmp_path / "program").exists()
        (tmp_path / "again").touch()
        assert compiled().compilation.judged["accepted"] > 0


def test_an_optimizer_that_compares_nothing_trains_on_all(mini):
    train, val = mini.examples(12).split(0, compares=False)
    assert (len(train), len(val)) == (12, 0)
    train, val = mini.examples(12).split(0, compares=True)
    assert (len(train), len(val)) == (6, 6)
    assert mini.examples(12).split(0, compares=True)[0] == train
    assert Examples(mini.train[:3], mini.dev, val=mini.train[3:5]).split(0, compares=True)[1] == mini.train[3:5]


def test_a_candidate_that_cannot_be_written_is_said_and_ends_nothing(mini, tmp_path, monkeypatch, caplog):
    def full(state):
        raise QuestreeError("no space left")

    monkeypatch.setattr(observers, "to_json", full)
    compiled = mini.compiled(dev=1, out=tmp_path)
    assert "Candidate 0 was not kept: no space left" in caplog.text
    assert compiled.artifact is not None


def test_a_forged_candidate_is_refused_by_name(mini, tmp_path):
    with writing(tmp_path, "compilation") as file:
        keeper = CandidateKeeper(file, lambda candidate: None)
        keeper.keep(mini.program(), 0.5, 4)
        assert read_candidates(file) == tuple(keeper.candidates)
        state = json.loads(file.rows("SELECT state FROM candidates")[0][0])
        name = next(iter(state))
        forged = [
            *("", "[]", "null", "{", "[" * 9999, "\ufeff{}"),
            *(json.dumps({name: part}) for part in ([], {}, {**state[name], "demos": {}})),
            json.dumps({name: {**state[name], "config": {"api_base": "http://evil.example"}}}),
        ]
        for content in forged:
            file.write(("UPDATE candidates SET state = ?", (content,)))
            with pytest.raises(QuestreeError, match="is damaged"):
                read_candidates(file)
