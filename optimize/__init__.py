"""Compile programs; save, load and serve the result."""

from typing import TYPE_CHECKING

from ..common.lazy import lazily

if TYPE_CHECKING:
    from .artifact import load as load
    from .artifact import read_artifact as read_artifact
    from .artifact import save as save
    from .candidates import Candidate as Candidate
    from .compilation import compile as compile
    from .mlflow_model import answer_all as answer_all
    from .mlflow_model import log_model as log_model
    from .optimizers import OPTIMIZERS as OPTIMIZERS
    from .optimizers import REGISTRY as REGISTRY
    from .optimizers import Job as Job
    from .optimizers import Optimizer as Optimizer
    from .optimizers import optimizer as optimizer
    from .result import Compilation as Compilation
    from .result import Compiled as Compiled
    from .result import CompileProgress as CompileProgress
    from .result import Examples as Examples

__getattr__ = lazily(__name__)
