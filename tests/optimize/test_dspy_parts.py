"""DSPy's own ways to give a retriever, and to save a whole program."""

import asyncio
from typing import Any

import dspy
import numpy as np
import pytest
from tiny_world import SURE

import questree
from questree.common.errors import QuestreeError
from questree.common.manifests import json_hash
from questree.data import load_task
from questree.evaluation.identity import lm_facts
from questree.lm.guard import ADAPTERS, adapter_named
from questree.metrics import metric
from questree.retrieval import Passage, as_retriever
from questree.simulate import simulated_lm

TEXTS = [
    "Franz Kafka | He was born in Prague.",
    "Prague | The Vltava flows through it.",
    "Lübeck | It lies on the Trave.",
]


def embed(texts: list[str]) -> Any:
    """Embed texts by their words."""
    rows = np.zeros((len(texts), 64), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().replace(".", "").replace("?", "").split():
            row[int(json_hash(word), 16) % 64] += 1
    return rows


def over(texts, embedder=embed):
    return as_retriever(dspy.retrievers.Embeddings(corpus=texts, embedder=embedder, k=2))


def test_dspy_s_embeddings_are_a_retriever():
    found = over(TEXTS)("Where was Kafka born?", 1)
    assert found == [Passage(id="0", title="Franz Kafka", text="He was born in Prague.", score=1.0)]
    assert over(TEXTS[:2]).fingerprint != over(TEXTS).fingerprint


@pytest.mark.parametrize(
    "found",
    [
        [{"text": "The Vltava flows through it.", "title": "Prague", "id": 7, "score": 3}],
        [{"long_text": "Prague | The Vltava flows through it.", "pid": 7, "score": 3}],
        dspy.Prediction(passages=["Prague | The Vltava flows through it."], indices=[7]),
        [Passage(id="7", title="Prague", text="The Vltava flows through it.", score=3)],
    ],
)
def test_what_others_give_becomes_passages(found):
    [passage] = as_retriever(lambda query: found)("Which river?", 5)
    assert (passage.id, passage.title, passage.text) == ("7", "Prague", "The Vltava flows through it.")
    assert passage.score == (1 if isinstance(found, dspy.Prediction) else 3)


def test_without_ids_and_scores_title_and_text_tell_passages_apart():
    rows = [{"title": title, "text": "See the list \ud83d.", "score": None} for title in ("Prague", "Vienna")]
    first, second = as_retriever(lambda query: rows)("Which list?", 2)
    assert first.id != second.id
    assert (first.score, second.score) == (1, 0.5)


def test_dspy_s_embedder_makes_a_retriever_with_a_corpus_and_none_alone():
    embedder = dspy.Embedder(lambda texts: embed(texts))
    assert over(TEXTS, embedder)("Where was Kafka born?", 1)[0].title == "Franz Kafka"
    with pytest.raises(QuestreeError, match="An embedder has no passages"):
        questree.program("oner", retriever=embedder)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_rehearsal_takes_as_many_calls_with_each_adapter(adapter, mini):
    asked = {}
    # an LM that is always right: what others do hangs on the text of their prompts, and so on the adapter
    lm = simulated_lm(load_task("mini").split("dev")[:3], SURE, cache=False)
    with dspy.context(lm=lm, adapter=adapter_named(adapter)):
        for name in ("searchain", "react"):
            predictions = [questree.program(name, retriever=mini.index)(**one.inputs()) for one in mini.dev[:3]]
            asked[name] = sum(prediction.spent.calls for prediction in predictions)
            assert not any(prediction.failure for prediction in predictions)
        facts = lm_facts()
    assert asked == {"searchain": 12, "react": 8}
    assert facts.get("adapter", "chat") == adapter


def test_a_program_is_a_tool_with_named_arguments(mini):
    program = mini.program()
    assert dspy.Tool(questree.program("direct")).desc == "Answer a question that needs several facts."
    tool = dspy.Tool(program, name="look_up")
    assert tool.desc == "Answer a question that needs several facts, from the index words, with citations."
    assert (tool.args["question"], tool.args["answer_style"]["default"]) == ({"type": "string"}, "short")
    assert list(tool.args) == ["question", "answer_style"]
    question = mini.dev[0].question
    assert tool(question=question).answer == program(question=question).answer == program(question).answer
    assert "question" in tool.format_as_litellm_function_call()["function"]["parameters"]["properties"]


async def test_an_async_tool_lets_the_event_loop_run(mini):
    program, question = mini.program(), mini.dev[0].question
    tool = dspy.Tool(program.acall, name="look_up")
    assert tool.args == dspy.Tool(program).args
    beats = []

    async def beat():
        while True:
            beats.append(1)
            await asyncio.sleep(0)

    beside = asyncio.create_task(beat())
    prediction = await tool.acall(question=question)
    beside.cancel()
    assert prediction.answer == program(question=question).answer
    assert len(beats) > 1  # a tool of the program itself holds the loop from the beginning to the end


def test_dspy_s_majority_counts_answers(mini):
    predictions = [mini.program()(question=one.question) for one in (mini.dev[0], mini.dev[1], mini.dev[1])]
    assert predictions[0].answer != predictions[1].answer
    assert dspy.majority(predictions).answer == predictions[1].answer
    assert dspy.majority([mini.program()(question=""), predictions[0]]).answer == predictions[0].answer


def test_a_program_in_a_user_s_module_is_optimized_saved_and_loaded_there(mini, tmp_path):
    class Twice(dspy.Module):
        """A user's own module, which asks a program of ours and rewrites its answer."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = questree.program("searchain", retriever=mini.index)
            self.shout = dspy.Predict("answer -> answer_again")

        def forward(self, question: str, answer_style: str = "short") -> dspy.Prediction:
            answered = self.inner(question=question, answer_style=answer_style)
            self.shout(answer=answered.answer)
            return answered

    optimizer = dspy.BootstrapFewShot(metric=mini.metric, max_labeled_demos=0, max_bootstrapped_demos=2)
    made = optimizer.compile(Twice(), trainset=mini.train[:20])
    counts = {name: len(one.demos) for name, one in made.named_predictors()}
    assert counts["shout"] > 0
    assert counts["inner.chain_of_query.plan"] > 0
    made.save(tmp_path / "twice.json")
    loaded = Twice()
    loaded.load(tmp_path / "twice.json")
    assert {name: len(one.demos) for name, one in loaded.named_predictors()} == counts
    example = mini.dev[0]
    assert loaded(**example.inputs()).answer == made(**example.inputs()).answer


def test_a_notebook_shows_predictions_and_programs_without_running_what_they_hold(mini):
    script = "<script>alert(1)</script>"
    program = questree.program("oner", retriever=mini.index)
    failed = program(question="")._repr_html_()
    assert "the question is empty" in failed
    shown = program(question=f"Who is {script}?")._repr_html_()
    assert "<script>" not in shown
    assert "&lt; script&gt;" in shown
    program.passage_answer.demos = [dspy.Example()]
    assert "<td>passage_answer</td>" in program._repr_html_()
    assert "<td>1</td>" in program._repr_html_()
    program.name = script
    assert "<script>" not in program._repr_html_()


def test_what_is_no_retriever_is_refused_and_what_gives_no_passages_fails_the_question():
    with pytest.raises(QuestreeError, match="is no retriever"):
        questree.program("oner", retriever=7)
    program = questree.program("oner", retriever=lambda query: "a text")
    assert program(question="Why?").failure.message == "TypeError: <lambda> gave str, and no list of passages"


def test_a_program_over_a_function_is_compiled_saved_and_evaluated(mini, tmp_path):
    def search(query: str, k: int) -> list[Passage]:
        return mini.index(query, k)

    program = questree.program("oner", retriever=search)
    compiled = mini.compiled("labeled-few-shot", train=4, dev=2, program=program, metric=metric("em"), out=tmp_path)
    assert compiled.after.n == 2
    assert program.retriever.name == "search"


def test_a_state_that_dspy_saved_and_loaded_leaves_the_prompts_their_names(mini, tmp_path):
    program, loaded = mini.program(), mini.program()
    program.save(tmp_path / "program.json")
    loaded.load(tmp_path / "program.json")
    for one, other in zip(program.predictors(), loaded.predictors(), strict=True):
        assert str(other.signature) == str(one.signature)  # its name is in it: PlanChain, not StringSignature


@pytest.fixture
def index(mini, tmp_path):
    """An index in the test's folder."""
    return questree.load_index(questree.build_index(mini.index.passages, tmp_path / "index", kind="bm25"))


def test_a_whole_program_is_saved_with_the_place_of_its_index(mini, index, tmp_path):
    program = questree.program("searchain", retriever=index)
    program.save(tmp_path / "whole", save_program=True)
    size = sum(file.stat().st_size for file in (tmp_path / "whole").iterdir())
    assert size < 100_000
    loaded = dspy.load(tmp_path / "whole", allow_pickle=True)
    question = mini.dev[0].question
    assert loaded(question=question).answer == program(question=question).answer
    questree.build_index(list(mini.index.passages)[:9], tmp_path / "index", kind="bm25", overwrite=True)
    with pytest.raises(Exception, match="the program was saved with"):
        dspy.load(tmp_path / "whole", allow_pickle=True)


def test_mlflow_s_dspy_flavour_logs_and_loads_a_program(mini, index, tmp_path, tracking_store, mlflow):
    program = questree.program("oner", retriever=index)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(tracking_store(tmp_path))
    try:
        with mlflow.start_run():
            logged = mlflow.dspy.log_model(program, name="program")
        loaded = mlflow.dspy.load_model(logged.model_uri)
        question = mini.dev[0].question
        assert loaded(question=question).answer == program(question=question).answer
    finally:
        mlflow.clear_active_model()  # loading makes it the model that later figures are of, in whichever store
        mlflow.set_tracking_uri(before)
