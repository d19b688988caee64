"""A server that answers in other dress than OpenAI's loses no question, whole or as a stream, and is paid what it told."""

import pytest
from reliability.server_dresses import DRESSES, server_dress_report


@pytest.mark.parametrize("dress", DRESSES, ids=lambda dress: dress.kind)
def test_a_server_in_other_dress_loses_no_question(dress):
    counts = server_dress_report([dress], questions=1)
    assert counts.wrong == []
    assert (counts.found["questions"], counts.found["lost"]) == (2, 0)
