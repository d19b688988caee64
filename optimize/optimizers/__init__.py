"""Optimizers by name: DSPy's teleprompters and our own, each with its settings.

To add one: write its class (what may be set, and `Optimizer.make`), and add it to `OPTIMIZERS`. The program that it
makes is called as the given one is, and can be saved as JSON.
"""

from __future__ import annotations

from typing import Any

from ...common.lazy import PartsByName
from ...common.registry import Registry, settings_of
from .base import Job as Job
from .base import Optimizer as Optimizer

OPTIMIZERS: PartsByName[type[Optimizer]] = PartsByName(
    __name__,
    {
        "labeled-few-shot": ".few_shot:LabeledFewShot",
        "annotated-few-shot": ".few_shot:AnnotatedFewShot",
        "bootstrap-few-shot": ".few_shot:BootstrapFewShot",
        "bootstrap-random-search": ".few_shot:BootstrapRandomSearch",
        "mipro": ".instructions:Mipro",
        "gepa": ".gepa:Gepa",
        "infer-rules": ".instructions:InferRules",
        "auto-cot": ".auto_cot:AutoCoTFewShot",
        "knn-few-shot": ".few_shot:KnnFewShot",
        "ensemble": ".few_shot:Ensemble",
    },
)


def _read_optimizer(name: str, found: Any) -> type[Optimizer]:
    if not (isinstance(found, type) and issubclass(found, Optimizer)):
        raise TypeError("it is no subclass of questree.optimize.Optimizer")
    if not hasattr(found, "name"):
        raise TypeError("the class has no 'name', which every optimizer has")
    return found


REGISTRY = Registry("optimizer", OPTIMIZERS, _read_optimizer)
"""Our optimizers, and those of other packages."""


def optimizer(name: str, **settings: Any) -> Optimizer:
    """Return the optimizer of this name.

    Args:
        name: one of `OPTIMIZERS`, one that a package offers, or ``package:name``.
        settings: those of its class; what is not given has its default.

    Raises:
        QuestreeError: if there is no such optimizer or setting, or a value does not fit; names what there is.
    """
    made: Optimizer = settings_of(name, REGISTRY.named(name), settings)
    return made
