"""What of a question stands in a corpus, against a plain search; and questions that are left out by name."""

import json
import unicodedata

import pytest
from fakes import GivingRetriever

from questree.common.errors import QuestreeError
from questree.data import Question, load_task
from questree.evaluation import read_records
from questree.evaluation.audit import audit, context_shares, missing_gold
from questree.experiment import Experiment
from questree.metrics import contains, passage_fingerprint
from questree.retrieval import Passage, Retriever, build_index, load_index
from questree.retrieval.corpora.corpus import read_corpus
from questree.retrieval.fusion import FusionRetriever
from questree.settings import run_settings


class Corpus(Retriever):
    """Passages that nobody searches."""

    name = fingerprint = "corpus"

    def __init__(self, passages):
        self.passages = passages

    def batch(self, queries, k=1):
        raise AssertionError("an audit does not search")


KAFKA = Passage(id="k", title="Franz Kafka", text="He was born in Prague; he wrote The Trial.")
OTHER = Passage(id="k2", title="Franz Kafka", text="He lived in Berlin.")


def asked(**fields):
    given = {"id": "q", "task": "t", "question": "Where?", "answers": ["Prague"], "style": "short", "split": "dev"}
    return Question.model_validate(given | fields)


def standing(question, *passages):
    (one,) = audit([question], Corpus(list(passages))).questions
    return one


def test_answers_and_gold_passages_are_found_as_the_metrics_find_them():
    mini = load_task("mini")
    questions = [one for split in mini.questions.values() for one in split]
    passages = list(read_corpus(mini.corpus))[::2]
    found = audit(questions, Corpus(passages))
    texts = [f"{one.title} {one.text}" for one in passages]
    names = {name for one in passages for name in (one.id, passage_fingerprint(one.title, one.text))}
    for question, one in zip(questions, found.questions, strict=True):
        assert sum(one.gold) == len(names.intersection(question.known_gold()))
        if question.style == "short" and not {"yes", "no"}.intersection(question.answers):
            assert one.answer == any(contains(text, answer) for text in texts for answer in question.answers)
            steps = [step.answer for step in question.steps if step.answer and step.answer.lower() not in ("yes", "no")]
            assert one.steps == tuple(any(contains(text, answer) for text in texts) for answer in steps)
    assert 0 < len(found.unanswerable) < len(questions)
    assert found.shares["questions that can be answered"].n == len(questions)


@pytest.mark.parametrize(
    ("fields", "can"),
    [
        ({}, True),
        ({"answers": ["Vienna"]}, False),
        ({"answers": ["Vienna", "prague"]}, True),
        ({"answers": ["Prag"]}, False),  # no whole word
        ({"answers": ["born in the Prague"]}, True),
        ({"steps": [{"question": "Who?", "answer": "Max Brod"}]}, False),
        ({"steps": [{"question": "Was he?", "answer": "yes"}]}, True),
        ({"answers": [r"Pr.gue|Vienna"], "answers_are_regex": True}, True),
        ({"answers": [r"Vien.a"], "answers_are_regex": True}, False),
        ({"answers": ["yes"], "style": "yes-no", "gold_titles": ["Franz Kafka"]}, True),
        ({"answers": ["yes"], "style": "yes-no", "gold_titles": ["Max Brod"]}, False),
        ({"answers": ["Yes"], "gold_titles": ["Franz Kafka"]}, True),  # as HotpotQA's comparisons are
        ({"answers": ["no"], "gold_titles": ["Max Brod"]}, False),
        ({"gold_titles": ["Max Brod"]}, True),  # another passage may tell it
        ({"answers": ["Berlin", ["Praha", "Prague"]], "style": "list"}, True),
        ({"answers": ["Berlin", "Vienna"], "style": "list"}, False),
        ({"answers": ["3"], "type": "count", "gold_titles": ["Franz Kafka"]}, True),  # nobody wrote the number down
        ({"answers": ["3"], "gold_titles": ["Franz Kafka"]}, False),
        ({"answers": []}, True),  # by saying so
        ({"answers": [], "gold_titles": ["Max Brod"], "steps": [{"question": "Who?", "answer": "Max Brod"}]}, True),
        ({"answers": [], "answers_are_regex": True}, True),
    ],
)
def test_a_question_cannot_be_answered_whose_answers_stand_nowhere(fields, can):
    assert standing(asked(**fields), KAFKA, OTHER).answerable == can


def test_questions_without_an_answer_are_counted_apart_and_by_what_their_steps_lack():
    steps = {"answers": [], "steps": [{"question": "Who?", "answer": "Kafka"}, {"question": "Where?", "answer": "x"}]}
    told = {"answers": [], "steps": [{"question": "Where?", "answer": "Prague"}]}
    questions = [asked(), asked(id="a", answers=[]), asked(id="b", **steps), asked(id="c", **told)]
    found = audit(questions, Corpus([KAFKA]))
    assert [one.absent for one in found.questions] == [False, True, True, True]
    assert found.unanswerable == ()
    shares = {name: (share.mean, share.n) for name, share in found.shares.items()}
    assert shares == {
        "final answers": (1.0, 1),
        "questions that can be answered": (1.0, 1),
        "questions without an answer that lack a step": (0.5, 2),
    }


def test_gold_passages_are_told_apart_where_they_are_known():
    by_passage = asked(gold_titles=["Franz Kafka"], gold_passages=["k", "gone"])
    assert standing(by_passage, KAFKA, OTHER).gold == (True, False)
    found = audit([by_passage, asked(id="p", gold_titles=["Franz Kafka"])], Corpus([KAFKA]))
    assert [(found.shares[name].mean, found.shares[name].n) for name in list(found.shares)[:2]] == [(0.5, 2), (1.0, 1)]


def test_members_of_a_fusion_are_looked_through_and_a_server_s_corpus_is_not_here():
    here, server = Corpus([KAFKA]), Corpus([OTHER])
    assert audit([asked()], FusionRetriever([server, here])).passages == 2
    assert audit([asked()], FusionRetriever([here, Corpus([KAFKA, OTHER])])).passages == 2  # each is counted once
    server.passages = None
    with pytest.raises(QuestreeError, match="not in this process; name the folder"):
        audit([asked()], FusionRetriever([here, server]))


def test_what_cannot_be_answered_is_listed_and_left_out_by_name(questree, workplace):
    lines = [
        {"id": "can", "question": "Where was he born?", "answers": ["Prague"]},
        {"id": "cannot", "question": "Where did he die?", "answers": ["Kierling"]},
    ]
    rows = [json.dumps(line | {"split": "dev"}) for line in lines]
    (workplace / "mine.jsonl").write_text("\n".join(rows))
    (workplace / "corpus.jsonl").write_text(KAFKA.model_dump_json() + "\n")
    questree("index corpus.jsonl --kind bm25 --out index").done()
    told = questree("audit mine.jsonl --retriever index --out audited").done().out
    assert "0.500" in told
    listed = workplace / "audited" / "unanswerable.txt"
    assert listed.read_text() == "cannot\n"
    assert "1 passages cannot answer 1 of 2 questions" in told
    (workplace / "mine.jsonl").write_text(rows[0])
    assert "No question is out of reach" in questree("audit mine.jsonl --retriever index").out
    (workplace / "mine.jsonl").write_text("\n".join(rows))
    asked = "evaluate direct --task mine.jsonl --retriever index --tracking-uri none --out run --leave-out"
    questree(asked, listed).done()
    assert [record.id for record in read_records(workplace / "run")] == ["can"]
    listed.write_text("nobody\n")
    assert "'nobody'" in questree(asked, listed).refused()


def test_one_search_is_audited_for_answers_and_whole_chains():
    many = [Passage(id=str(n), title="Nobody", text="Nothing.") for n in range(5)]
    both = {"gold_passages": ["k", "k2"]}
    questions = [asked(**both), asked(answers=["yes"]), asked(answers=["Vienna"], gold_titles=["Nobody"])]
    shares = context_shares(questions, GivingRetriever([KAFKA, *many, OTHER]))
    assert {name: (one.mean, one.n) for name, one in shares.items()} == {
        "answer among the first 5": (0.5, 2),
        "whole chain among the first 5": (0.0, 1),
        "whole chain among the first 5, by title": (1.0, 1),
        "answer among the first 15": (0.5, 2),
        "whole chain among the first 15": (1.0, 1),
        "whole chain among the first 15, by title": (1.0, 1),
    }


ODD = ["Café", 'a", "b', "c\\", 'd\\", \\', "plain", "n" * 400]


@pytest.mark.parametrize("stored", [False, True])
def test_gold_ids_that_no_passage_has_are_told(tmp_path, stored):
    passages = [Passage(id=id, text='He said ", " there.') for id in ODD]
    corpus = load_index(build_index(passages, tmp_path / "i", kind="bm25")) if stored else Corpus(passages)
    assert [one.id for one in corpus.passages] == ODD
    known = asked(gold_passages=ODD).to_example()
    assert missing_gold([known, asked(gold_titles=["Nowhere"]).to_example()], corpus) == ""
    lost = asked(id="q2", gold_passages=["plain", unicodedata.normalize("NFD", "Café"), "absent"]).to_example()
    said = missing_gold([known, lost], corpus)
    assert f"2 of {len(ODD) + 2} gold passages stand nowhere in the index" in said
    assert "'absent' of question 'q2'" in said
    assert "1 of them stand there in another form of Unicode (NFC, NFD)" in said
    members = FusionRetriever([corpus, Corpus([Passage(id="absent", text="x")])])
    assert "1 of 3 gold passages" in missing_gold([lost], members)
    assert missing_gold([lost], GivingRetriever([KAFKA])) == ""  # its corpus is not to be seen


def test_an_evaluation_tells_which_gold_ids_are_nowhere(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    fixed = {"answers": ["Ada"], "split": "dev"}
    rows = [{"id": n, "question": f"Who {n}?", "gold_passages": [f"p{n}"], **fixed} for n in (1, 2)]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    build_index([Passage(id="p1", text="Ada.")], tmp_path / "i", kind="bm25")
    experiment = Experiment(run_settings(task="own.jsonl", retriever="i"))
    questions = experiment.questions_for([experiment.program("oner")])
    assert len(questions) == 2
    [said] = caplog.messages
    assert "1 of 2 gold passages stand nowhere in the index" in said
    assert "'p2' of question '2'" in said
