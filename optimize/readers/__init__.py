"""Calibration and scoring of readers."""

from typing import TYPE_CHECKING

from ...common.lazy import lazily

if TYPE_CHECKING:
    from .examples import ReadingExample as ReadingExample
    from .examples import mine_negatives as mine_negatives
    from .examples import reading_examples as reading_examples
    from .examples import spread_out as spread_out
    from .readings import Pair as Pair
    from .readings import Reading as Reading
    from .readings import pairs_of as pairs_of
    from .readings import read_all as read_all
    from .thresholds import ReaderScores as ReaderScores
    from .thresholds import ThetaPoint as ThetaPoint
    from .thresholds import best_theta as best_theta
    from .thresholds import plot_theta as plot_theta
    from .thresholds import score_readings as score_readings
    from .thresholds import theta_sweep as theta_sweep

__getattr__ = lazily(__name__)
