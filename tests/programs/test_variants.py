"""Settings to compare, from the types of the settings."""

import pytest

from questree.common.errors import QuestreeError
from questree.programs import variants


def test_a_type_that_lists_its_values_is_varied_over_all_default_first():
    expansions = ["review", "direct", "cot", "mpc"]
    assert list(variants("tree-of-reviews", ["expansion"])) == [f"expansion={one}" for one in expansions]


def test_between_the_presets_each_setting_of_the_paper_is_varied_by_itself():
    varied = variants("searchain", ["preset"])
    assert list(varied) == [
        "preset=best",
        "k=1",
        "check=reader",
        "continuation=ask",
        "min_independent_passages=0",
        "preset=paper",
    ]
    assert varied["k=1"] == {"k": 1}
    assert varied["preset=paper"] == {"preset": "paper"}


def test_a_setting_without_effect_is_varied_with_the_one_that_gives_it_some():
    assert len(variants("blendfilter", ["topic", "judgements"])) == 4
    assert len(variants("blendfilter", ["topic"], given={"judgements": False})) == 2
    assert "topic=True" not in variants("blendfilter", ["preset"])


def test_of_several_settings_every_combination():
    varied = variants("tree-of-reviews", ["relevance_pruning", "repetitive_pruning"])
    assert len(varied) == 4
    assert next(iter(varied.values())) == {"relevance_pruning": True, "repetitive_pruning": True}


def test_other_types_take_the_values_that_are_named():
    assert list(variants("blendfilter", ["k"], [10, 5])) == ["k=5", "k=10"]
    assert list(variants("tree-of-reviews", ["widths"], [[5], [5, 3, 3]])) == ["widths=5 3 3", "widths=5"]
    assert list(variants("blendfilter", ["k"], [10, 3])) == ["k=10", "k=3"], "the default is none of them"


def test_the_first_is_what_the_program_has_beside_the_settings_given():
    assert list(variants("searchain", ["k"], [1, 3])) == ["k=3", "k=1"]
    assert list(variants("searchain", ["k"], [3, 1], {"preset": "paper"})) == ["k=1", "k=3"]
    assert next(iter(variants("searchain", ["continuation"], given={"preset": "paper"}))) == "continuation=ask"


@pytest.mark.parametrize(
    ("over", "values", "said"),
    [
        (["topik"], None, "topic"),
        ([], None, "vary one of"),
        (["k"], None, "--value 1"),
        (["k", "filter"], [1], "one setting at a time"),
        (["topic"], None, "topic has no effect with judgements=True"),
        (["sampled_by"], None, "no effect with samples=1"),
    ],
)
def test_what_cannot_be_varied_is_named(over, values, said):
    with pytest.raises(QuestreeError, match=said):
        variants("blendfilter", over, values)
