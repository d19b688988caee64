"""What a worker of a cluster is sent, what it makes of it, and what it sends back; without a cluster."""

from __future__ import annotations

import json
from concurrent.futures import Future

import dspy
import pytest

from questree.common.cluster import ClusterError, WorkerLostError
from questree.common.errors import QuestreeError
from questree.evaluation.run import answer
from questree.experiment import Experiment
from questree.optimize import load, save
from questree.remote_answers import Answering, RemoteAnswerers
from questree.settings import run_settings


class Here:
    """Workers of a cluster that are in this process."""

    def __init__(self, work):
        self.work = work

    def share(self, content):
        return content

    def do(self, *job):
        return self.work.start(*job).result()


def given(index, **more):
    return json.loads(run_settings(retriever=index, **more).model_dump_json(exclude={"out", "on"}))


def asked_both_ways(experiment, program, index, **more):
    """The record of a question, asked here and asked of a worker."""
    experiment.use_lm()
    example = experiment.examples("dev", 1)[0]
    here, _ = answer(program, example)
    there, exchanges = RemoteAnswerers(Here(Answering(given(index, **more)))).asking(program)(example)
    assert exchanges
    return [one.model_dump(exclude={"seconds", "spent"}) for one in (here, there)]


@pytest.mark.parametrize("event_loop", [False, True])
@pytest.mark.parametrize("name", ["searchain", "direct", "self-consistency"])
def test_a_worker_makes_the_same_program_and_the_same_record(name, event_loop, index, workplace):
    experiment = Experiment(run_settings(retriever=index))
    here, there = asked_both_ways(experiment, experiment.program(name), index, event_loop=event_loop)
    assert here == there


def test_settings_and_demonstrations_of_a_program_reach_the_worker(index, workplace):
    experiment = Experiment(run_settings(retriever=index))
    program = experiment.program("oner", k=2)
    for predictor in program.predictors():
        fields = predictor.signature.fields
        predictor.demos = [dspy.Example({name: [] if name == "passages" else "shown" for name in fields})]
    save(program, workplace / "saved")
    compiled = load(workplace / "saved", retriever=experiment.retriever)
    here, there = asked_both_ways(experiment, compiled, index)
    assert here == there


def test_another_index_on_the_worker_is_named(index, workplace, questree):
    (workplace / "corpus.jsonl").write_text('{"id": "a", "title": "A", "text": "about a"}\n')
    questree("index", "corpus.jsonl", "--out", "other", "--kind", "bm25")
    experiment = Experiment(run_settings(retriever=index))
    with pytest.raises(QuestreeError, match=r"Its retriever is \{.*\}, and not \{.*\} as where the command runs"):
        asked_both_ways(experiment, experiment.program("oner"), workplace / "other")


def test_an_index_that_is_not_on_the_worker_is_named(index, workplace):
    experiment = Experiment(run_settings(retriever=index))
    with pytest.raises(QuestreeError, match=r"There is no index at .*elsewhere/index"):
        asked_both_ways(experiment, experiment.program("oner"), "elsewhere/index")


def test_code_that_is_not_on_the_worker_is_named(index, workplace, monkeypatch):
    experiment = Experiment(run_settings(retriever=index))
    monkeypatch.setattr("questree.remote_answers.saved_name", lambda kind: "nowhere:Program")
    with pytest.raises(QuestreeError, match="there is no module 'nowhere', installed or in this folder"):
        asked_both_ways(experiment, experiment.program("direct"), index)


class Answers:
    """A worker that replies with whatever it is given."""

    def __init__(self, reply):
        self.reply = reply

    def start(self, *job):
        outcome = Future()
        outcome.set_result(self.reply)
        return outcome


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"nothing", "no record"),
        (b'{"record": {"id": "x", "question": "x"}, "exchanges": [], "more": 1}', "no record"),
        (b'{"record": {"id": "x", "question": "x"}, "exchanges": []}', "answered 'x' when asked"),
    ],
)
def test_what_comes_back_is_checked_before_it_is_kept(reply, said, index, workplace):
    experiment = Experiment(run_settings(retriever=index))
    asking = RemoteAnswerers(Here(Answers(reply))).asking(experiment.program("direct"))
    with pytest.raises(ClusterError, match=said):
        asking(experiment.examples("dev", 1)[0])


def test_a_question_that_every_worker_is_lost_at_fails_alone(index, workplace):
    class Lost(Here):
        def do(self, *job):
            raise WorkerLostError("3 workers were lost at it")

    experiment = Experiment(run_settings(retriever=index))
    record, exchanges = RemoteAnswerers(Lost(None)).asking(experiment.program("direct"))(
        experiment.examples("dev", 1)[0]
    )
    assert (record.failure.cause, exchanges) == ("error", [])
    assert "3 workers were lost at it" in record.failure.message
