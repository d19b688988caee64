"""questree recheck"""

from pathlib import Path
from shlex import quote
from typing import Annotated

from ..settings import RunSettings
from . import options
from .screen import echo, print_json


def recheck(
    # changed signatures are what is looked at
    settings: Annotated[RunSettings, "- split limit leave_out TRACKING CLUSTER allow_changed_signatures"],
    artifact: str,
    as_json: options.AsJson = False,
) -> None:
    """Ask a compiled program its dev questions again, after an upgrade of DSPy, of the model or of the prompts.

    Show the score then and now, their paired difference, and the prompts that changed.

    Args:
        artifact: The folder `program` that `questree compile` wrote.
    """
    from ..evaluation.identity import digest, run_identity, versions
    from ..experiment import Experiment
    from ..optimize.recheck import recheck as rechecked
    from ..programs.prompts import rendered_prompts
    from .progress import progress_bars
    from .report import print_recheck

    experiment = Experiment(settings)
    with progress_bars(as_json) as bars:
        experiment.use_lm()
        program = experiment.compiled(artifact, allow_changed_signatures=True)
        # answers of another version are not gone on with, whatever the user names the folder
        sent = [prompt.text for prompt in rendered_prompts(program)]
        out = experiment.folder("recheck", program.name)
        out /= digest([run_identity(program, task=artifact), versions(), sent])[:8]
        found = rechecked(
            Path(artifact), program, out=out, seed=settings.seed, policy=settings.policy, on_progress=bars.questions
        )
    if as_json:
        changed = {"prompts": found.prompts, "signatures": found.signatures, "versions": found.versions}
        print_json({**found.figures(), **changed})
        return
    print_recheck(found)
    echo(f"each question: questree show {quote(str(out))}")
