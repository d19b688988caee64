"""The LM puts a retriever's passages into order, in windows that move up the list."""

import re

import pytest
from dspy import lm15
from fakes import GivingRetriever

from questree.lm.episode import episode
from questree.lm.failure import counting_failures
from questree.programs import build
from questree.programs.modules import reranker
from questree.programs.modules.reranker import LMRerankedRetriever, in_order, window_starts
from questree.retrieval import Passage

PASSAGES = [Passage(id=f"p{number}", title=f"T{number}", text=f"text {number}") for number in range(1, 31)]


def ids(passages: list[Passage]) -> list[str]:
    return [one.id for one in passages]


@pytest.mark.parametrize(
    ("ranking", "order"),
    [
        ("[3] > [1] > [2] > [4]", [3, 1, 2, 4]),
        ("4, 2", [4, 2, 1, 3]),  # those that are not named keep their order at the end
        ("[2] > [2] > [9] > [0] > [1]", [2, 1, 3, 4]),  # repeated and unknown numbers are passed over
        ("I cannot rank them.", [1, 2, 3, 4]),
        ("", [1, 2, 3, 4]),
        ("9" * 5000, [1, 2, 3, 4]),
        ("1. [3]\n2. [1]", [3, 1, 2, 4]),
        ("1. Passage 4: it states the answer\n2. Passage 2", [4, 2, 1, 3]),
        ("Of the 4 passages: [3] > [2]", [3, 2, 1, 4]),
        ("None of the 3 helps.", [1, 2, 3, 4]),
    ],
)
def test_a_ranking_is_read_by_rule(ranking: str, order: list[int]) -> None:
    assert ids(in_order(PASSAGES[:4], ranking)) == [f"p{number}" for number in order]


def test_with_another_prompt_it_is_another_retriever(monkeypatch: pytest.MonkeyPatch) -> None:
    before = LMRerankedRetriever(GivingRetriever(PASSAGES)).fingerprint
    asked = reranker.RankPassages.with_updated_fields("ranking", desc="the numbers, the best first")
    monkeypatch.setattr(reranker, "RankPassages", asked)
    assert LMRerankedRetriever(GivingRetriever(PASSAGES)).fingerprint != before


@pytest.mark.parametrize(
    ("count", "starts"), [(0, []), (1, []), (2, [0]), (20, [0]), (21, [1, 0]), (30, [10, 0]), (50, [30, 20, 10, 0])]
)
def test_windows_move_up_the_list_and_end_at_its_top(count: int, starts: list[int]) -> None:
    assert window_starts(count) == starts


def test_the_best_passage_of_the_end_comes_to_the_top(scripted) -> None:
    """In each window the LM names the 30th passage of all: it ends in the first place, with its id."""
    engine = scripted({"ranking": "[20]"}, {"ranking": "[11]"})
    with episode() as book:
        found = LMRerankedRetriever(GivingRetriever(PASSAGES))("which text", k=3)
    assert ids(found) == ["p30", "p1", "p2"]
    assert [one.score for one in found] == [1, 1 / 2, 1 / 3]
    first, second = (re.findall(r"\[(\d+)\] T(\d+) ", prompt) for prompt in engine.prompts)
    assert (first[0], first[-1]) == (("1", "11"), ("20", "30"))
    assert (second[0], second[10]) == (("1", "1"), ("11", "30"))
    assert book.spent.calls == 2


def test_its_calls_count_for_the_question_and_a_lost_lm_fails_it_by_name(scripted) -> None:
    scripted({"ranking": "[2] > [1]"}, {"answer": "text"})
    answered = build("oner", {}, retriever=LMRerankedRetriever(GivingRetriever(PASSAGES[:2])))(question="Which text?")
    assert (answered.spent.calls, answered.failure) == (2, None)
    assert ids(answered.seen) == ["p2", "p1"]
    scripted(lm15.AuthError("bad key"))
    with counting_failures():
        lost = build("oner", {}, retriever=LMRerankedRetriever(GivingRetriever(PASSAGES[:2])))(question="Which text?")
    assert lost.failure.cause == "auth"
