"""Sweeps of alpha, on records whose answer is known."""

from __future__ import annotations

import pytest

from questree.common.errors import QuestreeError
from questree.evaluation.analyses import alpha_sweep
from questree.evaluation.records import Record
from questree.programs import ReasoningTree
from questree.retrieval import Passage


def long(id, score, *nodes, replaced=()):
    tree = ReasoningTree(question="q")
    for answer, text in nodes:
        tree.grow(None, query="q", answer=answer, passage=Passage(id=id, text=text), source="lm")
    for answer, text in replaced:
        tree.grow(None, query="q", answer=answer, passage=Passage(id=id, text=text), source="corrected", replaces=0)
    return Record(id=id, question="q", tree=tree, scores={"rouge-l": score})


def test_alpha_tells_nodes_that_disagree_and_how_good_the_others_answers_are():
    records = [
        long("1", 0.4, ("rain falls from clouds", "rain falls from clouds"), replaced=[("x", "y")]),
        long("2", 0.1, ("rain falls from clouds", "rain falls from clouds"), ("the sky", "rain falls from clouds")),
    ]
    low, top = alpha_sweep(records, [0.35, 1.0])
    assert (low.nodes, low.contradicted, low.left_alone) == (3, pytest.approx(1 / 3), 1)
    assert (low.rouge_l_left_alone, low.rouge_l_others) == (0.4, 0.1)
    assert (top.contradicted, top.left_alone, top.rouge_l_left_alone) == (1.0, 0, None)
    with pytest.raises(QuestreeError, match="rouge-l"):
        alpha_sweep([Record(id="1", question="q", scores={"em": 1.0})], [0.3])
