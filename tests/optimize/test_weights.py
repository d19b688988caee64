"""Optimizers that train the LM, with a provider that is made here: nothing is trained anywhere."""

import json
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import dspy
import pytest
from dspy.clients.openai import OpenAIProvider
from dspy.clients.provider import Provider, TrainingJob
from dspy.clients.utils_finetune import TrainingStatus
from run_files import change, rows

from questree.common.errors import QuestreeError
from questree.evaluation.run import Interrupted
from questree.lm.limits import OutOfBudgetError, RunPolicy
from questree.optimize import load, optimizer, trainings
from questree.optimize.compilation import _track


class Job(TrainingJob):
    """A job that the provider knows by a name."""

    provider_job_id: str | None = None
    ended = TrainingStatus.running

    def status(self) -> TrainingStatus:
        return self.ended


class Trainer(Provider):
    """A provider that notes what LMs would be trained on, and gives each of them a name."""

    def __init__(self, ends: Any = None) -> None:
        super().__init__()
        self.finetunable, self.TrainingJob = True, Job
        self.ends = ends
        self.asked: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = []
        self.waited: list[str] = []

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def finetune(self, job: Any, model: str, data: list[Any], form: str, how: dict[str, Any]) -> str:
        self.asked.append((model, data, how))
        if self.ends is not None:
            self.ends(job)
        return f"trained-{len(self.asked)}"

    def wait_for_job(self, job: Any) -> None:
        self.waited.append(job.provider_job_id)

    def get_trained_model(self, job: Any) -> str:
        return "trained-elsewhere"


@pytest.fixture
def trainer(mini):
    """The provider of the configured LM."""
    dspy.settings.lm.provider = Trainer()
    return dspy.settings.lm.provider


def trained(mini, out=None, name="bootstrap-finetune", policy=None, train=8, **settings):
    named = optimizer(name, **settings)
    return mini.compiled(named, train=train, dev=2, out=out, policy=policy)


def test_the_lm_is_trained_on_good_steps_as_they_were_asked_and_scored_before_and_after(mini, trainer, heard, tmp_path):
    compiled = trained(mini, tmp_path, train_kwargs={"n_epochs": 2})
    [(model, data, how)] = trainer.asked
    before = dspy.settings.lm.model
    assert (model, how) == (before, {"n_epochs": 2})
    assert [message["role"] for message in data[0]["messages"]] == ["system", "user", "assistant"]
    prompts = [json.dumps(messages) for lm, messages in heard.asked if lm.model == before]
    assert {json.dumps(one["messages"][:-1]) for one in data} <= {*prompts}
    judged = compiled.compilation.judged
    assert len(data) > judged["accepted"] * len(mini.program().predictors()) / 2  # all good steps, not one a predictor
    assert compiled.compilation.lm.model == "simulated/trained-1"
    assert [lm.model for lm, _ in heard.asked].count("simulated/trained-1") == compiled.after.spent.calls
    assert compiled.after.simulated
    assert not compiled.compilation.candidates
    assert {predictor.lm for predictor in compiled.program.predictors()} == {None}
    assert json.loads((tmp_path / "program/questree.json").read_text())["lm"]["name"] == "simulated/trained-1"
    assert rows(tmp_path, "SELECT name, lm FROM run") == [("before", before), ("after", "simulated/trained-1")]
    assert "trained" not in (tmp_path / "program/questree.json").read_text().split('"state"')[1]
    assert load(tmp_path / "program", retriever=mini.index).predictors()[0].lm is None


def test_what_cannot_be_trained_is_refused_before_anything_is_asked(mini, heard, tmp_path):
    lm, own = dspy.settings.lm, mini.program()
    own.predictors()[0].lm = lm.copy()
    able = lm.copy()
    able.provider = Trainer()
    served = dspy.LM("openai/gpt-4o-mini", api_base="http://127.0.0.1:9/v1", api_key="none")
    refused = [
        ({}, RunPolicy(), mini.program(), r"simulated/.* cannot be trained.*--lm openai/.*bootstrap-random-search"),
        ({"lm": None}, RunPolicy(), mini.program(), "no LM cannot be trained"),
        ({"lm": served}, RunPolicy(), mini.program(), "data to OpenAI all the same. Leave --api-base out"),
        ({"lm": able, "adapter": dspy.JSONAdapter()}, RunPolicy(), mini.program(), "--adapter chat"),
        ({"lm": able}, RunPolicy(max_cost=1), mini.program(), "--max-cost cannot be held"),
        ({"lm": able}, RunPolicy(), own, "has an LM of its own"),
    ]
    for name in ("bootstrap-finetune", "better-together"):
        for settings, policy, program, reason in refused:
            with dspy.context(**settings), pytest.raises(QuestreeError, match=reason):
                mini.compiled(name, train=8, dev=4, program=program, out=tmp_path / "out", policy=policy)
    assert not heard.asked
    assert not (tmp_path / "out").exists()


@contextmanager
def stopped_by_ctrl_c(trainer, job_id=None):
    """Let Ctrl-C come when the provider has begun to train; it goes on until the block ends."""
    begun, end = Event(), Event()

    def train(job):
        job.provider_job_id = job_id
        begun.set()
        end.wait()

    def come(jobs, timeout):
        assert begun.wait(20)
        raise KeyboardInterrupt

    trainer.ends = train
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trainings, "wait", come)
        yield
    end.set()
    trainer.ends = None


def test_a_stopped_run_leaves_the_job_to_the_provider_and_the_next_one_waits_for_it(mini, trainer, tmp_path):
    told = r"its job job-1: the same command waits for it; what .* Run the same again"
    with stopped_by_ctrl_c(trainer, "job-1"), pytest.raises(Interrupted, match=told):
        trained(mini, tmp_path)
    compiled = trained(mini, tmp_path)
    assert (len(trainer.asked), trainer.waited) == (1, ["job-1"])
    assert compiled.compilation.lm.model == "simulated/trained-elsewhere"


def test_a_job_without_a_name_is_begun_anew_and_said_to_be(mini, trainer, tmp_path):
    with stopped_by_ctrl_c(trainer), pytest.raises(Interrupted, match="so that the same command trains anew"):
        trained(mini, tmp_path)
    assert trained(mini, tmp_path).compilation.lm.model == "simulated/trained-2"


def test_an_lm_that_was_trained_is_not_trained_again_if_the_run_ends_before_its_score(mini, trainer, tmp_path):
    def stop(progress):
        if progress.stage == "after":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mini.compiled("bootstrap-finetune", train=8, dev=2, out=tmp_path, on_progress=stop)
    first = trained(mini, tmp_path)
    assert (len(trainer.asked), first.compilation.lm.model) == (1, "simulated/trained-1")
    assert trained(mini, tmp_path).after == first.after
    change(tmp_path, "DELETE FROM facts WHERE name = 'trainings'")  # a saved program chooses no LM by itself
    with pytest.raises(QuestreeError, match=r"'simulated/trained-1', and runs\.db beside it does not say"):
        trained(mini, tmp_path)


def test_a_failed_training_says_why_and_one_out_of_sight_is_looked_for_again(mini, trainer, tmp_path):
    def fail(job):
        job.provider_job_id, job.ended = "job-1", TrainingStatus.failed
        raise ValueError("too few examples")

    def lose(job):
        job.provider_job_id = "job-2"
        raise ConnectionError("no route")

    trainer.ends = fail
    with pytest.raises(QuestreeError, match="was not trained: too few examples"):
        trained(mini, tmp_path)
    trainer.ends = lose
    with pytest.raises(QuestreeError, match=r"the provider's job job-2: no route\. Run .* waits for that job"):
        trained(mini, tmp_path)
    assert trained(mini, tmp_path).compilation.lm.model == "simulated/trained-elsewhere"
    assert (len(trainer.asked), trainer.waited) == (2, ["job-2"])


def test_dspy_s_own_provider_of_openai_trains_and_is_waited_for(mini, tmp_path, monkeypatch):
    began: list[str] = []
    told = {"status": "running", "estimated_finish": None, "fine_tuned_model": "ft:gpt-4o-mini:org::1"}
    job = SimpleNamespace(id="ftjob-1", **told)

    def create(*, model: str, training_file: str, hyperparameters: dict[str, Any]) -> Any:
        began.append(training_file)
        return job

    def retrieve(id: str) -> Any:
        if job.status == "running":
            raise ConnectionError("no route")
        return job

    jobs = SimpleNamespace(create=create, retrieve=retrieve, list_events=lambda **how: SimpleNamespace(data=[]))
    files = SimpleNamespace(create=lambda file, purpose: SimpleNamespace(id=Path(file.name).parent.name))
    openai = SimpleNamespace(files=files, fine_tuning=SimpleNamespace(jobs=jobs))
    monkeypatch.setattr("dspy.clients.openai.openai", openai)
    monkeypatch.setattr("dspy.clients.openai.time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setenv("DSPY_FINETUNEDIR", str(tmp_path / "sent"))
    dspy.settings.lm.provider = OpenAIProvider()
    with pytest.raises(QuestreeError, match=r"job ftjob-1: no route\. Run .* waits for that job"):
        trained(mini, tmp_path / "out")
    job.status = "succeeded"
    assert trained(mini, tmp_path / "out").compilation.lm.model == "simulated/ft:gpt-4o-mini:org::1"
    assert began == ["sent"]


def test_nothing_to_learn_from_trains_nothing(mini, trainer):
    def never(example, prediction, trace=None):
        return 0.0

    with pytest.raises(QuestreeError, match="Of 8 training questions, 0 were answered well"):
        mini.compiled("bootstrap-finetune", train=8, dev=4, metric=never)
    assert not trainer.asked


def test_a_spent_budget_begins_no_training(mini, trainer, tmp_path):
    free = trained(mini)
    calls = free.before.spent.calls + free.compilation.spent.calls
    with pytest.raises(OutOfBudgetError, match="while compiling"):
        trained(mini, tmp_path, policy=RunPolicy(max_calls=calls))
    assert len(trainer.asked) == 1
    trained(mini, tmp_path / "more", policy=RunPolicy(max_calls=calls + 1))
    assert len(trainer.asked) == 2


def test_annotations_teach_an_lm_without_asking_one(mini, trainer):
    compiled = mini.compiled("bootstrap-finetune", train=8, dev=4, teacher="annotations")
    assert compiled.compilation.spent.calls == 0
    assert trainer.asked


def test_prompts_and_lm_are_optimized_in_turn_and_the_best_of_all_is_kept(mini, trainer, heard, tmp_path):
    settings = {"strategy": "w -> p", "prompt_optimizer": "bootstrap-few-shot", "train": 48}
    compiled = trained(mini, tmp_path, "better-together", **settings)
    assert len(trainer.asked) == 1
    assert len(compiled.compilation.candidates) == 3  # as it came, trained, and with prompts beside
    scores = [one.score for one in compiled.compilation.candidates]
    assert max(scores) > scores[0]
    assert compiled.compilation.lm.model == "simulated/trained-1"
    models = [lm.model for lm, _ in heard.asked]
    first = models.index("simulated/trained-1")
    assert {*models[first:]} == {"simulated/trained-1"}  # demonstrations are bootstrapped with it as well
    again = trained(mini, tmp_path, "better-together", **settings)
    assert (again.after, len(trainer.asked)) == (compiled.after, 1)


def test_a_step_that_fails_ends_it_and_is_not_hidden(mini, trainer):
    def fail(job):
        raise ValueError("too few examples")

    trainer.ends = fail
    with pytest.raises(QuestreeError, match="was not trained: too few examples"):
        trained(mini, name="better-together", strategy="w")


def test_the_tracked_run_names_the_trained_lm(mini, trainer, monkeypatch):
    run, compiled = Mock(), trained(mini)
    monkeypatch.setattr("questree.optimize.compilation.log_model", lambda folder, register: None)
    _track(run, compiled, Path("program"), register=None)
    run.params.assert_called_once_with({"trained lm": "simulated/trained-1"})


@pytest.mark.parametrize(
    ("settings", "unasked"),
    [
        ({}, {"prompt_lm"}),  # the default prompt_optimizer asks for no instructions
        ({"strategy": "w", "prompt_optimizer": "copro"}, {"prompt_lm"}),
        ({"strategy": "p", "prompt_optimizer": "copro"}, {"teacher"}),
        ({"strategy": "p -> w", "prompt_optimizer": "mipro"}, set()),
    ],
)
def test_what_no_step_of_the_strategy_asks_is_refused(settings, unasked):
    assert optimizer("better-together", **settings).leaves_aside() == unasked
