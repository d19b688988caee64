import json
import threading

import dspy
import pytest
from parrot import LOST, RIGHT, WRONG, Parrot, example, one_by_one, right
from run_files import rows

from questree.common.errors import QuestreeError
from questree.evaluation.kept_run import check_same
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records, stored_runs
from questree.lm.limits import RunPolicy
from questree.lm.spent import Spent
from questree.programs.program import answered
from questree.retrieval import Passage


def half(gold, prediction, trace=None):
    return 0.5


def test_a_failure_is_counted_apart_from_a_wrong_answer():
    found = evaluate(Parrot(), [RIGHT, WRONG, LOST], right)
    assert (found.n, found.failures) == (3, {"unparsable": 1})
    assert found.score.mean == pytest.approx(1 / 3)
    assert found.answered.mean == pytest.approx(1 / 2)


def test_what_is_found_and_spent_is_added_up():
    found = evaluate(Parrot(), [RIGHT, WRONG], right)
    recall = dict.fromkeys(["recall@2", "recall@5", "recall@15", "recall@all", "recall kept"], 0.5)
    recall |= {"chain@5": 0.0, "chain@15": 0.0, "chain cited": 0.0}
    by_title = {**recall, "precision@all": 1.0, "precision kept": 1.0, "s-precision kept": 0.0}
    kept = {f"title {name}": value for name, value in by_title.items()}
    answers = {"answer@5": 0.0, "answer@15": 0.0}
    assert found.retrieval == {**kept, **answers, "documents": 1.0, "skc": 1.0, "amp": 0.0, "citation_precision": 1.0}
    assert found.sources == {"completed": 2}
    assert found.records[0].references[0].title == "Gold"
    assert found.records[0].tree.nodes[0].query == "q"
    assert found.spent == Spent()
    assert (found.table()[0]["kind"], found.table()[0]["hops"]) == ("bridge", 2)


def test_an_answer_without_citations_counts_in_their_recall():
    class Cites(Parrot):
        """Cites in its answer to one question alone."""

        def reason(self, tree, answer_style):
            passage = Passage(id="p1", title="Gold", text="Kafka was born in Prague.")
            tree.grow(None, query="q", source="query", passage=passage)
            cites = "right" in tree.question
            return answered(tree, "Prague", f"Kafka was born in Prague{' [1]' * cites}.", [passage] * cites)

    found = evaluate(Cites(), [RIGHT, WRONG], right).retrieval
    assert (found["citation_recall"], found["skc"], found["citation_precision"]) == (0.5, 0.5, 1.0)
    assert "amp" not in found  # no step has an answer, so nothing tells the right place


def test_a_fault_in_the_program_is_that_questions_failure():
    found = evaluate(Parrot(), [RIGHT, example("x", "crash")], right)
    assert found.failures == {"error": 1}
    failure = found.records[1].failure
    assert "ZeroDivisionError: oh" in failure.message
    assert failure.where.program == "parrot"
    assert "reason (parrot.py, line" in failure.where.step


def test_the_result_does_not_depend_on_the_order_of_finishing():
    gates = {str(n): threading.Event() for n in range(4)}

    class Late(Parrot):
        """Each question waits for the one after it."""

        def reason(self, tree, answer_style):
            number = tree.question.split()[0]
            following = gates.get(str(int(number) + 1))
            assert following is None or following.wait(5)
            try:
                return super().reason(tree, answer_style)
            finally:
                finished.append(number)
                gates[number].set()

    finished: list[str] = []
    examples = [example(str(n), f"{n} right") for n in range(4)]
    found = evaluate(Late(), examples, right, policy=RunPolicy(concurrency=4))
    assert finished == ["3", "2", "1", "0"]
    assert [record.id for record in found.records] == ["0", "1", "2", "3"]


def test_each_question_runs_in_the_callers_context():
    seen = []

    class Looks(Parrot):
        def reason(self, tree, answer_style):
            seen.append((dspy.settings.lm, dspy.settings.trace))
            return super().reason(tree, answer_style)

    lm = dspy.utils.DummyLM([{}])
    with dspy.context(lm=lm):
        evaluate(Looks(), [RIGHT, WRONG], right)
    assert [one for one, _ in seen] == [lm, lm]
    assert seen[0][1] is not seen[1][1]  # a trace of its own


def test_a_run_goes_on_where_it_stopped_and_asks_failed_questions_again(tmp_path):
    evaluate(Parrot(), [RIGHT, LOST], right, out=tmp_path)
    program = Parrot()
    found = evaluate(program, [RIGHT, WRONG, LOST], right, out=tmp_path)
    assert sorted(program.asked) == ["say wrong", "unparsable right"]
    assert [record.id for record in found.records] == ["a", "b", "c"]
    assert found.score == evaluate(Parrot(), [RIGHT, WRONG, LOST], right).score


def test_a_folder_is_read_as_its_last_evaluation_was_and_says_that_it_holds_more(tmp_path, caplog):
    evaluate(Parrot(), [RIGHT, WRONG], right, out=tmp_path)
    examples = [example("z", "say right"), RIGHT]
    found = evaluate(Parrot(), examples, [half, right], seed=7, out=tmp_path)
    (stored,) = stored_runs([tmp_path])
    assert (stored.metric, stored.seed, [one.id for one in stored.records]) == ("half", 7, ["z", "a"])
    assert json.loads(stored.evaluation.as_json()) == json.loads(found.as_json())
    assert [one.id for one in stored.others] == ["b"]
    assert "holds answers to 1 more questions than its last evaluation had" in caplog.text


def test_of_several_metrics_those_of_the_last_evaluation_count_and_other_scores_are_kept(tmp_path):
    evaluate(Parrot(), [RIGHT], right, out=tmp_path)
    evaluate(Parrot(), [RIGHT, WRONG], half, out=tmp_path)
    (stored,) = stored_runs([tmp_path])
    assert (stored.evaluation.n, list(stored.evaluation.scores)) == (2, ["half"])
    assert [list(one.scores) for one in stored.records] == [["half", "right"], ["half"]]


def test_finished_questions_are_on_disk_while_others_run(tmp_path):
    counts = []

    def look(progress):
        counts.append((progress.done, len(rows(tmp_path, "SELECT * FROM scores"))))

    evaluate(Parrot(), [RIGHT, WRONG, LOST], right, out=tmp_path, policy=one_by_one(), on_progress=look)
    assert counts == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_run_of_something_else_is_refused_by_name(tmp_path):
    evaluate(Parrot(), [RIGHT], right, out=tmp_path, task="mini")
    with pytest.raises(QuestreeError, match="task was 'mini' and is now 'hotpotqa'"):
        evaluate(Parrot(), [RIGHT], right, out=tmp_path, task="hotpotqa")


@pytest.mark.parametrize(
    ("there", "now", "said"),
    [
        ({"settings": {"k": 3, "turns": 8}}, {"settings": {"k": 5, "turns": 8}}, "settings.k was 3 and is now 5"),
        ({"lm": {"a": {"b": 1, "c": 2}}}, {"lm": {"a": {"b": 1}}}, "lm.a.c was 2 and is now None"),
        ({"retriever": None}, {"retriever": {"name": "x"}}, "retriever was None and is now {'name': 'x'}"),
        ({"program": "a", "settings": {"k": 3}}, {"program": "b", "settings": {}}, "program was 'a' and is now 'b'"),
    ],
)
def test_of_a_run_of_something_else_only_what_differs_is_told(there, now, said):
    with pytest.raises(QuestreeError) as refused:
        check_same("runs/c", there, now)
    assert str(refused.value) == f"runs/c holds another run: {said}. Go on with what it was, or name another folder."


def test_it_stops_early_where_no_lm_can_be_had_and_keeps_what_it_knows(tmp_path):
    program = Parrot()
    examples = [example(str(n), "unreachable") for n in range(50)]
    with pytest.raises(QuestreeError, match="nobody there"):
        evaluate(program, examples, right, out=tmp_path, policy=one_by_one())
    assert len(program.asked) < 10
    failure = read_records(tmp_path)[0].failure
    assert (failure.cause, failure.message) == ("unreachable", "nobody there")
    assert (failure.where.program, failure.where.predictor) == ("parrot", "")
    assert "reason (parrot.py, line" in failure.where.step


def test_it_stops_at_max_failures():
    examples = [RIGHT, *(example(str(n), "unparsable") for n in range(20))]
    with pytest.raises(QuestreeError, match="max_failures=3"):
        evaluate(Parrot(), examples, right, policy=one_by_one(max_failures=3))


def test_unparsable_replies_alone_never_stop_a_run():
    assert evaluate(Parrot(), [example(str(n), "unparsable") for n in range(8)], right).failures == {"unparsable": 8}


def test_repeated_ids_and_no_questions_are_refused():
    with pytest.raises(QuestreeError, match="'a' stands there more than once"):
        evaluate(Parrot(), [RIGHT, RIGHT], right)
    with pytest.raises(QuestreeError, match="no questions"):
        evaluate(Parrot(), [], right)


def test_a_record_survives_json(mini):
    records = evaluate(mini.program(), mini.dev[:3], mini.metric).records
    assert [type(record).model_validate_json(record.model_dump_json()) for record in records] == list(records)
    assert all(record.spent.calls > 1 for record in records)


def test_questions_that_fail_as_before_end_no_run_in_which_others_were_answered(tmp_path):
    lost = [example(f"lost-{number}", "crash") for number in range(6)]
    asked = [RIGHT, WRONG, *lost]
    first = evaluate(Parrot(), asked, right, out=tmp_path)
    again = evaluate(Parrot(), asked, right, out=tmp_path)
    assert (again.score, again.failures) == (first.score, {"error": 6})
    assert evaluate(Parrot(), [RIGHT, lost[0], example("new", "crash again")], right, out=tmp_path).n == 3
    unheard = [example(f"new-{number}", "unreachable") for number in range(9)]
    with pytest.raises(QuestreeError, match=r"The first \d questions all failed"):
        evaluate(Parrot(), [RIGHT, *unheard], right, out=tmp_path, policy=one_by_one())
    with pytest.raises(QuestreeError, match="The first 1 questions all failed"):
        evaluate(Parrot(), [lost[0]], right, out=tmp_path)
