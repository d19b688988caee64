"""Runs are packed into one file, and replayed from it by the present code: the same records, or what differs."""

import shutil
from functools import partial
from pathlib import Path

import dspy
import pytest
from dspy.adapters.baml_adapter import BAMLAdapter
from dspy.utils.exceptions import LMRateLimitError
from fakes import ListRetriever, ScriptedEngine
from mini_task import every_question

from questree.common.errors import QuestreeError
from questree.evaluation import compare, evaluate, repeat
from questree.evaluation.capsule import pack, replay
from questree.evaluation.capsule.differences import comparable
from questree.evaluation.stored_runs import read_records
from questree.lm import retries
from questree.lm.limits import RunPolicy
from questree.metrics import metric
from questree.programs import PROGRAMS, SearChain, SearChainSettings
from questree.programs.modules.reranker import LMRerankedRetriever
from questree.programs.registry import build, takes_retriever
from questree.retrieval import Passage
from questree.signatures.verdict import CheckStep
from questree.simulate import Traits, simulated_lm

MATCH = metric("cover-em")


@pytest.fixture(scope="module")
def bundled(_task, _index):
    """Bundled questions, an index of their corpus, and what makes a simulated LM that knows them."""
    return _task.examples("dev"), _index, partial(simulated_lm, every_question(_task))


@pytest.fixture(scope="module")
def compared(bundled):
    """Compares programs on the first bundled questions, with an LM that sometimes gives a reply that cannot be read."""
    dev, index, lm = bundled

    def run(names, count: int, out: Path) -> tuple[Path, Path]:
        parts = {True: index, False: None}
        programs = {name: build(name, {}, retriever=parts[takes_retriever(name, {})]) for name in names}
        with dspy.context(lm=lm(Traits(malformed=0.1), cache=False), adapter=None):
            compare(programs, dev[:count], [MATCH], task="mini", out=out / "runs")
        return out / "runs", packed(out / "runs")

    return run


@pytest.fixture(scope="module")
def study(compared, tmp_path_factory) -> tuple[Path, Path]:
    """Two programs over three questions: the folder of the runs, and the capsule."""
    return compared(["searchain", "direct"], 3, tmp_path_factory.mktemp("study"))


def packed(runs: Path) -> Path:
    """Pack a folder of runs; return the capsule."""
    pack([runs], runs.parent / "study.capsule")
    return runs.parent / "study.capsule"


def replays_alike(capsule: Path) -> bool:
    return not any(run.differing for run in replay(capsule))


def test_every_program_gives_the_same_records_from_the_capsule_alone(compared, tmp_path):
    runs, capsule = compared(PROGRAMS, 1, tmp_path)
    replayed = replay(capsule)
    assert {run.name for run in replayed} == {*PROGRAMS}
    for run in replayed:
        [question] = run.questions
        [stored] = read_records(runs / run.name)
        assert question.same, run.name
        assert comparable(question.record) == comparable(stored)
        assert question.record.scores == stored.scores


def test_a_changed_instruction_is_named_at_exactly_its_prompts(study, monkeypatch):
    _, capsule = study
    monkeypatch.setattr(CheckStep, "__doc__", "Say otherwise what the passages say of the step.")
    found = replay(capsule)
    told = [one for run in found for question in run.questions for one in question.differences]
    assert {(one.by, one.why) for one in told} == {("CheckStep", "prompt changed")}
    assert told[0].text.startswith("in system:\n")
    assert "Say otherwise what the passages say" in told[0].text
    asked = [one for run in found if run.name == "searchain" for one in run.questions]
    assert all(one.differences for one in asked)
    assert all(one.record is not None for one in asked)  # the stored reply served: what follows is compared as well
    assert not next(run for run in found if run.name == "direct").differing


def test_the_same_runs_give_the_same_file(study, tmp_path):
    runs, capsule = study
    pack([runs], tmp_path / "again.capsule")
    assert (tmp_path / "again.capsule").read_bytes() == capsule.read_bytes()


def test_a_replay_needs_no_task_no_index_and_no_lm(study, questree):
    _, capsule = study
    shutil.copy(capsule, "study.capsule")
    dspy.configure(lm=None)
    assert "searchain: 3 of 3 records are the same" in questree("replay study.capsule").done().out
    assert "no question 'nobody'" in questree("replay study.capsule --question nobody").refused()


def test_a_run_under_an_adapter_outside_of_dspys_own_names_is_replayed(bundled, tmp_path):
    dev, _, lm = bundled
    with dspy.context(lm=lm(cache=False), adapter=BAMLAdapter()):
        evaluate(build("direct", {}), dev[:1], MATCH, out=tmp_path / "run")
    assert replays_alike(packed(tmp_path / "run"))


def asked(tmp_path, replies):
    """A run of SearChain with scripted replies, in a capsule."""
    lm = dspy.LM("scripted/test", engine=ScriptedEngine(replies), cache=False, num_retries=3)
    program = SearChain(ListReader(), settings=SearChainSettings(max_rounds=1))
    question = dspy.Example(id="q", question="Where is it?", answers=["Venice"], answer_style="short")
    with dspy.context(lm=lm, adapter=None):
        evaluate(program, [question.with_inputs("question", "answer_style")], MATCH, out=tmp_path / "run")
    return packed(tmp_path / "run")


class ListReader(ListRetriever):
    """Finds one passage, whatever is asked."""

    def __init__(self):
        super().__init__({"": "Venice is where it is."})

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        return super().__call__("", k)


def test_a_request_that_failed_fails_again_without_a_wait(tmp_path, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(retries, "sleep", waits.append)
    capsule = asked(tmp_path, [LMRateLimitError("slow down", status=429, model="hosted/one")] * 4)
    assert len(waits) == 3
    [question] = replay(capsule)[0].questions
    assert question.same
    assert question.record.failure.cause == "rate-limit"
    assert question.record.spent.failed == 4
    assert len(waits) == 3


def test_a_reply_that_is_read_otherwise_is_named(tmp_path, monkeypatch):
    capsule = asked(tmp_path, ["no field at all", "none again", "and none"])
    assert replays_alike(capsule)
    monkeypatch.setattr("questree.lm.call.ATTEMPTS", 2)
    [question] = replay(capsule)[0].questions
    assert [one.why for one in question.differences] == ["no longer asked"]


def test_a_search_that_failed_fails_again(tmp_path):
    class Gone(ListReader):
        def __call__(self, query, k=1):
            raise OSError("the disk is gone")

    program = build("oner", {}, retriever=Gone())
    question = dspy.Example(id="q", question="Where?", answers=["here"]).with_inputs("question")
    lm = dspy.LM("scripted/test", engine=ScriptedEngine([]), cache=False)
    with dspy.context(lm=lm, adapter=None), pytest.raises(QuestreeError, match="disk is gone"):
        evaluate(program, [question], MATCH, out=tmp_path / "run")
    [replayed] = replay(packed(tmp_path / "run"))[0].questions
    assert replayed.same
    assert replayed.record.failure.cause == "retrieval"


def test_what_a_reranker_by_the_lm_took_is_kept_with_its_searches(bundled, tmp_path):
    dev, index, lm = bundled
    program = build("oner", {}, retriever=LMRerankedRetriever(index, candidates=30))
    with dspy.context(lm=lm(cache=False), adapter=None):
        found = evaluate(program, dev[:2], MATCH, task="mini", out=tmp_path / "run")
    assert [record.spent.calls for record in found.records] == [3, 3]
    [run] = replay(packed(tmp_path / "run"))
    assert all(question.same for question in run.questions)
    assert [question.record.spent.calls for question in run.questions] == [3, 3]


def test_samples_have_replies_of_their_own(bundled, tmp_path):
    dev, index, lm = bundled
    with dspy.context(lm=lm(Traits(malformed=0.2), temperature=0.7), adapter=None):
        repeat(build("self-consistency", {}, retriever=index), dev[:2], [MATCH], 2, out=tmp_path / "runs")
    assert replays_alike(packed(tmp_path / "runs"))


def test_the_lm_that_a_program_has_of_its_own_is_replayed(bundled, tmp_path):
    dev, _, lm = bundled
    program = build("recite", {}, retriever=None)
    program.set_lm(lm(temperature=0.7))
    with dspy.context(lm=None):
        evaluate(program, dev[:2], MATCH, out=tmp_path / "run")
        assert replays_alike(packed(tmp_path / "run"))
        program.predictors()[0].lm = lm(temperature=0.1)
        evaluate(program, dev[:2], MATCH, out=tmp_path / "several")
    with pytest.raises(QuestreeError, match="several cannot be packed: its predictors ask different LMs"):
        packed(tmp_path / "several")


@pytest.mark.parametrize("windows", [(1200, None), (None, 1200)])
def test_each_question_is_replayed_with_the_window_that_it_was_asked_under(bundled, tmp_path, windows):
    dev, index, lm = bundled
    program = build("blendfilter", {}, retriever=index)
    for count, window in enumerate(windows, start=1):
        with dspy.context(lm=lm(), adapter=None):
            evaluate(program, dev[:count], MATCH, out=tmp_path / "run", policy=RunPolicy(window=window))
    assert {bool(record.dropped) for record in read_records(tmp_path / "run")} == {True, False}
    assert replays_alike(packed(tmp_path / "run"))


def test_a_question_that_was_asked_again_is_replayed_as_it_was_asked_last(tmp_path, monkeypatch):
    monkeypatch.setattr(retries, "sleep", lambda seconds: None)
    asked(tmp_path, [LMRateLimitError("slow down", status=429)] * 4)
    capsule = asked(tmp_path, ["x", "y", "z"])
    [question] = replay(capsule)[0].questions
    assert question.same
    assert question.record.failure.cause == "unparsable"


def test_no_secret_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789abcdef")
    capsule = asked(tmp_path, ["the key is sk-0123456789abcdef"] * 3)
    assert b"0123456789abcdef" not in capsule.read_bytes()
    assert replays_alike(capsule)
