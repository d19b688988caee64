"""Train a reader, calibrate it, and ask with it: as a user types it, on an encoder of a few thousand weights."""

import json

import pytest
import torch
from reliability.tiny_encoders import save_encoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from questree.evaluation.identity import digest
from questree.parts import Parts
from questree.settings import RunSettings

THINGS = ("amber", "cedar", "ember", "grove", "island", "kelp", "stone", "tree")
PLACES = ("basin", "delta", "fjord", "harbor", "jetty", "lagoon", "water", "hill")


@pytest.fixture
def questions(workplace):
    """Four questions of each split."""
    rows = [
        {
            "id": f"{split}-{thing}",
            "question": f"{word} is the {thing}?",
            "answers": [place],
            "split": split,
            "steps": [{"question": f"{word} is the {thing}?", "answer": place, "support_title": thing}],
            "paragraphs": [
                {"title": thing, "text": f"{word}: the {thing} lies by the {place}.", "is_supporting": True}
            ],
        }
        for split, word in (("train", "where"), ("dev", "which"), ("test", "at"))
        for thing, place in list(zip(THINGS, PLACES, strict=True))[: 8 if split == "train" else 4]
    ]
    (workplace / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    texts = [{"id": str(n), **row["paragraphs"][0]} for n, row in enumerate(rows[:8])]
    (workplace / "corpus.jsonl").write_text("\n".join(map(json.dumps, texts)))


@pytest.fixture
def encoder(workplace):
    return save_encoder(workplace / "encoder")


def manifest(folder):
    return json.loads((folder / "questree-reader.json").read_text())


def test_a_reader_is_trained_calibrated_and_used(questree, workplace, questions, encoder, tracking_store):
    questree("index corpus.jsonl --out index --kind bm25").done()
    trained = questree(
        "train-reader --task own.jsonl --retriever index --encoder encoder --out readers/mine --epochs 2 --window 40",
        "--tracking-uri",
        store := tracking_store(workplace),
    ).done()
    assert "questree calibrate-reader readers/mine" in trained.out
    assert "relevance F1" in trained.err
    facts = manifest(workplace / "readers/mine")["training"]
    assert (facts["questions"], facts["task"], facts["negatives_of"]) == (8, "own.jsonl", "index")
    _tracked(store)

    calibrate = "calibrate-reader readers/mine --task own.jsonl"
    told = questree(calibrate, "--retriever", "index").done().out
    assert "8 passages read with readers/mine" in told
    assert "test: EM" in told
    assert "simulated" not in told
    stored = manifest(workplace / "readers/mine")
    assert stored["calibration"]["held_out"]["questions"] == 4
    assert stored["training"] == facts
    assert (workplace / "readers/mine/theta.png").is_file()
    reader = Parts(RunSettings(reader="readers/mine")).reader
    assert reader.threshold == stored["threshold"]
    questree("ask 'where is the amber?' --reader readers/mine --retriever index --task own.jsonl").done()
    assert "trained on all passages" in questree(calibrate, "--split", "train").refused()
    stored["threshold"] = 7.5  # calibrated anew, in the same process
    (workplace / "readers/mine/questree-reader.json").write_text(json.dumps(stored))
    assert Parts(RunSettings(reader="readers/mine")).reader.threshold == 7.5


def test_each_of_several_tasks_gives_its_share_of_the_limit(questree, workplace, questions, encoder):
    rows = [json.loads(line) for line in (workplace / "own.jsonl").read_text().splitlines()]
    for row in rows:
        row["id"] = f"other-{row['id']}"
        row["question"] = f"say, {row['question']}"
        row["paragraphs"][0]["text"] = f"Once more, {row['paragraphs'][0]['text']}"
    (workplace / "other.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = "train-reader --task own.jsonl,other.jsonl --encoder encoder --out mine"
    questree(asked, "--limit", 4, "--max-steps", 1, "--window", 40).done()
    seen = set(json.loads((workplace / "mine/training/run.json").read_text())["passages"])
    others = {digest(row["paragraphs"][0]["text"]) for row in rows}
    assert (len(seen), len(seen & others)) == (4, 2)


def _tracked(store):
    import mlflow

    mlflow.set_tracking_uri(store)
    (run,) = mlflow.search_runs(experiment_names=["questree"], output_format="list")
    assert run.data.params["learning_rate"] == "0.0001"
    assert {"mean_loss", "dev_span_f1", "dev_relevance_f1_low"} <= run.data.metrics.keys()


def test_the_lm_is_calibrated_in_a_folder_of_its_own(questree, workplace, questions, caplog):
    (workplace / "lm").mkdir()  # a clone has this folder: the name stands for the LM, and ./lm for the folder
    told = questree("calibrate-reader lm --task own.jsonl").done().out
    assert not any((workplace / "lm").iterdir())
    assert "./lm cannot be loaded" in questree("calibrate-reader ./lm --task own.jsonl").refused()
    assert "simulated" in told
    assert "--reader readers/lm" in told
    stored = manifest(workplace / "readers/lm")
    assert (stored["kind"], stored["model"], stored["calibration"]["simulated"]) == ("lm", "simulated", True)
    reader = Parts(RunSettings(reader="readers/lm")).reader
    assert (reader.name, reader.threshold) == ("lm", stored["threshold"])
    assert Parts(RunSettings(reader="lm")).reader is None
    assert not caplog.text
    assert Parts(RunSettings(reader="readers/lm", lm="openai/other")).reader is not None
    assert "threshold of simulated; the LM here is openai/other" in caplog.text


def test_a_calibration_as_json_has_each_threshold(questree, workplace, questions):
    (workplace / "more.jsonl").write_text((workplace / "own.jsonl").read_text().replace("-", "+"))
    said = questree(
        "calibrate-reader lm --task own.jsonl,more.jsonl --split dev --test-split none --limit 7 --out one --json"
    ).json()
    assert (said["reader"], said["readings"], said["simulated"]) == ("lm", 14, True)
    assert [point["which"] for point in said["points"] if point["which"]] == ["own", "best"]
    assert {"theta", "precision", "recall", "f1"} <= said["points"][0].keys()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train-reader --task mini", "supporting passage"),
        ("train-reader --task nosuch.jsonl", "no file nosuch.jsonl"),
        ("train-reader --task own.jsonl --split dev", "for training and for scoring"),
        ("train-reader --task own.jsonl --encoder corpus", "cannot be loaded as a AutoModel"),
        ("calibrate-reader lm --task mini", "supporting passage"),
        ("calibrate-reader encoder --task own.jsonl --out x", "stored in it, not in x"),
        ("calibrate-reader lm --task own.jsonl --out encoder", "holds something else"),
        ("calibrate-reader lm --task own.jsonl --split dev,test", "different splits"),
        ("calibrate-reader encoder --task own.jsonl", "encoder is no DPRReader"),
        ("calibrate-duplicates exact pairs.tsv", "no threshold"),
        ("calibrate-duplicates retriever pairs.tsv --retriever index", "no index"),
    ],
)
def test_a_mistake_says_what_to_do(questree, workplace, questions, encoder, words, said):
    (workplace / "corpus").mkdir()
    assert said in questree(words).refused()
    assert not (workplace / "readers").exists()


@pytest.fixture
def pairs(workplace):
    lines = ["question1\tquestion2\tis_duplicate"]
    for n, thing in enumerate(THINGS * 2):
        lines += [f"where is the {thing} {n}?\tthe {thing} is where {n}\t1", f"where is the {thing} {n}?\tby sand\t0"]
    (workplace / "pairs.tsv").write_text("\n".join(lines))


def test_a_cross_encoder_keeps_the_threshold_that_pairs_give_it(questree, workplace, encoder, pairs):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=1)
    for saved in (model, AutoTokenizer.from_pretrained(encoder)):
        saved.save_pretrained(workplace / "cross")
    told = questree("calibrate-duplicates cross pairs.tsv").done().out
    assert "--duplicates cross" in told
    assert "the other pairs: F1" in told
    stored = json.loads((workplace / "cross/questree-duplicates.json").read_text())
    check = Parts(RunSettings(duplicates="cross")).duplicates
    assert (check.threshold, stored["kind"]) == (stored["threshold"], "cross-encoder")
    assert (workplace / "cross/threshold.png").is_file()


def test_the_retrievers_threshold_goes_into_a_folder(questree, workplace, pairs, monkeypatch, caplog):
    class Retriever:
        name = "words"
        remote = False

        def similarity(self, texts, others):
            return [[len({*a.split()} & {*b.split()}) / 4 for b in others] for a in texts]

    monkeypatch.setattr(Parts, "retriever", Retriever())
    (workplace / "retriever").mkdir()
    told = questree("calibrate-duplicates retriever pairs.tsv --retriever index").done().out
    assert "--duplicates duplicates/retriever" in told
    assert not any((workplace / "retriever").iterdir())
    check = Parts(RunSettings(duplicates="duplicates/retriever", retriever="index")).duplicates
    assert check("where is the amber 0?", ["by sand", "the amber is where 0"]) == 1
    assert check("where is the amber 0?", ["by sand"]) is None
    assert not caplog.text
    assert Parts(RunSettings(duplicates="duplicates/retriever", retriever="other")).duplicates is not None
    assert "was calibrated with index; the retriever here is other" in caplog.text
