"""Programs asked, scored and recorded: runs, their policy and identity, comparisons, analyses and attacks."""

from ..lm.policy import OutOfBudgetError as OutOfBudgetError
from ..lm.policy import RunPolicy as RunPolicy
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
