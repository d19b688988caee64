"""One policy, one set of names: options, environment, file and the run's own."""

from __future__ import annotations

import pytest
import typer

from questree.cli.options import BUDGET, SHARED
from questree.lm.policy import RunPolicy
from questree.parts import build_lm, build_policy
from questree.settings import RunSettings, run_settings

OF_THE_USER = set(RunPolicy.model_fields) - {"hopeless_after"}


def test_every_bound_of_a_run_is_a_setting_and_an_option():
    assert set(RunSettings.model_fields) >= OF_THE_USER
    assert set(SHARED) >= OF_THE_USER
    assert set(BUDGET) <= OF_THE_USER


def test_what_the_user_leaves_open_has_the_policy_s_own_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert build_policy(run_settings()) == RunPolicy()


def test_what_the_user_names_is_the_policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "questree.toml").write_text("retries = 7\nmax_failures = 0\n")
    monkeypatch.setenv("QUESTREE_DEADLINE", "120")
    policy = build_policy(run_settings(window=8192, max_cost=2.5))
    assert policy == RunPolicy(retries=7, max_failures=0, deadline=120, window=8192, max_cost=2.5)


def test_a_served_lm_is_never_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lm = build_lm(run_settings(lm="openai/m", api_base="http://127.0.0.1:9/v1"))
    assert (lm.kwargs["timeout"], lm.num_retries) == (120, 3)
    lm = build_lm(run_settings(lm="openai/m", timeout=5.0, retries=0, reply_tokens=64))
    assert (lm.kwargs["timeout"], lm.num_retries, lm.kwargs["max_tokens"]) == (5.0, 0, 64)


@pytest.mark.parametrize("name", sorted(OF_THE_USER))
def test_options_say_what_they_do(name):
    (option,) = [one for one in SHARED[name].__metadata__ if isinstance(one, typer.models.OptionInfo)]
    assert option.help
