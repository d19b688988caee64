"""questree demo"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from ..settings import RunSettings
from .screen import Screen, echo

QUESTION = "Which river flows by the native city of the composer of The Magic Flute?"


def demo(
    out: Path = Path("runs/demo"),
    reader: str = "lm",
) -> None:
    """Run SearChain on the bundled questions: index, score, compile, score again, track, save, load and ask.

    Retrieval, compilation and tracking are real; the LM is simulated. A second run reuses what the first one made.

    Args:
        out: Folder for everything it makes.
        reader: 'lm', or a reader's folder (`questree calibrate-reader`).
    """
    from ..common.files import write_atomically
    from ..data import MINI_CORPUS
    from ..experiment import Experiment
    from ..pages.question_page import answer_page
    from ..retrieval.index_builder import load_or_build
    from .ask import ask_live
    from .compile import compile

    settings = RunSettings(
        task="mini",
        split="dev",
        lm="simulated",
        retriever=str(out / "index"),
        reader=reader,
        tracking_uri=f"sqlite:///{out / 'mlflow.db'}",
        out=out / ("compile" if reader == "lm" else f"compile-{Path(reader).name}"),
    )
    out.mkdir(parents=True, exist_ok=True)
    with _step("1. index 305 passages"):
        retriever = load_or_build(MINI_CORPUS, out / "index")
        echo(f"{out / 'index'}: {len(retriever.passages)} passages, {retriever.name}")
    with _step("2. score SearChain, compile it, score it again"):
        compiled = compile(
            settings,
            "searchain",
            optimizer="bootstrap-random-search",
            optimizer_set=["candidates=6", "max_bootstrapped_demos=4", "max_labeled_demos=4"],
        )
    with _step(f"3. load {compiled.address} and ask"):
        prediction = ask_live(Experiment(settings).program(str(compiled.address)), QUESTION, "short")
        write_atomically(out / "tree.html", answer_page(prediction, simulated=True))
    echo(f"\nthe tree as a page: {out / 'tree.html'}")
    command = "questree" if which("questree") else sys.argv[0]  # `make demo` runs before .venv is activated
    echo(f"each run and trace: {command} ui --tracking-uri {settings.tracking_uri}")


@contextmanager
def _step(title: str) -> Iterator[None]:
    Screen().print(f"\n{title}", style="bold")
    began = time.perf_counter()
    yield
    echo(f"({time.perf_counter() - began:.0f} s)")
