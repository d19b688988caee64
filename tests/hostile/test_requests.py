"""Requests that the retriever's server should refuse, each kind once."""

from __future__ import annotations

from reliability.hostile_requests import KINDS, send_hostile


def test_what_should_be_refused_is_and_honest_requests_are_answered():
    found = send_hostile(1, seed=7)
    assert found.wrong == []
    assert len(KINDS) >= 40
    assert found.tried == dict.fromkeys(KINDS, 1)
