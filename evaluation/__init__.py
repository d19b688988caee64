"""Ask programs, score their answers and record them.

- The run file: `run_file` (tables, reading, writing), `kept_run` (writing a run), `stored_runs` (reading runs).
- The record: `records` (an answered question), `identity` and `environment` (what tells one run from another).
- The run: `run` (ask, keep, score), `pools`, `repeats`, `series`, `attacks/`.
- Views of records: `evaluation`, `tables`, `comparison/`, `analyses`, `audit`, `capsule/` (a copy of runs, and replay).
- MLflow: `tracking`, `tracking_store`, `tracked_runs`, `traces`, `genai`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazily

if TYPE_CHECKING:
    from ..lm.limits import OutOfBudgetError as OutOfBudgetError
    from ..lm.limits import RunPolicy as RunPolicy
    from .comparison.comparison import compare as compare
    from .comparison.rows import Comparison as Comparison
    from .evaluation import Evaluation as Evaluation
    from .records import Record as Record
    from .repeats import Repeats as Repeats
    from .repeats import repeat as repeat
    from .run import Interrupted as Interrupted
    from .run import Progress as Progress
    from .run import evaluate as evaluate
    from .stored_runs import read_records as read_records
    from .tracking import Tracking as Tracking

__getattr__ = lazily(__name__)
