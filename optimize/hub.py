"""Repositories of the Hugging Face hub: where compiled programs are fetched from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..common.errors import QuestreeError
from ..common.hub_faults import hub_fault
from ..common.json_files import LARGEST

PREFIX = "hf://"
_ADDRESS = re.compile(r"hf://(?P<repository>\w[\w.-]*/\w[\w.-]*?)(@(?P<revision>[\w./-]+))?")
_FILE = "questree.json"


def parse(address: str) -> tuple[str, str | None]:
    """Return repository and revision of ``hf://user/name@revision``; None for a revision that is not named."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise QuestreeError(f"{address} is no address on the hub: write hf://user/name or hf://user/name@revision.")
    return found["repository"], found["revision"]


def fetch_artifact(address: str, target: str | Path) -> str:
    """Put the file of an artifact on the hub into a folder; return its address with the commit."""
    from huggingface_hub import HfApi

    repository, revision = parse(address)
    with _one_line_errors(address):
        hub = HfApi()
        held = hub.model_info(repository, revision=revision, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in held.siblings or ()}
        if sizes.get(_FILE, LARGEST + 1) > LARGEST:
            raise QuestreeError(
                f"{address} holds no {_FILE} of at most {LARGEST:,} bytes: that is no compiled program."
            )
        # only this commit: a revision may have moved since its sizes were read
        hub.hf_hub_download(repository, _FILE, revision=held.sha, local_dir=target)
    return f"{PREFIX}{repository}@{held.sha}"


@contextmanager
def _one_line_errors(address: str) -> Iterator[None]:
    """Turn whatever the hub's client raises into one line."""
    try:
        yield
    except QuestreeError:
        raise
    except Exception as problem:
        raise QuestreeError(f"{address}: {hub_fault(problem)}.") from problem
