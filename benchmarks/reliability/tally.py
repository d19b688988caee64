"""What a part of the command tried, and what came of it: a row of its table."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts of one row.

    Attributes:
        tried: how often, by kind.
        found: what came of it, in numbers that are no faults.
        wrong: what should not have happened, case by case.
    """

    tried: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def check(self, kind: str, held: bool, case: str) -> None:
        """Count one case, and note it if it did not hold."""
        self.tried[kind] += 1
        self.wrong += [] if held else [f"{kind}: {case}"]

    def row(self, what: str) -> dict[str, str]:
        """Return the row of the table."""
        found = [f"{len(self.tried)} kinds"] if len(self.tried) > 1 else []
        found += [f"{name} {count:,}" for name, count in self.found.items()]
        times, wrong = f"{self.tried.total():,}", f"{len(self.wrong)}"
        return {"tried": what, "times": times, "wrong": wrong, "found": "; ".join(found)}
