import json

import dspy
import pytest

import questree
from questree.common.errors import QuestreeError
from questree.common.manifests import checksum_of
from questree.evaluation.identity import signature_fingerprints
from questree.optimize import load, save
from questree.programs import build
from questree.programs.composed import Majority
from questree.programs.modules.reader import LMReader
from questree.retrieval import Passage


@pytest.fixture
def saved(mini, bootstrapped, tmp_path):
    """A compiled program in a folder, and as it was before it was saved."""
    program = bootstrapped.deepcopy()
    return save(program, tmp_path / "program", note="kept"), program


def test_a_loaded_program_sends_the_same_prompts_and_answers_the_same(saved, mini):
    folder, program = saved
    loaded = load(folder, retriever=mini.index)
    for example in mini.dev[:3]:
        first, second = (one(**example.inputs()) for one in (program, loaded))
        assert (first.answer, first.final_content, first.tree) == (second.answer, second.final_content, second.tree)
    messages = [[entry["messages"] for entry in one.history] for one in (program, loaded)]
    assert len(messages[1]) > 3
    assert messages[0][-len(messages[1]) :] == messages[1]


def test_it_says_what_it_is(saved):
    manifest = json.loads((saved[0] / "questree.json").read_text())
    assert manifest["program"]["name"] == "searchain"
    assert manifest["program"]["settings"]["max_rounds"] == 5
    assert manifest["retriever"] == {"name": "words", "fingerprint": "words-1"}
    assert manifest["lm"]["simulated"] is True
    assert manifest["note"] == "kept"
    assert "dspy" in manifest["versions"]


def test_what_is_no_saved_program_is_told_as_what_it_is(saved, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for place, said in [
        (tmp_path / "nothing", r"There is no folder .*nothing: name the folder of a saved program"),
        (tmp_path / "file", r"There is no folder .*file: name"),
        (tmp_path, r"its program is in .*/program: name that"),
        (tmp_path / "empty", r"empty is incomplete or no saved program: it has no questree\.json"),
    ]:
        with pytest.raises(QuestreeError, match=said):
            load(place)


def test_no_lm_key_or_address_travels_with_it(mini, tmp_path):
    program = mini.program()
    program.set_lm(dspy.LM("openai/gpt", api_key="sk-planted", api_base="http://secret.example/v1"))
    with dspy.context(lm=dspy.LM("openai/gpt", api_key="sk-planted", api_base="http://secret.example/v1")):
        folder = save(program, tmp_path / "program")
    text = "".join(file.read_text() for file in folder.iterdir())
    assert "sk-planted" not in text
    assert "secret.example" not in text
    assert load(folder, retriever=mini.index).get_lm() is None


def edited(folder, change):
    """Change what is saved as someone would who knows the checksum."""
    content = json.loads((folder / "questree.json").read_text())
    change(content)
    (folder / "questree.json").write_text(json.dumps(content | {"checksum": checksum_of(content)}))


def test_how_a_predictor_samples_comes_back_and_where_its_lm_is_stays_behind(mini, tmp_path, caplog):
    program = mini.program()
    program.chain_of_query.plan.config = {"temperature": 0.5, "max_tokens": 90, "api_base": "http://secret.example"}
    folder = save(program, tmp_path / "program")
    assert load(folder, retriever=mini.index).chain_of_query.plan.config == {"temperature": 0.5, "max_tokens": 90}
    assert "secret.example" not in (folder / "questree.json").read_text()
    assert "The setting api_base of chain_of_query.plan is not saved" in caplog.text


def test_a_changed_signature_is_refused_by_name_unless_told(saved, mini, change_the_plan, caplog):
    folder, _ = saved
    change_the_plan()
    with pytest.raises(QuestreeError, match=r"PlanChain \(chain_of_query.plan\)"):
        load(folder, retriever=mini.index)
    loaded = load(folder, retriever=mini.index, allow_changed_signatures=True)
    assert "Plan the chain of search queries" in loaded.chain_of_query.plan.signature.instructions
    assert "loaded all the same" in caplog.text


def test_a_signature_that_has_other_fields_now_is_refused_even_if_changes_are_allowed(saved, mini, change_the_plan):
    folder, _ = saved
    change_the_plan()
    edited(folder, lambda one: one["state"]["members"][0]["chain_of_query.plan"]["signature"]["fields"].pop())
    with pytest.raises(
        QuestreeError, match=r"does not fit its program \(chain_of_query.plan has 3 fields, and not 2\); .*again"
    ):
        load(folder, retriever=mini.index, allow_changed_signatures=True)


@pytest.mark.parametrize(
    "changed",
    [
        dspy.Signature("question: str -> answer: int", "Answer."),
        dspy.Signature("question: str -> reply: str", "Answer."),
        dspy.Signature("question: str -> answer: str", "Answer well."),
        dspy.Signature("question: str -> answer: str", "Answer.").with_updated_fields("answer", desc="short"),
    ],
)
def test_a_fingerprint_changes_with_all_that_enters_a_prompt(changed):
    def fingerprint(signature):
        program = dspy.Module()
        program.predict = dspy.Predict(signature)
        return signature_fingerprints(program)["predict"]["fingerprint"]

    plain = dspy.Signature("question: str -> answer: str", "Answer.")
    assert fingerprint(plain) == fingerprint(dspy.Signature("question: str -> answer: str", "Answer."))
    assert fingerprint(plain) != fingerprint(changed)


def test_instructions_that_an_optimizer_wrote_are_no_changed_signature(mini, tmp_path):
    program = build("searchain", {"check": "reader"}, retriever=mini.index)
    plan = program.chain_of_query.plan
    plan.signature = plan.signature.with_instructions("Plan better.")
    read = program.reader.read
    read.signature = read.signature.with_instructions("Read better.")
    loaded = load(save(program, tmp_path / "program"), retriever=mini.index)
    assert loaded.chain_of_query.plan.signature.instructions == "Plan better."
    assert loaded.reader.read.signature.instructions == "Read better."
    assert loaded.chain_of_query.plan.signature.__name__ == "PlanChain"  # as failures name it


def test_the_threshold_of_an_lm_that_reads_is_kept(mini, tmp_path):
    program = build("searchain", {"check": "reader"}, retriever=mini.index)
    program.reader.threshold = 0.25
    folder = save(program, tmp_path / "program")
    assert load(folder, retriever=mini.index).reader.threshold == 0.25
    calibrated = LMReader()
    calibrated.threshold = 2.0
    assert load(folder, retriever=mini.index, reader=calibrated).reader.threshold == 2.0


def test_members_that_read_have_each_its_own_prompt(mini, tmp_path):
    members = [build("searchain", {"check": "reader"}, retriever=mini.index) for _ in range(2)]
    for member, instructions in zip(members, ("Read slowly.", "Read twice."), strict=True):
        member.reader.read.signature = member.reader.read.signature.with_instructions(instructions)
    loaded = load(save(Majority(members), tmp_path / "program"), retriever=mini.index, reader=LMReader())
    assert [one.reader.read.signature.instructions for one in loaded.members] == ["Read slowly.", "Read twice."]


def test_another_index_only_warns(saved, mini, caplog):
    other = type(mini.index)(mini.index.passages[:50])
    other.fingerprint = "words-2"
    load(saved[0], retriever=other)
    assert "words-1" in caplog.text
    assert "words-2" in caplog.text


class OtherReader:
    name, threshold = "dpr", 1.5


@pytest.mark.parametrize(
    ("settings", "saved_with", "given", "said"),
    [
        ({}, None, OtherReader(), r"reader none and is loaded with dpr; .*\(--reader\)"),
        ({"check": "reader"}, None, OtherReader(), "reader lm and is loaded with dpr"),
        ({}, OtherReader(), None, "reader dpr and is loaded with none"),
    ],
)
def test_another_reader_is_refused(settings, saved_with, given, said, mini, tmp_path):
    folder = save(build("searchain", settings, retriever=mini.index, reader=saved_with), tmp_path / "program")
    with pytest.raises(QuestreeError, match=said):
        load(folder, retriever=mini.index, reader=given)


def test_an_artifact_of_a_newer_version_is_refused(saved, mini):
    edited(saved[0], lambda content: content.update(format=99))
    with pytest.raises(QuestreeError, match="newer questree"):
        load(saved[0], retriever=mini.index)


def test_saving_replaces_an_artifact_and_nothing_else(saved, mini, tmp_path):
    folder, _ = saved
    save(mini.program(), folder)
    assert load(folder, retriever=mini.index).chain_of_query.plan.demos == []
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(QuestreeError, match="not empty"):
        save(mini.program(), tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "program"]


def test_a_failed_save_leaves_the_old_one(saved, mini):
    folder, program = saved
    program.chain_of_query.plan.demos = [dspy.Example(question=object())]
    with pytest.raises(QuestreeError, match="cannot be saved as JSON"):
        save(program, folder)
    assert load(folder, retriever=mini.index).chain_of_query.plan.demos


@pytest.mark.parametrize(("name", "kind"), [("one", "bm25"), ("linked:one", "linked bm25")])
def test_an_index_is_named_by_its_folder(name, kind, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    for folder in ("one", "other"):
        questree.build_index([Passage(id="1", text=f"Words of {folder}.")], folder, kind="bm25")
    compiled = questree.load_index(name)
    save(build("oner", {}, retriever=compiled), tmp_path / "saved")
    load(tmp_path / "saved", retriever=compiled)
    assert "Compiled over" not in caplog.text
    load(tmp_path / "saved", retriever=(other := questree.load_index("other")))
    then, now = f"one ({kind}, {compiled.fingerprint})", f"other (bm25, {other.fingerprint})"
    assert f"Compiled over the index {then}, now asked over {now}: scores may differ." in caplog.text
