"""Write the bundled set's annotated steps as questions with their passage, to train or calibrate a reader on.

python examples/reading_questions.py reading.jsonl
"""

import json
import sys
from pathlib import Path

import questree

task = questree.load_task("mini")
assert task.corpus is not None
passages = {row["title"]: row for row in map(json.loads, task.corpus.read_text(encoding="utf-8").splitlines())}
questions = [question for split in ("train", "dev") for question in task.split(split)]
steps = {step.question: step for question in questions for step in question.resolved_steps() if step.support_title}
lines = [
    {
        "id": f"step-{number}",
        "question": step.question,
        "answers": [step.answer],
        "paragraphs": [{**passages[step.support_title], "is_supporting": True}],
    }
    for number, step in enumerate(steps.values())
]
out = Path(sys.argv[1] if len(sys.argv) > 1 else "reading.jsonl")
out.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
print(f"{out}: {len(lines)} questions, each with the passage that answers it")
