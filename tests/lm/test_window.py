"""Prompts fit the window before they are sent, and what was left out is told and never cited."""

import os
from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path

import dspy
import pytest
from answering import TableRetriever

from questree import program
from questree.evaluation.run import evaluate
from questree.lm.limits import Limits, limited
from questree.lm.window import known_window, most_tokens
from questree.programs.modules.knowledge import KnowledgeFilter
from questree.programs.modules.reviews import ParagraphReview
from questree.retrieval import Passage

Q = "Which river?"
LONG = " ".join(f"word{n}" for n in range(300))


class LongRetriever(TableRetriever):
    """Passages of 300 words; their titles are A, B, C …"""

    def __call__(self, query, k=1):
        return [Passage(id=one.id, title=one.title, text=LONG) for one in super().__call__(query, k)]


def cited(*marks: int) -> dict[str, str]:
    return {"final_content": "So " + "".join(f"[{n}]" for n in marks), "answer": "Vltava", "sure": "True"}


def ask(letters: str, window: int, name: str = "oner-cot"):
    with limited(Limits(window=window)):
        return program(name, retriever=LongRetriever({Q: letters}))(question=Q)


def test_the_lowest_ranked_passages_are_left_out_and_can_not_be_cited(scripted):
    engine = scripted(cited(1, 3))
    prediction = ask("ABC", window=4000)
    assert "[2] B" in engine.prompts[0]
    assert "[3] C" not in engine.prompts[0]
    assert [one.title for one in prediction.references] == ["A"]
    assert prediction.final_content == "So [1]"
    (dropped,) = prediction.dropped
    assert (dropped.call, dropped.cut) == ("AnswerOrGuess", False)
    assert [one[:5] for one in dropped.passages] == ["[3] C"]


def test_what_is_sent_fits(scripted):
    engine = scripted(*[cited()] * 5)
    for window in (2000, 2500, 3000, 4500, 6000):
        ask("ABCDE", window)
    for window, request in zip((2000, 2500, 3000, 4500, 6000), engine.requests, strict=True):
        sent = most_tokens(request.system or "") + sum(most_tokens(message.text or "") for message in request.messages)
        assert sent <= window - min(1024, window // 4)


def test_nothing_is_left_out_where_there_is_room_or_no_window(scripted):
    scripted(cited(1, 3), cited(1, 3))
    for window in (100_000, None):
        prediction = ask("ABC", window)
        assert prediction.dropped == ()
        assert len(prediction.references) == 2


def test_the_only_passage_is_cut(scripted):
    engine = scripted(cited(1))
    prediction = ask("A", window=1500)
    assert "word5 " in engine.prompts[0]
    assert "word299" not in engine.prompts[0]
    assert prediction.dropped[-1].cut
    assert [one.title for one in prediction.references] == ["A"], "its reference is the whole passage"


def test_a_prompt_that_is_too_long_without_passages_is_not_sent(scripted):
    engine = scripted()
    prediction = ask("A", window=100)
    assert prediction.failure.cause == "context-window"
    assert "--window" in prediction.failure.message
    assert engine.requests == []
    assert prediction.spent.failed == 0


def test_of_a_path_the_youngest_passage_is_kept(scripted):
    review = {"relevant": "True", "supported": "False", "answer": "null", "next_query": "next?", "analysis": "null"}
    engine = scripted(review)
    path = [Passage(id=title, title=title, text=LONG) for title in "ABC"]
    with limited(Limits(window=3000)):
        ParagraphReview(thoughts=False)(question=Q, answer_style="short", passages=path, tried=[])
    assert "C | word0" in engine.prompts[0]
    assert "A | word0" not in engine.prompts[0]


def test_numbers_of_passages_that_were_not_shown_keep_none(scripted):
    useful = {"says": "a river", "useful": True}
    scripted({"judgements": [useful | {"number": 1}, useful | {"number": 3}]})
    with limited(Limits(window=4000)):
        filtered = KnowledgeFilter()(Q, [Passage(id=title, title=title, text=LONG) for title in "ABC"])
    assert [one.title for one in filtered.kept] == ["A"]
    assert filtered.misnumbered == 1


def test_the_record_tells_what_was_left_out(scripted):
    scripted(cited(1))
    example = dspy.Example(id="a", question=Q, answer_style="short").with_inputs("question", "answer_style")
    with limited(Limits(window=4000)):
        found = evaluate(program("oner-cot", retriever=LongRetriever({Q: "ABC"})), [example], lambda e, p, t=None: 1.0)
    (record,) = found.records
    assert type(record).model_validate_json(record.model_dump_json()).dropped[0].passages[0].startswith("[3] C")


@pytest.mark.parametrize(
    ("name", "window"), [("openai/gpt-4o", 128_000), ("openai/no-such-model", None), ("hosted_vllm/mine", None)]
)
def test_windows_come_from_dspy_s_own_list(name, window):
    assert known_window(dspy.LM(name)) == window


def test_the_bound_is_never_below_what_a_tokenizer_counts(shared_data, monkeypatch):
    address = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
    spec = find_spec("litellm")
    kept = Path(spec.origin).parent / "litellm_core_utils/tokenizers" if spec and spec.origin else Path()
    if not (kept / sha1(address.encode()).hexdigest()).is_file():
        pytest.skip("the LM client brings no tokenizer along")
    monkeypatch.setitem(os.environ, "TIKTOKEN_CACHE_DIR", str(kept))
    tiktoken = pytest.importorskip("tiktoken")
    encoding = tiktoken.get_encoding("cl100k_base")
    ratios = []
    for file in sorted(shared_data.glob("*.jsonl")):
        for line in file.read_text().splitlines()[:15]:
            ratios.append(most_tokens(line) / len(encoding.encode(line, disallowed_special=())))
    assert min(ratios) >= 1
    assert sorted(ratios)[len(ratios) // 2] < 1.8
