"""Fixtures that every room shares."""

import asyncio
import gc
import inspect
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

# One thread for each process of tests: the models are tiny, and several threads on shared cores mostly wait for each
# other (six times the processor time). Set before torch and faiss are imported; processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# MLflow's thread that sends traces looks for the end only once a second, so each run would wait for it. The tests of
# the tracking server have it as users do.
os.environ.setdefault("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")

# Garbage is collected more seldom than Python does it: with torch, dspy and MLflow loaded, a look at all objects takes
# a tenth of a second and more.
gc.set_threshold(50_000, 10, 10)

# The same cases every time, and no verdict by the clock: CI shares its cores.
settings.register_profile("questree", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("questree")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters})
    )
    return True


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real questions and passages beside the checkout; the test is skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no real data at {SHARED_DATA}")
    return SHARED_DATA


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begin with DSPy's own settings, also where fixtures of a whole module are made.

    A stream that an earlier test left half read ends when it is collected, and then puts back that test's settings.
    """
    from dspy.dsp.utils.settings import dotdict, thread_local_overrides

    thread_local_overrides.set(dotdict())


@pytest.fixture(autouse=True)
def _own_lm_cache() -> Iterator[None]:
    """No reply of another test, or of another day, answers a call of this one."""
    import dspy

    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield
    dspy.cache.reset_memory_cache()


@pytest.fixture(autouse=True)
def _own_limits() -> Iterator[None]:
    """A command that runs in this process sets limits for all of it, as it may; they end with its test."""
    from questree.lm.limits import Limits, limit_process

    yield
    limit_process(Limits())


@pytest.fixture(autouse=True)
def _own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another test's LM was given is no secret here."""
    monkeypatch.setattr("questree.common.secrets._remembered", set())


class Ran(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    def done(self) -> "Ran":
        """This, if it ended well."""
        assert self.code == 0, self.err
        return self

    def refused(self) -> str:
        """What it said in one text, if a mistake ended it; what is printed in a box is taken out of it."""
        assert self.code == 2, self.out + self.err
        return " ".join(self.err.replace("│", " ").split())

    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.done().out)


@pytest.fixture(scope="session")
def made_offline(for_all_workers: Path) -> Path:
    """Return a folder of what Questree makes for itself, once for all tests.

    The embedded checkpoint has one layer of its six here, and the index of the bundled task is one of words: a command
    that names no index loads no encoder.
    """
    folder = for_all_workers / "made offline"
    with FileLock(f"{folder}.lock"), pytest.MonkeyPatch.context() as environment:
        if not folder.exists():
            from safetensors.numpy import load_file, save_file

            from questree.data import MINI_CORPUS
            from questree.retrieval import build_index
            from questree.retrieval.late_interaction.checkpoint import embedded_checkpoint

            environment.setenv("QUESTREE_CACHE", str(folder))
            checkpoint = embedded_checkpoint()
            weights = load_file(checkpoint / "model.safetensors")
            kept = {name: weights[name] for name in weights if not re.search(r"\.layer\.[1-9]", name)}
            save_file(kept, checkpoint / "model.safetensors", metadata={"format": "pt"})
            config = json.loads((checkpoint / "config.json").read_text())
            (checkpoint / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}))
            build_index(MINI_CORPUS, folder / "indexes" / "mini", kind="bm25")
    return folder


def _cache_in(folder: Path, made_offline: Path, patch: pytest.MonkeyPatch) -> Path:
    cache = folder / "cache"
    cache.mkdir()
    for name in ("checkpoints", "indexes"):
        (cache / name).symlink_to(made_offline / name)
    patch.setenv("QUESTREE_CACHE", str(cache))
    return cache


@pytest.fixture
def own_cache(tmp_path: Path, made_offline: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, with what is made offline."""
    return _cache_in(tmp_path, made_offline, monkeypatch)


@pytest.fixture
def workplace(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with nothing but a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture(scope="session")
def _commands() -> Any:
    """The command line, which typer makes anew for each call: a user makes one in a process, the tests hundreds."""
    from typer.main import get_command

    from questree.cli import app

    return get_command(app)


@pytest.fixture(scope="session")
def made_by(made_offline: Path, tmp_path_factory: pytest.TempPathFactory, _commands: Any) -> Callable[..., Path]:
    """Run commands in a new folder, for what several tests look at; returns the folder."""

    def make(*commands: str) -> Path:
        folder = tmp_path_factory.mktemp("made")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            _cache_in(folder, made_offline, patch)
            for words in commands:
                _commands(words.split(), standalone_mode=False)
        return folder

    return make


@pytest.fixture
def questree(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], _commands: Any
) -> Callable[..., Ran]:
    """Run a command as a user would, in the workplace: its first words may be one text, others follow as they are."""
    from questree.cli import main

    monkeypatch.setattr("questree.cli.app", _commands)

    def run(words: str, *more: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["questree", *shlex.split(words), *map(str, more)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return Ran(int(end.value.code or 0), said.out, said.err)

    return run


@pytest.fixture(scope="session")
def for_all_workers(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that lasts as long as the session, and is the same in every process that runs its tests."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def mlflow() -> Any:
    """MLflow, which takes seconds to import."""
    return import_module("mlflow")


@pytest.fixture(scope="session")
def tracking_store(for_all_workers: Path, mlflow: Any) -> Callable[[Path], str]:
    """Put an MLflow store that holds nothing yet into a folder; gives its URI. MLflow takes seconds to make one."""
    empty = for_all_workers / "empty.db"
    with FileLock(f"{empty}.lock"):
        if not empty.exists():
            mlflow.MlflowClient(f"sqlite:///{empty}.new").search_experiments()
            Path(f"{empty}.new").rename(empty)

    def put(folder: Path) -> str:
        return f"sqlite:///{shutil.copy(empty, folder / 'mlflow.db')}"

    return put
