"""Training, calibration and scoring of readers, and the thresholds of duplicate queries."""

from .calibration import Pair, Reading, ThetaPoint, best_theta, pairs_of, plot_theta, read_all, theta_sweep
from .evaluation import ReaderScores, score_readings
from .examples import ReadingExample, mined, reading_examples, spread
from .training import train_reader, unseen
from .training_plan import TrainedReader, TrainingProgress, TrainingSettings

__all__ = [
    "Pair",
    "ReaderScores",
    "Reading",
    "ReadingExample",
    "ThetaPoint",
    "TrainedReader",
    "TrainingProgress",
    "TrainingSettings",
    "best_theta",
    "mined",
    "pairs_of",
    "plot_theta",
    "read_all",
    "reading_examples",
    "score_readings",
    "spread",
    "theta_sweep",
    "train_reader",
    "unseen",
]
