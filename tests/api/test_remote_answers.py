"""What a worker of a cluster is sent, what it makes of it, and what it sends back; without a cluster."""

import json
import shutil
from contextlib import nullcontext

import dspy
import pytest

from questree.common.errors import QuestreeError
from questree.evaluation import OutOfBudgetError, RunPolicy, evaluate, read_records
from questree.evaluation.run import answer
from questree.experiment import Experiment
from questree.lm.scope import scoped
from questree.optimize import load, save
from questree.remote_answers import Answering, RemoteAnswerers
from questree.retrieval.indexes.cluster import ClusterError, WorkerLostError
from questree.settings import run_settings


class Here:
    """Workers of a cluster that are in this process; as in one of their own, the caller's account hears nothing."""

    def __init__(self, work):
        self.work = work

    def share(self, content):
        return content

    def do(self, *job):
        return scoped({"callbacks": []}, account=None)(self.work)(*job)


@pytest.fixture
def experiment(index):
    return Experiment(run_settings(retriever=index))


def given(index, **more):
    return json.loads(run_settings(retriever=index, **more).model_dump_json(exclude={"out", "on"}))


def asked_both_ways(experiment, program, index, **more):
    """The record of a question, asked here and asked of a worker."""
    experiment.use_lm()
    example = experiment.examples("dev", 1)[0]
    here, _ = answer(program, example)
    there, exchanges = RemoteAnswerers(Here(Answering(given(index, **more))))(program)(example)
    assert exchanges
    return [one.model_dump(exclude={"seconds", "spent"}) for one in (here, there)]


@pytest.mark.parametrize(
    ("name", "event_loop"), [("searchain", False), ("searchain", True), ("self-consistency", False)]
)
def test_a_worker_makes_the_same_program_and_the_same_record(name, event_loop, index, workplace, experiment):
    here, there = asked_both_ways(experiment, experiment.program(name), index, event_loop=event_loop)
    assert here == there


def test_settings_and_demonstrations_of_a_program_reach_the_worker(index, workplace, experiment):
    program = experiment.program("oner", k=2)
    for predictor in program.predictors():
        fields = predictor.signature.fields
        predictor.demos = [dspy.Example({name: [] if name == "passages" else "shown" for name in fields})]
    save(program, workplace / "saved")
    compiled = load(workplace / "saved", retriever=experiment.retriever)
    here, there = asked_both_ways(experiment, compiled, index)
    assert here == there


def test_another_index_on_the_worker_is_named(index, workplace, questree, experiment):
    (workplace / "corpus.jsonl").write_text('{"id": "a", "title": "A", "text": "about a"}\n')
    questree("index", "corpus.jsonl", "--out", "other", "--kind", "bm25")
    with pytest.raises(QuestreeError, match=r"Its retriever is \{.*\}, and not \{.*\} as where the command runs"):
        asked_both_ways(experiment, experiment.program("oner"), workplace / "other")


def test_an_index_and_code_that_are_not_on_the_worker_are_named(index, workplace, monkeypatch, experiment):
    with pytest.raises(QuestreeError, match=r"There is no index at .*elsewhere/index"):
        asked_both_ways(experiment, experiment.program("oner"), "elsewhere/index")
    monkeypatch.setattr("questree.optimize.artifact.saved_name", lambda kind: "nowhere:Program")
    with pytest.raises(QuestreeError, match="there is no module 'nowhere', installed or in this folder"):
        asked_both_ways(experiment, experiment.program("direct"), index)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (b"nothing", "no record"),
        (b'[{"id": "x", "question": "x"}, [], 1]', "no record"),
        (b'[{"id": "x", "question": "x"}, []]', "answered 'x' when asked"),
    ],
)
def test_what_comes_back_is_checked_before_it_is_kept(reply, said, workplace, experiment):
    asking = RemoteAnswerers(Here(lambda *job: reply))(experiment.program("direct"))
    with pytest.raises(ClusterError, match=said):
        asking(experiment.examples("dev", 1)[0])


def test_a_question_that_every_worker_is_lost_at_fails_alone(workplace, experiment):
    class Lost(Here):
        def do(self, *job):
            raise WorkerLostError("3 workers were lost at it")

    asking = RemoteAnswerers(Lost(None))(experiment.program("direct"))
    record, exchanges = asking(experiment.examples("dev", 1)[0])
    assert (record.failure.cause, exchanges) == ("error", [])
    assert "3 workers were lost at it" in record.failure.message


def test_a_budget_is_that_of_all_workers_together(index, workplace):
    spent = []
    for answerers in (None, RemoteAnswerers(Here(Answering(given(index))))):
        experiment = Experiment(run_settings(retriever=index))
        experiment.use_lm()
        out = workplace / str(answerers is None)
        policy = RunPolicy(max_calls=10, concurrency=1)
        with pytest.raises(OutOfBudgetError, match="are kept in"):
            evaluate(
                experiment.program("searchain"), experiment.examples("dev", 12), experiment.scores(None),
                out=out, policy=policy, answerers=answerers,
            )  # fmt: skip
        spent.append([record.spent.calls for record in read_records(out)])
        dspy.cache.reset_memory_cache()
        shutil.rmtree(workplace / "cache" / "lm")
    assert spent[0] == spent[1]
    assert sum(spent[0][:-1]) < 10 <= sum(spent[0])


def test_what_was_answered_is_kept_if_the_cluster_goes_away(index, workplace, experiment):
    class Going(Here):
        answered = 0

        def do(self, *job):
            self.answered += 1
            if self.answered > 2:
                raise ClusterError("The connection to the cluster was lost.")
            return super().do(*job)

    experiment.use_lm()
    asked = {"out": workplace / "run", "policy": RunPolicy(concurrency=1)}
    given_all = experiment.program("direct"), experiment.examples("dev", 5), experiment.scores(None)
    with pytest.raises(ClusterError, match=r"2 more questions were finished and are kept in .*run the same again"):
        evaluate(*given_all, answerers=RemoteAnswerers(Going(Answering(given(index)))), **asked)
    assert len(read_records(workplace / "run")) == 2
    assert len(evaluate(*given_all, **asked).records) == 5


COMMANDS = {
    "evaluate direct": 2,
    "evaluate direct --repeats 2 --temperature 0.7": 4,
    "compare direct oner": 4,
    "compare oner --over k --value 1 --value 2": 4,
    "compile oner --optimizer labeled-few-shot --train-limit 4": 4,
}


@pytest.mark.parametrize(("command", "asked"), COMMANDS.items())
def test_each_command_lets_the_workers_answer(command, asked, index, workplace, monkeypatch, questree):
    class Counting(Here):
        jobs = 0

        def do(self, *job):
            self.jobs += 1
            return super().do(*job)

    more = {"temperature": 0.7 if "--repeats" in command else 0.0, "limit": 2}
    workers = Counting(Answering(given(index, **more)))
    monkeypatch.setattr("questree.remote_answers.answering", lambda settings: nullcontext(RemoteAnswerers(workers)))
    few = ("--limit", "2", "--retriever", index, "--on", "ray", "--tracking-uri", "none", "--out", "run")
    questree(*command.split(), *few).done()
    assert workers.jobs == asked
