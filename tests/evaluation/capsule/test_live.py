"""A capsule's questions are asked again of another LM, over the passages of the capsule: what became of the answers."""

import shutil
from pathlib import Path

import dspy
import pytest
from fakes import ListRetriever, ScriptedEngine
from parrot import one_by_one

from questree.common.errors import QuestreeError
from questree.evaluation import evaluate
from questree.evaluation.capsule import pack, replay_live
from questree.metrics import metric
from questree.programs.registry import build


def lm(name: str, *replies) -> dspy.LM:
    return dspy.LM(f"scripted/{name}", engine=ScriptedEngine(list(replies)), cache=False, num_retries=0)


def reply(answer: str) -> dict[str, str]:
    return {"reasoning": "So.", "final_content": f"In {answer} [1].", "answer": answer, "sure": "True"}


@pytest.fixture
def capsule(tmp_path) -> Path:
    """Two questions of `oner`, which searches with the question and answers: Venice, and Rome."""
    examples = [
        dspy.Example(id=name, question=name, answers=["Venice"], answer_style="short").with_inputs("question")
        for name in ("first", "second")
    ]
    program = build("oner", {}, retriever=ListRetriever({"first": "It is in Venice.", "second": "It is in Rome."}))
    with dspy.context(lm=lm("old", reply("Venice"), reply("Rome")), adapter=None):
        evaluate(program, examples, metric("cover-em"), out=tmp_path / "run", policy=one_by_one())
    pack([tmp_path / "run"], tmp_path / "study.capsule")
    return tmp_path / "study.capsule"


def live(capsule: Path, model: dspy.LM, out="live", retriever=None, **bounds):
    policy = one_by_one(**bounds)
    with dspy.context(lm=model, adapter=None):
        return replay_live(capsule, capsule.parent / out, policy=policy, retriever=retriever)


def test_answers_that_differ_are_named_with_the_first_step_that_does(capsule):
    [drift] = live(capsule, lm("new", reply("Venice"), reply("Venice")))
    assert drift.models == ("scripted/old", "scripted/new")
    first, second = drift.questions
    assert first.same
    assert first.first is None
    assert not second.same
    assert (second.first.why, second.first.number) == ("reply changed", 2)
    assert "In Rome [1]." in second.first.text
    assert "In Venice [1]." in second.first.text
    assert (drift.before.score.mean, drift.after.score.mean) == (0.5, 1.0)
    assert drift.difference.mean == 0.5


def test_a_reply_is_never_taken_from_the_cache(capsule):
    model = lm("new", reply("Venice"), reply("Rome"), reply("Rome"), reply("Rome"))
    model.cache = True
    live(capsule, model)
    [drift] = live(capsule, model, "again")
    assert [one.same for one in drift.questions] == [False, True]


def test_a_new_query_finds_nothing_in_the_capsule_and_says_what_to_do(capsule, monkeypatch):
    program = type(build("oner", {}))
    search = program.retrieve
    monkeypatch.setattr(program, "retrieve", lambda self, query, k: search(self, f"{query} now", k))
    with pytest.raises(QuestreeError, match=r"holds no passages for 'first now'; name an index with --retriever"):
        live(capsule, lm("new"))
    index = ListRetriever({"first now": "Venice.", "second now": "Rome."})
    [drift] = live(capsule, lm("new", reply("Venice"), reply("Rome")), "with-index", index)
    assert [one.first.why for one in drift.questions] == ["query changed"] * 2
    assert all(one.same for one in drift.questions)


def test_without_an_lm_it_is_said_what_to_do(capsule):
    with pytest.raises(QuestreeError, match="name one with --lm"):
        live(capsule, None)


def test_a_budget_counts_what_failed_questions_took_before_they_were_asked_again(capsule):
    run = capsule.parent / "run"
    pack([run, shutil.copytree(run, capsule.parent / "twin")], capsule)
    lost = lm("new", reply("Venice"), *["no fields"] * 9)
    with pytest.raises(QuestreeError, match="max_calls=2 is spent"):
        live(capsule, lost, max_calls=2)
    bound = 1 + (9 - len(lost.engine.replies)) + 1
    with pytest.raises(QuestreeError, match=f"max_calls={bound} is spent"):
        live(capsule, lm("new", reply("Rome")), max_calls=bound)


def test_the_command_tells_models_scores_and_answers_over_the_bundled_index_and_has_one_budget(questree):
    questree("compare searchain oner --limit 2 --tracking-uri none --out runs").done()
    questree("pack runs").done()
    told = questree("replay study.capsule --live --out again").done().out
    assert "searchain, then: simulated" in told
    assert told.count("2 of 2 answers are the same") == 2
    assert "difference +0.000" in told
    for words, said in (
        ("--live --question nobody", "no question 'nobody'"),
        ("--lm openai/gpt-4.1-mini --max-calls 2", "leave --lm, --max-calls out"),
        ("--live --max-calls 2", "the budget max_calls=2 is spent"),
    ):
        assert said in questree(f"replay study.capsule {words}").refused()
