"""Good replies in another dress, as a server gives them: read at once, and as they are meant."""

import pytest
from reliability.dresses import DRESSES, dressed_report
from reliability.faulty_server import Fault


@pytest.mark.parametrize("dress", DRESSES, ids=lambda dress: dress.kind)
def test_a_dress_changes_no_answer_and_costs_no_request(dress):
    counts = dressed_report([dress], ["cot", "plan-and-solve"])
    assert counts.wrong == []
    assert counts.tried == {dress.kind: 2}
    assert counts.found == {"lost": 0, "answered otherwise": 0, "asked again": 0}


def test_what_is_lost_or_other_is_counted():
    def saying(text):
        return lambda completion: {**completion, "choices": [{"message": {"role": "assistant", "content": text}}]}

    other = Fault("other", change=saying("[[ ## final_content ## ]]\nx\n[[ ## answer ## ]]\ny"))
    counts = dressed_report([other, Fault("none", change=saying("no"))], ["cot"])
    assert counts.found == {"lost": 1, "answered otherwise": 1, "asked again": 0}
    assert counts.tried == {"other": 1, "none": 1}
    assert [one.split(":")[0] for one in counts.wrong] == ["other", "none"]
