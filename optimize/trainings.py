"""The training of an LM by its provider: what can be trained, and jobs that a second run goes on with."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from threading import Thread
from typing import Any

import dspy
from dspy.clients.openai import OpenAIProvider
from dspy.clients.utils_finetune import TrainingStatus

from ..common.errors import QuestreeError
from ..evaluation.identity import digest
from ..evaluation.run_file import WritableFile
from ..lm.failure import first_line
from ..lm.guard import adapter_in_use
from ..lm.limits import RunPolicy
from ..lm.models import is_simulated

_FACT = "trainings"
LOOK = 1.0  # seconds between looks at a job, and at whether the user wants to stop


def check_trainable(policy: RunPolicy) -> None:
    """Check that the configured LM can be trained, before anything is paid."""
    lm = dspy.settings.lm
    name, provider = getattr(lm, "model", "no LM"), getattr(lm, "provider", None)
    if not getattr(provider, "finetunable", False):
        raise QuestreeError(
            f"{name} cannot be trained: DSPy knows no provider that trains it. Name a model that OpenAI trains "
            "(--lm openai/gpt-4o-mini-2024-07-18), or from Python give dspy.LM(…, provider=…) one that can. "
            "Other optimizers change the prompts alone: bootstrap-random-search."
        )
    if type(provider) is OpenAIProvider and (lm.kwargs.get("api_base") or lm.kwargs.get("base_url")):
        raise QuestreeError(
            f"{name} is asked at an address of its own, and DSPy's OpenAIProvider would send the training data to "
            "OpenAI all the same. Leave --api-base out, or from Python give dspy.LM(…, provider=…) that server's own."
        )
    if isinstance(adapter_in_use(), dspy.JSONAdapter):
        raise QuestreeError(
            "DSPy writes no training data in the form of its JSON and BAML adapters: take another one (--adapter chat)."
        )
    if policy.max_cost is not None:
        raise QuestreeError(
            "--max-cost cannot be held: no provider says beforehand what a training costs. Give --max-calls or "
            "--max-tokens, which bound all else, and a limit of the provider's for the training."
        )


class Trainings:
    """The trainings of a compilation. None is begun twice: a second run waits for the job, or takes its model.

    Args:
        file: of the compilation, where they are kept by what is trained on what; None keeps them in memory.
        may_begin: raises an error if nothing may be paid any more.
    """

    def __init__(self, file: WritableFile | None = None, may_begin: Callable[[], None] = lambda: None):
        self._file, self._may_begin = file, may_begin
        kept: dict[str, dict[str, Any]] = (file.fact(_FACT) if file else None) or {}
        self._jobs, self._models = kept.get("jobs", {}), kept.get("models", {})

    def gave(self, model: str) -> bool:
        """Return whether a training gave a model of this name."""
        return model in self._models.values()

    def train(self, lm: dspy.LM, data: list[dict[str, Any]], form: Any, how: dict[str, Any]) -> dspy.LM:
        """Return the LM trained on the data; what was trained so before is not trained again.

        Args:
            how: what the provider may be told; the LM's own ``train_kwargs`` where empty.

        Raises:
            QuestreeError: if the provider does not train it.
            KeyboardInterrupt: on Ctrl-C; its message says what becomes of the job.
        """
        key = digest([str(lm.model), data, how])
        if key not in self._models:
            lm.kill()  # one in this machine's memory leaves it to the training
            self._models[key] = _name(self._model(key, lm, data, form, how), lm)
            self._keep()
        return lm.copy(model=self._models[key])

    def _model(self, key: str, lm: dspy.LM, data: list[dict[str, Any]], form: Any, how: dict[str, Any]) -> str:
        """Return the name that the provider gives to what it trains, or has begun to train in another process."""
        provider, model, how = lm.provider, lm.finetuning_model or lm.model, how or lm.train_kwargs
        job = provider.TrainingJob(model=model, train_data=data, train_data_format=form, train_kwargs=how)
        known = self._jobs.get(key) if hasattr(provider, "wait_for_job") else None
        if known is None:
            self._may_begin()
        else:
            job.provider_job_id = known

        def train() -> None:
            """Let the job, which is a future, tell how the training ended."""
            try:
                if known is None:
                    job.set_result(provider.finetune(job, model, data, form, how))
                else:
                    provider.wait_for_job(job)
                    job.set_result(provider.get_trained_model(job))
            except Exception as error:
                job.set_exception(error)

        # DSPy's own thread would keep the process from ending before the training does
        Thread(target=train, daemon=True).start()
        try:
            while not wait([job], timeout=LOOK).done:
                self._note(key, _id(job))  # at once, as this process may be killed
            return str(job.result())
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"The provider goes on with the training, its job {_id(job)}: the same command waits for it."
                if self._note(key, _id(job))
                else "The training had no name at its provider, so that the same command trains anew."
            ) from None
        except Exception as error:
            if self._note(key, _id(job) if _may_go_on(job) else None):
                raise QuestreeError(
                    f"Lost sight of the training of {model}, the provider's job {_id(job)}: {first_line(error)}. "
                    "Run the same again: it waits for that job, and begins no other."
                ) from error
            raise QuestreeError(
                f"{model} was not trained: {first_line(error)}. What was asked is kept; run the same again to train "
                "it anew, or ask its provider why."
            ) from error

    def _note(self, key: str, job: str | None) -> str | None:
        """Keep the provider's name of a job, and return it."""
        if self._jobs.get(key) != job:
            self._jobs[key] = job
            self._keep()
        return job

    def _keep(self) -> None:
        if self._file is not None:
            self._file.set_fact(_FACT, {"jobs": self._jobs, "models": self._models})


def _id(job: Any) -> str | None:
    """Return the name by which the provider knows the job, as DSPy's OpenAIProvider notes it; None without one."""
    return getattr(job, "provider_job_id", None)


def _may_go_on(job: Any) -> bool:
    """Return whether the provider may still be training, or be done: unless it says that the job failed."""
    if _id(job) is None:
        return False
    try:
        return job.status() not in (TrainingStatus.failed, TrainingStatus.cancelled)
    except Exception:  # it cannot be asked now
        return True


def _name(model: str, lm: dspy.LM) -> str:
    """Return the name that DSPy asks a trained model by: with the provider's name; what is simulated stays marked."""
    provider, slash, _ = str(lm.model).partition("/")
    named = model.startswith(f"{provider}/") or ("/" in model and not is_simulated(lm))
    return model if named or not slash else f"{provider}/{model}"
