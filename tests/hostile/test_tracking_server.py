"""What a tracking server gives is checked as a folder is that someone sent; nothing of it runs, or lands elsewhere."""

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from bomb import Bomb
from reliability.faulty_server import Schedule, at_fault

from questree.common.errors import QuestreeError
from questree.optimize import load, save
from questree.programs import build

ROOT = "/api/2.0/mlflow-artifacts/artifacts"
PLACE = "mlflow-artifacts:/stored"
Files = dict[str, bytes]


def listing(*names: object) -> bytes:
    return json.dumps({"files": [{"path": name, "is_dir": False, "file_size": 1} for name in names]}).encode()


@pytest.fixture
def serve(monkeypatch, tmp_path, mlflow: Any) -> Iterator[Callable[..., None]]:
    """Let a server on this machine give these files, and this listing of them; MLflow asks it and no other."""
    given: dict[str, Any] = {}

    def answer(path: str, _: bytes) -> tuple[int, bytes]:
        address = urlsplit(path)
        if address.path == ROOT:
            asked = parse_qs(address.query).get("path", [""])[0]
            return 200, given["listing"] if asked == "stored" else listing()
        return 200, given["files"].get(unquote(address.path).removeprefix(f"{ROOT}/stored/"), b"evil")

    def start(files: Files, listed: bytes | None = None) -> None:
        given.update(files=files, listing=listing(*files) if listed is None else listed)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "downloads" / "deep" / "deeper"))
    (tmp_path / "downloads" / "deep" / "deeper").mkdir(parents=True)
    before = mlflow.get_tracking_uri()
    with at_fault(answer, Schedule([])) as address:
        mlflow.set_tracking_uri(address)
        yield start
    mlflow.set_tracking_uri(before)


@pytest.fixture
def saved(tmp_path) -> Path:
    return save(build("cot", {}), tmp_path / "program")


def files_of(folder: Path) -> Files:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_program_comes_from_a_server_and_what_stands_beside_it_never_runs(serve, saved, tmp_path):
    trace = tmp_path / "trace"
    script = f"open({str(trace)!r}, 'w').write('ran')".encode()
    beside = {"python_model.pkl": pickle.dumps(Bomb(trace)), "served_model.py": script, "conftest.py": script}
    serve(files_of(saved) | beside | {"MLmodel": b"loader_module: served_model", "conda.yaml": b"x"})
    assert load(PLACE).name == "cot"
    assert not trace.exists()


LISTINGS = {
    "above": listing("../../evil", "questree.json"),
    "absolute": listing("/tmp/evil-of-a-server"),
    "a drive": listing("C:\\evil"),
    "no text": listing(7, None, ["x"]),
    "deep": b'{"files":' + b"[" * 100_000,
}


@pytest.mark.parametrize("listed", LISTINGS.values(), ids=LISTINGS)
def test_a_listing_that_leads_elsewhere_is_an_error_and_writes_nothing_there(listed, serve, saved, tmp_path):
    serve(files_of(saved), listed)
    with pytest.raises(QuestreeError) as refused:
        load(PLACE)
    assert "stored" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.rglob("*evil*"))
    assert not Path("/tmp/evil-of-a-server").exists()


def test_a_server_whose_files_are_none_is_an_error(serve, saved):
    serve(dict.fromkeys(files_of(saved), b"<html>"))
    with pytest.raises(QuestreeError, match=r"questree\.json is damaged"):
        load(PLACE)
