"""Content belongs to a record: questions that were corrected since are asked, and scored, again."""

import dspy
import pytest
from parrot import LOST, RIGHT, WRONG, Parrot, example, right
from run_files import kept

from questree.common.errors import QuestreeError
from questree.data import Question
from questree.data.task import Paragraph
from questree.evaluation.analyses import misled_by_retrieval
from questree.evaluation.record_scores import current_record
from questree.evaluation.records import Record, example_fields
from questree.evaluation.run import evaluate
from questree.evaluation.stored_runs import read_records
from questree.metrics import metric
from questree.optimize import Examples, optimizer
from questree.optimize import compile as compile_program
from questree.programs.program import answered


def run(examples, out, metrics=right):
    """What came of the questions, and which of them were asked."""
    program = Parrot()
    return evaluate(program, examples, metrics, out=out), program.asked


def test_other_words_under_the_same_id_are_asked_again(tmp_path, caplog):
    run([RIGHT, WRONG], tmp_path)
    found, asked = run([RIGHT, example("b", "say right")], tmp_path)
    assert asked == ["say right"]
    assert found.score.mean == 1.0
    assert "Questions that were changed since they were asked: 1. They are asked again." in caplog.text
    assert [record.question for record in read_records(tmp_path)] == ["say right", "say right"]
    assert run([RIGHT, example("b", "say right")], tmp_path)[1] == []


@pytest.mark.parametrize("inputs", [{"answer_style": "long"}, {"hint": "look"}], ids=["another style", "another input"])
def test_whatever_the_program_is_given_belongs_to_it(tmp_path, inputs):
    class Hinted(Parrot):
        def forward(self, question, hint="", **inputs):
            return super().forward(question, **inputs)

    evaluate(Hinted(), [RIGHT], right, out=tmp_path)
    changed, program = RIGHT.copy(**inputs).with_inputs("question", "answer_style", *inputs), Hinted()
    evaluate(program, [changed], right, out=tmp_path)
    assert program.asked == ["say right"]


def test_other_gold_answers_score_what_was_answered_and_ask_nothing(tmp_path, caplog):
    run([RIGHT, WRONG, LOST], tmp_path, [right, metric("f1")])
    corrected = example("b", "say wrong", ("wrong",), gold_titles=["Other"], hops=3)
    found, asked = run([RIGHT, corrected], tmp_path, [right, metric("f1")])
    assert (asked, found.score.mean) == ([], 1.0)
    assert found.scores["f1"].mean == 1.0
    assert "changed since: 1. They are scored again." in caplog.text
    stored = {record.id: record for record in read_records(tmp_path)}
    assert (stored["b"].gold_answers, stored["b"].hops, stored["b"].retrieval["title recall@all"]) == (
        ("wrong",),
        3,
        0.0,
    )
    assert stored["a"].retrieval["title recall@all"] == 0.5
    assert stored["b"].scores == {"right": 1.0, "f1": 1.0}
    lines = kept(tmp_path)
    assert run([RIGHT, corrected], tmp_path, [right, metric("f1")])[0].score.mean == 1.0
    assert kept(tmp_path) == lines


def test_a_gold_field_that_only_a_metric_knows_is_scored_again(tmp_path):
    def by_summary(gold, prediction, trace=None):
        return float(gold.summary == prediction.answer)

    assert run([example("a", "say right", summary="wrong")], tmp_path, by_summary)[0].score.mean == 0.0
    found, asked = run([example("a", "say right", summary="right")], tmp_path, by_summary)
    assert (asked, found.score.mean) == ([], 1.0)


def test_what_was_retrieved_before_a_filter_is_scored_again_as_well(tmp_path):
    class Filters(Parrot):
        def reason(self, tree, answer_style):
            self.asked.append(tree.question)
            first = super().reason(tree, answer_style)
            return answered(tree, "right", "", [], passages=[], retrieved=first.passages)

    evaluate(Filters(), [RIGHT], right, out=tmp_path)
    (record,) = evaluate(Filters(), [example("a", "say right", gold_titles=["Gold"])], right, out=tmp_path).records
    assert record.retrieval["title recall@all"] == 1.0
    assert record.retrieval["title recall kept"] == 0.0


def test_runs_of_different_questions_under_one_id_are_not_paired():
    first = Record(id="a", question="q", gold_answers=("x",), scores={"f1": 1.0})
    for second in (first.model_copy(update={"question": "p"}), first.model_copy(update={"gold_answers": ("y",)})):
        with pytest.raises(QuestreeError, match="Question 'a' was changed between these runs"):
            misled_by_retrieval([first], [second], "f1")


def test_a_compilation_does_not_go_on_with_other_training_questions(mini, tmp_path):
    def compiled(train, dev):
        examples = Examples(train=train, dev=dev, task="mini")
        few = optimizer("labeled-few-shot")
        return compile_program(mini.program(), examples, mini.metric, optimizer=few, out=tmp_path)

    train, dev = mini.train[:4], mini.dev[:2]
    compiled(train, dev)
    corrected = [*dev[:-1], dspy.Example(**{**dev[-1], "answers": ["something else"]}).with_inputs(*dev[-1].inputs())]
    assert compiled(train, corrected).after.records[-1].gold_answers == ("something else",)
    other = dspy.Example(**{**train[0], "answer": "something else"}).with_inputs(*train[0].inputs())
    with pytest.raises(QuestreeError, match="holds another run: training questions was"):
        compiled([other, *train[1:]], dev)


def test_a_corpus_of_other_passages_than_the_questions_name_is_warned_of(tmp_path, caplog):
    run([example("a", "say right", gold_passages=["p1"])], tmp_path / "named")
    assert "No gold passage was found" not in caplog.text
    found, _ = run([example("a", "say right", gold_passages=["elsewhere"])], tmp_path / "unknown")
    assert found.retrieval["recall@all"] == 0.0
    assert "No gold passage was found, though the titles of some were, for 1 questions" in caplog.text


def test_a_question_with_sentences_is_scored_once(tmp_path):
    mill = Paragraph(title="Gold", text="It mills.", sentences=("It mills.",), supporting=(0,), is_supporting=True)
    given = {"id": "a", "task": "t", "question": "say right", "answers": ["right"], "gold_titles": ["Gold"]}
    asked = Question(**given, style="short", split="dev", paragraphs=[mill]).to_example()
    scored = []

    def counted(gold, prediction, trace=None):
        scored.append(gold.id)
        return 1.0

    counted.name = "judge of mine"
    for _ in range(3):
        run([asked], tmp_path, counted)
    assert scored == ["a"]


def test_another_item_that_is_needed_drops_a_judges_score_as_another_answer_does():
    listed = dspy.Example(id="a", question="q", answer_style="list", answers=["Po"], needed=[["Po"]])
    listed = listed.with_inputs("question", "answer_style")
    kept = Record(**example_fields(listed), answer="Po", scores={"judge x": 1.0})
    for changed in ({"needed": [["Po", "Padus"]]}, {"answers": ["Po", "Elbe"]}):
        again = current_record(kept, dspy.Example(**{**listed, **changed}).with_inputs("question", "answer_style"))
        assert again is not None
        assert again.scores == {}
    assert current_record(kept, dspy.Example(**listed, hops=2).with_inputs("question", "answer_style")).scores != {}
