"""LM calls: guarded, fitted to the window, retried, counted and limited.

From a step of a program to the run file, a call passes these files:

1. `call.py`: `call` looks at the limits and the time that is left (`limits.py`) and begins its requests, with the
   options that the LM takes (`options.py`).
2. `window.py` drops passages that do not fit, `guard.py` neutralises what is sent, `adapters.py` writes the prompt.
3. `episode.py`: `begin_step` opens a step. In a replay it brings the stored outcome, which `replies.py` gives to DSPy.
4. `spent.py`: a `Meter` measures the request; the open `Account` (`account.py`) has it on the disk before it is sent.
5. DSPy asks the LM: its cache (`kept_replies.py`), or our connection (`transport.py`).
6. `adapters.py`, with `thoughts.py` and `repairs.py`, reads the reply; `replies.py` says how it ended.
7. `episode.py`: `end_step` adds the step with its outcome and its cost. `evaluation.kept_run` writes a question's steps
   into the run file, beside its record.
8. `failure.py` names the cause of an error, and `retries.py` waits before the next request.

`progress.py` tells listeners of each call, and `parallel.py` runs calls at the same time and ends those that are late.

A budget is looked at between questions (`evaluation.run`, `RunPolicy.over_budget`), and before each request while a
program is compiled (`optimize.budget`).

The limits, the deadline, the account and the listener of all this stand in one `Scope` (`scope.py`).
"""
