"""Compile SearChain, track it, load it, ask it. Swap the LM for a real one: dspy.LM("openai/gpt-4.1-mini")."""

import dspy

import questree
from questree.evaluation.tracking import Tracking
from questree.metrics import metric
from questree.optimize import Examples, optimizer
from questree.simulate import simulated_lm

task = questree.load_task("mini")
dspy.configure(lm=simulated_lm([question for split in task.questions.values() for question in split]))
index = questree.load_index(questree.build_index(task.corpus, "runs/example/index", kind="bm25", overwrite=True))

compiled = questree.compile(
    questree.program("searchain", retriever=index, max_rounds=4),
    Examples(train=task.examples("train"), dev=task.examples("dev"), task="mini"),
    metric(task.metric),
    optimizer=optimizer("bootstrap-few-shot", max_bootstrapped_demos=2),
    out="runs/example/compile",
    tracking=Tracking(uri="sqlite:///runs/example/mlflow.db"),
)
print(f"before {compiled.before}, after {compiled.after}")

program = questree.load(compiled.artifact, retriever=index)
prediction = program(question="Which river reaches the sea in the city where the author of Ulysses was born?")
print(prediction.final_content, [passage.title for passage in prediction.references], prediction.answer, sep="\n")
