"""What `import questree` gives."""

import dspy
import pytest

import questree
from questree.common.errors import QuestreeError
from questree.evaluation import RunPolicy, compare, repeat
from questree.lm.kept_replies import use_lm_cache
from questree.metrics import metric
from questree.optimize import Examples
from questree.programs import build
from questree.simulate import simulated_lm


def test_a_program_by_name_takes_its_settings():
    assert questree.program("searchain", max_rounds=2).settings.max_rounds == 2


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("searchian", {}, "Did you mean 'searchain'"),
        ("searchain", {"max_round": 2}, r"Did you mean 'max_rounds'\? .*max_rounds \(5\)"),
    ],
)
def test_unknown_names_list_what_there_is(name, settings, said):
    with pytest.raises(QuestreeError, match=said):
        questree.program(name, **settings)


def test_each_public_name_is_listed_once_and_a_star_imports_them():
    assert sorted(set(dir(questree))) == dir(questree)
    assert {"load", "load_index", "program", "Passage"} <= {*questree.__all__}
    found: dict[str, object] = {}
    exec("from questree import *\nfrom questree.retrieval import *", found)
    assert {*questree.__all__, *questree.retrieval.__all__} <= found.keys()


@pytest.mark.parametrize("name", ["index", "linked:index", "index+other"])
def test_an_index_is_opened_by_every_name_of_a_retriever(index, name):
    questree.build_index([questree.Passage(id="x", text="Nothing of it.")], "other", kind="bm25")
    opened = questree.load_index(name)
    assert opened.fingerprint == questree.program("oner", retriever=name).retriever.fingerprint
    assert "Pluto" in {passage.title for passage in opened("Who was the discoverer of Pluto?", k=5)}
    with pytest.raises(QuestreeError, match="is stale"):
        questree.load_index("index", corpus=[questree.Passage(id="x", text="Nothing of it.")])


@pytest.mark.parametrize("given", [None, 3, ["searchain"]])
def test_a_name_that_is_no_text_is_told(given):
    with pytest.raises(QuestreeError, match="Name the program by a text, not by "):
        questree.program(given)
    with pytest.raises(QuestreeError, match="Name the program by a text, not by "):
        build(given, {})
    with pytest.raises(QuestreeError, match="Name the metric by a text, not by "):
        metric(given)


MINI = questree.load_task("mini")


def test_a_name_in_the_place_of_a_program_and_a_list_in_that_of_examples_are_told():
    dev, em, program = MINI.examples("dev"), metric("em"), questree.program("direct")
    with pytest.raises(QuestreeError, match=r"'searchain' is no program; questree\.program\('searchain'\)"):
        questree.evaluate("searchain", dev, em)
    with pytest.raises(QuestreeError, match="'searchain' is no program"):
        compare({"a": "searchain"}, dev, em)
    with pytest.raises(QuestreeError, match=r"name and a program for each.*list"):
        compare([program], dev, em)
    with pytest.raises(QuestreeError, match="is no program"):
        repeat("searchain", dev, em, 2)
    with pytest.raises(QuestreeError, match="is no program"):
        questree.compile("searchain", Examples(dev, dev), em)
    with pytest.raises(QuestreeError, match=r"of the type list.*Examples\(train=.*dev="):
        questree.compile(program, dev, em)


def test_a_field_that_no_policy_has_is_told_with_those_that_there_are():
    with pytest.raises(QuestreeError, match=r"no field of RunPolicy 'max_costs'. Did you mean 'max_cost'\? There are"):
        RunPolicy(max_costs=5)


@pytest.mark.parametrize(
    ("name", "settings"), [("searchain", {}), ("tree-of-reviews", {}), ("self-consistency", {"of": "react"})]
)
def test_a_program_without_its_retriever_fails_before_an_lm_is_asked(name, settings):
    with dspy.context(lm=None), pytest.raises(QuestreeError, match="needs a retriever"):
        questree.program(name, **settings)(question="Who wrote Ulysses?")


@pytest.mark.parametrize(
    ("name", "settings"), [("searchain", {"retrieval": False}), ("direct", {}), ("self-consistency", {"of": "cot"})]
)
def test_one_that_does_not_search_needs_none(name, settings):
    with dspy.context(lm=simulated_lm(MINI.questions["dev"], cache=False)):
        assert questree.program(name, **settings)(question=MINI.examples("dev")[0].question).failure is None


def test_each_server_has_a_cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    folders = set()
    for address in (None, "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"):
        use_lm_cache(address)
        folders.add(dspy.cache.disk_cache_dir)
    assert len(folders) == 3
