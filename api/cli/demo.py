"""questree demo"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .screen import Screen, echo

if TYPE_CHECKING:
    from ..experiment import Experiment

QUESTION = "Which river reaches the sea in the city where the author of Ulysses was born?"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything it makes.")] = Path("runs/demo"),
    candidates: Annotated[int, typer.Option(min=1, help="Programs that the random search tries.")] = 6,
    reader: Annotated[str, typer.Option(help="'lm', or a reader's folder (`questree train-reader`).")] = "lm",
) -> None:
    """Run SearChain on the bundled questions: index, score, compile, score again, track, save, load and ask.

    Retrieval, compilation and tracking are real; the LM is simulated. A second run reuses what the first one made.
    """
    from ..experiment import Experiment
    from ..settings import RunSettings

    settings = RunSettings(
        task="mini",
        split="dev",
        lm="simulated",
        retriever=str(out / "index"),
        reader=reader,
        tracking_uri=f"sqlite:///{out / 'mlflow.db'}",
        out=out / ("compile" if reader == "lm" else f"compile-{Path(reader).name}"),
    )
    experiment = Experiment(settings)
    out.mkdir(parents=True, exist_ok=True)
    with _step("1. index 305 passages with ColBERT"):
        _index(out / "index")
    with _step("2. score SearChain, compile it, score it again"):
        address = _compile(experiment, candidates)
    with _step(f"3. load {address} and ask"):
        _ask(experiment, address, out / "tree.html")
    echo(f"\nthe tree as a page: {out / 'tree.html'}")
    echo(f"each run and trace: .venv/bin/questree ui --tracking-uri {settings.tracking_uri}")


@contextmanager
def _step(title: str) -> Iterator[None]:
    Screen().print(f"\n{title}", style="bold")
    began = time.perf_counter()
    yield
    echo(f"({time.perf_counter() - began:.0f} s)")


def _index(folder: Path) -> None:
    from ..data import MINI_CORPUS
    from ..parts import load_or_build

    echo(f"{folder}: {len(load_or_build(MINI_CORPUS, folder).passages)} passages")


def _compile(experiment: Experiment, candidates: int) -> str:
    from .report import compile_bars, print_compiled

    with compile_bars() as on_progress:
        compiled, _ = experiment.compile(
            "searchain",
            optimizer="bootstrap-random-search",
            optimizer_settings={"candidates": candidates, "max_bootstrapped_demos": 4, "max_labeled_demos": 4},
            on_progress=on_progress,
        )
    print_compiled(compiled)
    return str(compiled.address)


def _ask(experiment: Experiment, address: str, page: Path) -> None:
    from ..common.files import write_atomically
    from ..pages.answer_pages import answer_page
    from .ask import ask_live

    prediction = ask_live(experiment.program(address), QUESTION, "short")
    write_atomically(page, answer_page(prediction, simulated=True))
