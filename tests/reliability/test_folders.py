"""The part of the command that kills the indexing of changing folders, with few kills."""

import pytest
from reliability.commands import commands
from reliability.folders import KINDS, followed
from reliability.tiny_encoders import save_encoder


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_index_follows_a_folder_through_kills(kind, tmp_path):
    save_encoder(tmp_path / "encoder")
    with commands() as running:
        found = followed(kind, 4, 1, tmp_path / kind, running)
    assert found.wrong == []
    assert found.tried["kills"] >= 4
    assert found.found["differences to a fresh build"] == 0
