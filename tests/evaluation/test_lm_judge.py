"""An LM as a judge."""

import dspy
import pytest
from dspy.utils.exceptions import LMAuthError
from fakes import ScriptedEngine
from parrot import LOST, RIGHT, WRONG, Parrot, example, one_by_one, right

from questree.common.errors import QuestreeError
from questree.evaluation import Comparison
from questree.evaluation.lm_judge import LMJudge, agreement
from questree.evaluation.record_scores import MetricError
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records, stored_runs
from questree.lm.limits import OutOfBudgetError
from questree.metrics import metric


def judging(*replies) -> tuple[LMJudge, ScriptedEngine]:
    engine = ScriptedEngine(list(replies))
    return LMJudge(dspy.LM("some/judge", engine=engine, cache=False, num_retries=0)), engine


def test_the_judge_sees_question_gold_and_answer_and_its_verdict_is_a_score():
    judge, engine = judging({"right": "True"}, {"right": "True"})
    found = evaluate(Parrot(), [RIGHT, WRONG, LOST], [right, judge], policy=one_by_one())
    assert found.scores["judge some/judge"].mean == pytest.approx(2 / 3)  # the failed question is not shown to it
    assert all(told in engine.prompts[1] for told in ("say wrong", '["right"]', "[[ ## proposed_answer ## ]]\nwrong"))
    agreed = agreement(found.records, judge.name)
    assert (agreed.mean, agreed.n) == (0.5, 2)
    assert agreement([], judge.name) is None


def test_a_judge_that_cannot_be_asked_stops_the_scoring_and_loses_no_answer(tmp_path):
    judge, _ = judging("?", "?", "?")
    with pytest.raises(MetricError, match="The metric 'judge some/judge' cannot score"):
        evaluate(Parrot(), [RIGHT], [judge], out=tmp_path)
    judge, _ = judging({"right": "False"})
    program = Parrot()
    assert evaluate(program, [RIGHT], [judge], out=tmp_path).score.mean == 0
    assert program.asked == []


def test_an_unusable_reply_leaves_one_score_missing_and_the_same_command_asks_again(tmp_path, caplog):
    judge, engine = judging("?", "?", "?", {"right": "True"})
    found = evaluate(Parrot(), [RIGHT, WRONG], [right, judge], out=tmp_path, policy=one_by_one())
    assert "cannot score the answer to question 'a': CallFailedError: unparsable" in caplog.text
    assert len(engine.prompts) == 4, "asked again, and not for ever"
    assert (found.scores[judge.name].mean, found.scores[judge.name].n, found.n) == (1, 1, 2)
    assert (agreement(found.records, judge.name).mean, agreement(found.records, judge.name).n) == (0, 1)
    assert "| 1.000 (n=1) |" in Comparison({"parrot": found}).as_markdown()
    judge, engine = judging({"right": "True"})
    again = evaluate(Parrot(), [RIGHT, WRONG], [right, judge], out=tmp_path, policy=one_by_one())
    assert (again.scores[judge.name].n, len(engine.prompts)) == (2, 1)


def test_a_program_of_which_no_answer_could_be_judged_is_compared_all_the_same():
    judge, _ = judging(*"??????", {"right": "True"})
    runs = [evaluate(Parrot(), [one], [right, judge], policy=one_by_one()) for one in (RIGHT, RIGHT, RIGHT)]
    lines = Comparison(dict(zip("abc", runs, strict=True))).table.lines
    assert [line[judge.name] for line in lines] == ["–", "–", "1.000"]


def test_a_wrong_key_of_the_judge_stops_the_scoring_at_once():
    judge, _ = judging(LMAuthError("no such key", model="some/judge"))
    with pytest.raises(MetricError, match="no such key"):
        evaluate(Parrot(), [RIGHT, WRONG], [right, judge], policy=one_by_one())


def test_what_a_judge_was_paid_for_stays_while_the_answers_do(tmp_path):
    def judged(question, *replies):
        judge, engine = judging(*replies)
        found = evaluate(Parrot(), [question], [right, judge], out=tmp_path, policy=one_by_one())
        return found.scores[judge.name].mean, len(engine.prompts)

    assert judged(RIGHT, {"right": "False"}) == (0, 1)
    assert judged(RIGHT.copy(gold_titles=["Other"], hops=3)) == (0, 0)
    evaluate(Parrot(), [RIGHT.copy(hops=4)], right, out=tmp_path)  # and where no judge is asked for
    assert judged(RIGHT.copy(hops=4)) == (0, 0)
    assert judged(RIGHT.copy(answers=["right", "Right"]), {"right": "True"}) == (1, 1)


def test_a_budget_counts_what_a_judge_is_asked(tmp_path):
    def run(*metrics, **budget):
        return evaluate(Parrot(), [RIGHT, WRONG], [right, *metrics], out=tmp_path, policy=one_by_one(**budget))

    judge, engine = judging("?", "?", {"right": "True"}, {"right": "False"})
    with pytest.raises(OutOfBudgetError, match=r"max_calls=1 is spent \(3 LM calls\); 1 more question "):
        run(judge, max_calls=1)
    assert read_records(tmp_path)[0].scores == {"right": 1.0, judge.name: 1.0}
    with pytest.raises(OutOfBudgetError, match=r"\(3 LM calls\); 0 more questions"):
        run(judge, max_calls=3)
    found = run(judge, max_calls=4)
    assert (found.paid.calls, found.spent.calls, len(engine.prompts)) == (4, 0, 4)
    assert run(judge, max_calls=1).paid.calls == 4, "nothing was asked"


def test_a_judge_of_a_finished_run_is_bounded_and_other_metrics_are_not(tmp_path):
    evaluate(Parrot(), [RIGHT, WRONG], right, out=tmp_path)
    judge, engine = judging({"right": "True"}, "?", "?", "?", {"right": "False"})
    with pytest.raises(OutOfBudgetError, match="max_calls=1 is spent"):
        evaluate(Parrot(), [RIGHT, WRONG], [right, judge], out=tmp_path, policy=one_by_one(max_calls=1))
    assert len(engine.prompts) == 1
    evaluate(Parrot(), [RIGHT, WRONG], [right, judge], out=tmp_path, policy=one_by_one(max_calls=9))
    (stored,) = stored_runs([tmp_path])
    assert stored.evaluation.paid.calls == 4, "with the replies that were of no use"
    assert evaluate(Parrot(), [RIGHT, WRONG], metric("f1"), out=tmp_path, policy=one_by_one(max_calls=1)).n == 2


@pytest.mark.parametrize("event_loop", [False, True])
def test_a_run_that_is_not_kept_counts_its_judge_too(event_loop):
    judge, _ = judging({"right": "True"})
    assert evaluate(Parrot(), [RIGHT], [right, judge], policy=one_by_one(event_loop=event_loop)).paid.calls == 1


def test_patterns_are_not_judged():
    judge, _ = judging()
    with pytest.raises(QuestreeError, match="regular expressions"):
        judge(example("a", "say it", answers_are_regex=True), dspy.Prediction(answer="it"))
    program = Parrot()
    with pytest.raises(QuestreeError, match="'a' cannot be scored: An LM cannot judge by regular expressions"):
        evaluate(program, [example("a", "say it", answers_are_regex=True)], [right, judge])
    assert program.asked == []


def test_a_list_is_not_judged_and_without_an_answer_no_lm_is_asked():
    judge, engine = judging()
    with pytest.raises(QuestreeError, match=r"'l' cannot be scored: An LM judges a single answer, and this is a list"):
        evaluate(Parrot(), [example("l", "say Ann", ("Ann", "Bo"), needed=[["Ann"], ["Bo"]])], [right, judge])
    absent = example("a", "say it", ())
    assert [judge(absent, dspy.Prediction(answer=answer)) for answer in ("", "it")] == [1.0, 0.0]
    assert engine.prompts == []
