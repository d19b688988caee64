"""questree list"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from ..common.errors import QuestreeError
from . import options
from .screen import Screen, echo, print_figures, print_json, table_of

if TYPE_CHECKING:
    from pathlib import Path

    from ..common.registry import Registry
    from ..data import KnownTask

_ANY_KIND = (
    ("http://HOST:PORT", "questree serve-retriever", "an index in another process, shared by many workers"),
    (
        "qdrant://HOST:PORT/COLLECTION",
        "questree index --engine",
        "a collection of Qdrant, on one machine or on many: BM25 gathers, late interaction reranks, in one request",
    ),
    (
        "qdrant:FOLDER/COLLECTION",
        "questree index --engine",
        "the same without a server, for trials: one process at a time, and it compares with every passage",
    ),
    ("PACKAGE:NAME", "your code", "a retriever of your own: an object, a function from a query to passages, a class"),
    ("linked:NAME", "linked: before a name", "any of these, and the passages that its best ones name"),
    ("FOLDER+FOLDER", "+ between names", "several as one, by reciprocal rank; needs ids that mean the same in each"),
)


def list_(
    what: Literal["programs", "metrics", "optimizers", "tasks", "retrievers"],
    as_json: options.AsJson = False,
) -> None:
    """List the programs, metrics, optimizers, tasks or retrievers that options can name.

    Args:
        what: What to list.
    """
    if what == "tasks":
        _list_tasks(as_json)
        return
    registry = None if what == "retrievers" else _registry(what)
    rows = list(_retrievers() if registry is None else _registered(registry))
    if as_json:
        print_json(rows)
        return
    first, *_ = headings = list(rows[0])
    columns = {heading: {"no_wrap": heading == first and registry is not None} for heading in headings}
    Screen().print(table_of(rows, columns))
    if registry is not None:
        echo(f"of your own: package:name, or an entry point of the group {registry.group} (docs/your-own-code.md)")


def _registry(what: str) -> "Registry[Any]":
    from ..metrics import REGISTRY as METRICS
    from ..optimize import REGISTRY as OPTIMIZERS
    from ..programs import REGISTRY as PROGRAMS

    registries: dict[str, Registry[Any]] = {"programs": PROGRAMS, "metrics": METRICS, "optimizers": OPTIMIZERS}
    return registries[what]


def _registered(registry: "Registry[Any]") -> Iterable[dict[str, str]]:
    """Yield a row for each part; one of another package that cannot be imported says why."""
    from ..common.registry import described

    for name in registry.names():
        try:
            part = registry.known(name)
            line, paper = described(getattr(part, "about", None) or part.__doc__)
        except QuestreeError as error:
            line, paper = str(error), ""
        yield {registry.what: name, "what it is": line, "paper": paper}


def _retrievers() -> Iterable[dict[str, str]]:
    """Yield what --retriever can name: kinds of index, servers, collections of Qdrant, your own, and several fused."""
    from ..retrieval.index_folder import KINDS
    from ..retrieval.retriever_names import RETRIEVERS

    kinds = [("FOLDER", f"questree index --kind {name}", kind.description) for name, kind in KINDS.items()]
    installed = [(name, "installed", "of an installed package") for name in RETRIEVERS.names()]
    for row in (*kinds, *_ANY_KIND[:3], *installed, *_ANY_KIND[3:]):
        yield dict(zip(("--retriever", "made with", "what it is"), row, strict=True))


def _list_tasks(as_json: bool) -> None:
    """List the tasks that --task knows by name, and which of them are here."""
    from ..data import KNOWN_TASKS, SPLITS, data_folder, task_names

    folder, lines = data_folder(), []
    for task in KNOWN_TASKS.values():
        sizes = " / ".join(f"{task.sizes[split]:,}" if split in task.sizes else "-" for split in SPLITS)
        hub = task.hub.id if task.hub and "/" in task.hub.id else task.source.removeprefix("https://")
        line = {"task": task.name, "questions from": hub, "train / dev / test": sizes if task.sizes else "-"}
        line |= {"metric": task.metric, "answers": task.style, "corpus": task.corpus.name if task.corpus else "-"}
        lines.append({**line, "licence": task.licence, "here": _here(task, folder)})
    for name in [name for name in task_names() if name not in KNOWN_TASKS]:
        here = "your file" if (folder / f"{name}.jsonl").is_file() else "installed"
        lines.append({**dict.fromkeys(lines[0], "-"), "task": name, "here": here})
    if as_json:
        print_json(lines)
        return
    print_figures(lines)
    echo(f"{folder} holds what is here. Get a task: questree fetch NAME")
    echo("Samples of the papers, by name after a colon (--task hotpotqa:tree-of-reviews):")
    for task in [task for task in KNOWN_TASKS.values() if task.samples]:
        echo(f"  {task.name}: {', '.join(task.samples)}")


def _here(task: "KnownTask", folder: "Path") -> str:
    from ..data import BUNDLED, read_task_manifest

    if task.name in BUNDLED:
        return "bundled"
    try:
        if read_task_manifest(folder, task.name):
            return "fetched"
    except QuestreeError:
        return "incomplete"
    return "your file" if (folder / f"{task.name}.jsonl").is_file() else ""
