"""An empty data folder, and files to fetch from."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from questree.data import DATA_VARIABLE


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of the environment, empty."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(folder))
    return folder


@pytest.fixture
def published(tmp_path: Path) -> Callable[..., Path]:
    """Write a published file: texts as they are, rows as the name's ending wants them."""

    def write(name: str, content: object) -> Path:
        path = tmp_path / name
        if isinstance(content, str):
            text = content
        elif name.endswith(".jsonl"):
            text = "".join(json.dumps(row) + "\n" for row in (content if isinstance(content, list) else [content]))
        else:
            text = json.dumps(content)
        path.write_text(text, encoding="utf-8")
        return path

    return write
