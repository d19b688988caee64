"""Our scores against the rules of the official scripts, written anew from what is published, on all real data.

What differs on purpose stands in `test_what_differs_on_purpose`; on the data nothing else differs.
"""

import html
import json
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import dspy
import pytest

from questree.data.question_files import read_questions
from questree.evaluation.retrieval_measures import retrieval_scores
from questree.metrics import cover_exact_match, exact_match, f1, metric, rouge_l
from questree.metrics.supporting_facts import fact_scores
from questree.retrieval import Passage

SHORT = ("hotpotqa", "2wikimultihopqa", "musique", "recorded", "nq", "squad", "triviaqa", "webquestions", "zsre",
         "trex", "bamboogle", "strategyqa", "fever")  # fmt: skip


PUNCTUATION = set(string.punctuation)


@cache
def official_normal_form(text: str) -> str:
    """SQuAD 1.1's: lower case, without punctuation, without articles, single spaces."""
    kept = "".join(character for character in text.lower() if character not in PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def squad_f1(answer: str, gold: str) -> float:
    """SQuAD 1.1's and MuSiQue's: the harmonic mean of precision and recall of words."""
    said, right = official_normal_form(answer).split(), official_normal_form(gold).split()
    same = sum((Counter(said) & Counter(right)).values())
    if not same:
        return 0.0
    precision, recall = same / len(said), same / len(right)
    return 2 * precision * recall / (precision + recall)


def hotpot_f1(answer: str, gold: str) -> float:
    """HotpotQA's and 2WikiMultiHopQA's: nothing for a yes, a no or a noanswer that the other side is not."""
    said, right = official_normal_form(answer), official_normal_form(gold)
    if said != right and {said, right} & {"yes", "no", "noanswer"}:
        return 0.0
    return squad_f1(answer, gold)


def official_title(title: str) -> str:
    """A title is compared as it stands; two data sets write it with HTML entities, underscores or other capitals."""
    return " ".join(html.unescape(unicodedata.normalize("NFKC", title)).replace("_", " ").casefold().split())


def holds_in_order(text: list[str], words: list[str]) -> bool:
    """Whether the words stand in the text side by side (the way in which DPR looks for an answer)."""
    return any(text[at : at + len(words)] == words for at in range(len(text) - len(words) + 1))


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def answered(folder: Path, name: str) -> Iterator[tuple[str, list[str]]]:
    """Answers with their gold: the recorded ones, the gold one in a sentence and cut, and another question's."""
    questions = rows(folder, name)
    for number, row in enumerate(questions):
        golds = row["answers"]
        if "recording" in row:
            yield row["recording"]["prediction"], golds
        for answer in (golds[-1], f"The answer is {golds[0]}.", golds[0][: len(golds[0]) // 2], "No", "yes"):
            yield answer, golds
        yield questions[number - 1]["answers"][0], golds


@pytest.mark.parametrize("name", SHORT)
def test_em_f1_and_cover_em_are_the_official_ones(shared_data: Path, name: str) -> None:
    for answer, golds in answered(shared_data, name):
        said, right = unicodedata.normalize("NFC", answer), [unicodedata.normalize("NFC", gold) for gold in golds]
        plain, normal = official_normal_form(said), [official_normal_form(gold) for gold in right]
        covered = any(words and holds_in_order(plain.split(), words) for words in (gold.split() for gold in normal))
        assert cover_exact_match(answer, golds) == covered, (answer, golds)
        if not plain:  # a gold answer of NQ is "*"
            continue
        assert exact_match(answer, golds) == (plain in normal), (answer, golds)
        assert f1(answer, golds) == pytest.approx(max(hotpot_f1(said, gold) for gold in right)), (answer, golds)


def test_trec_is_answered_by_patterns_as_dpr_and_drqa_match_them(shared_data: Path) -> None:
    """Anywhere in the answer for cover-EM (DPR), from its beginning for EM (DrQA); in any case, letters decomposed."""
    for answer, patterns in answered(shared_data, "trec"):
        said = unicodedata.normalize("NFD", answer)
        compiled = [re.compile(unicodedata.normalize("NFD", one), re.IGNORECASE | re.MULTILINE) for one in patterns]
        gold, given = dspy.Example(answers=patterns, answers_are_regex=True), dspy.Prediction(answer=answer)
        assert metric("cover-em")(gold, given) == any(one.search(said) for one in compiled), (answer, patterns)
        assert metric("em")(gold, given) == any(one.match(said) for one in compiled), (answer, patterns)


def test_rouge_l_on_lins_own_case() -> None:
    # Lin (2004), section 3: the longest common subsequence of the first has three words of four, of the second two
    gold = ["police killed the gunman"]
    assert rouge_l("police kill the gunman", gold) == 1.0  # the stemmer makes killed and kill one
    assert rouge_l("police ended the gunman", gold) == pytest.approx(0.75)
    assert rouge_l("the gunman ended police", gold) == pytest.approx(0.5)


def test_marks_cost_nothing_and_the_best_gold_counts() -> None:
    assert rouge_l("police ended the gunman [1][2].", ["police ended the gunman"]) == 1.0
    assert rouge_l("blue", ["red", "blue"]) == 1.0
    assert rouge_l("blue", ["red"]) == 0.0


def longest_common(one: list[str], other: list[str]) -> int:
    """The length of the longest common subsequence, a bit for each word of the other (Hyyrö, 2004)."""
    places: dict[str, int] = {}
    for at, word in enumerate(other):
        places[word] = places.get(word, 0) | 1 << at
    whole = left = (1 << len(other)) - 1
    for word in one:
        same = left & places.get(word, 0)
        left = (left + same | left - same) & whole
    return len(other) - left.bit_count()


@pytest.mark.parametrize("every", [30, pytest.param(1, marks=pytest.mark.slow)])
def test_rouge_l_is_the_longest_common_subsequence(shared_data: Path, every: int) -> None:
    """ROUGE 1.5.5 with stemming, as rouge-score has it: words of letters and digits, the longer ones stemmed.

    Numbers in brackets are marks here: they are no words of an answer.
    """
    from nltk.stem.porter import PorterStemmer

    stem = PorterStemmer().stem

    def words(text: str) -> list[str]:
        return [stem(word) if len(word) > 3 else word for word in re.findall("[a-z0-9]+", text.lower())]

    questions = rows(shared_data, "eli5")[::every]
    for number, row in enumerate(questions):
        for answer in (questions[number - 1]["answers"][0], row["answers"][-1][:400], " ".join(row["claims"])):
            said, best = words(re.sub(r"\[\d+\]", "", answer)), 0.0
            for gold in row["answers"]:
                right = words(gold)
                common = longest_common(said, right)
                best = max(best, 2 * common / (len(said) + len(right)) if common else 0.0)
            assert rouge_l(answer, row["answers"]) == pytest.approx(best)


@pytest.mark.parametrize("name", ["2wikimultihopqa", "recorded", "strategyqa", "fever", "zsre", "trex", "nq", "squad"])
def test_recall_by_title_counts_each_gold_title_once(shared_data: Path, name: str) -> None:
    """Where only titles are known: the gold ones after two of another question, one of them twice."""
    questions = [one for one in rows(shared_data, name) if one.get("gold_titles")]
    for number, row in enumerate(questions):
        titles = [*questions[number - 1]["gold_titles"][:2], row["gold_titles"][0], *row["gold_titles"]]
        passages = [Passage(id=str(n), title=title, text="text") for n, title in enumerate(titles)]
        found = dspy.Prediction(passages=passages, seen=passages)
        scores = retrieval_scores(found, {"gold_titles": row["gold_titles"]})
        gold = {official_title(title) for title in row["gold_titles"]}
        for k in (2, 5, 15):
            there = gold & {official_title(title) for title in titles[:k]}
            assert scores[f"title recall@{k}"] == pytest.approx(len(there) / len(gold))


@pytest.mark.parametrize("name", ["hotpotqa", "musique"])
def test_recall_counts_the_supporting_paragraphs(shared_data: Path, name: str) -> None:
    """Each question's own paragraphs stand for what was found; the data set says which of them support the answer."""
    for question in read_questions(shared_data / f"{name}.jsonl"):
        shown = question.paragraphs
        passages = [Passage(id=str(n), title=one.title, text=one.text) for n, one in enumerate(shown)]
        example = question.to_example()
        found = dspy.Prediction(passages=passages, seen=passages)
        scores = retrieval_scores(found, example.toDict())
        supporting = [one.is_supporting for one in shown]
        for k in (2, 5, 15):
            assert scores[f"recall@{k}"] == pytest.approx(sum(supporting[:k]) / sum(supporting))
        assert scores["chain@5"] == all(place < 5 for place, one in enumerate(supporting) if one)
        assert scores["recall@all"] == 1.0
        assert scores["precision@all"] == pytest.approx(sum(supporting) / len(shown))


def official_facts(claimed: list[list[Any]], gold: list[list[Any]]) -> dict[str, float]:
    """HotpotQA's and 2WikiMultiHopQA's, as their scripts count them: sets of title and sentence number."""
    said, right = set(map(tuple, claimed)), set(map(tuple, gold))
    hit, wrong, missed = len(said & right), len(said - right), len(right - said)
    precision = hit / (hit + wrong) if hit + wrong else 0.0
    recall = hit / (hit + missed) if hit + missed else 0.0
    both = precision + recall
    f1 = 2 * precision * recall / both if both else 0.0
    return {"em": float(wrong + missed == 0), "f1": f1, "precision": precision, "recall": recall}


def test_supporting_facts_are_scored_as_the_official_scripts_score_them() -> None:
    """Every pair of sets of up to three of four facts, one of them named twice."""
    facts: list[list[Any]] = [["Larkhall", 0], ["Larkhall", 1], ["Osmund Vale", 0], ["Mill", 7]]
    sets = [list(some) for size in range(4) for some in combinations(facts, size)]
    for claimed, gold in product(sets, sets[1:]):
        ours = fact_scores({(t, n) for t, n in claimed}, {(t, n) for t, n in gold})
        assert ours == pytest.approx(official_facts([*claimed, *claimed[:1]], gold))


def test_what_differs_on_purpose() -> None:
    """Both spellings of a letter are one; articles and signs alone are compared as they are; marks are no words."""
    assert exact_match("Garci\u0301a", ["García"])
    assert official_normal_form("Garci\u0301a") != official_normal_form("García")
    assert not exact_match("the", ["A"])
    assert official_normal_form("the") == official_normal_form("A")
    assert f1("A", ["A"]) == 1.0 > squad_f1("A", "A")
    assert f1("no one", ["no"]) == 0.0 < squad_f1("no one", "no")
    assert rouge_l("as told [1]", ["as told"]) == 1.0  # a mark is no word of the answer
