"""One policy, one set of names: options, environment, file and the run's own."""

import re

import pytest
from typer.testing import CliRunner

from questree.cli import app
from questree.common.errors import QuestreeError
from questree.lm.limits import Limits, RunPolicy
from questree.parts import Parts
from questree.settings import RunSettings, run_settings


@pytest.fixture
def shown(monkeypatch):
    """The help text of a command, option by option."""
    monkeypatch.setenv("COLUMNS", "400")

    def read(*words):
        option = r"^│ \*? *--([\w-]+)(?: +--no-[\w-]+)?(?: +(?:<[^>]+>+|\[[^\]]*\]))* +(\S.*?) *│$"  # <float>, [x>=1]
        lines = re.findall(option, run(*words), re.MULTILINE)
        return {name.replace("-", "_"): text for name, text in lines}

    def run(*words):
        return CliRunner().invoke(app, [*words, "--help"]).output

    return read


@pytest.mark.parametrize("command", ["evaluate", "compile", "compare"])
def test_every_setting_is_an_option_that_says_what_it_does(command, shown):
    options = shown(command)
    fields = {name: field for name, field in RunSettings.model_fields.items() if name != "program"}  # an argument
    for name, field in fields.items():
        assert options[name].startswith(" ".join(field.description.split()))
        if field.default is not None:
            assert options[name].endswith(f"Default: {field.default}.")
    assert "questree.toml" in options["config"]


def test_each_command_has_the_settings_that_mean_something_to_it(shown):
    assert set(RunPolicy.model_fields) <= set(shown("attack"))
    asking = shown("ask")
    assert set(Limits.model_fields) <= set(asking)
    assert "max_calls" not in asking
    assert set(shown("simulate", "serve")) == {"host", "port", "token_file", "task", "lm", "config", "help"}


def test_what_the_user_leaves_open_has_the_policy_s_own_defaults(workplace):
    assert run_settings().policy == RunPolicy()


def test_what_the_user_names_is_the_policy(workplace, monkeypatch):
    (workplace / "questree.toml").write_text("retries = 7\nmax_failures = 0\n")
    monkeypatch.setenv("QUESTREE_DEADLINE", "120")
    monkeypatch.setenv("QUESTREE_GIVE_UP_AFTER", "9")
    settings = run_settings(window=8192, max_cost=2.5)
    named = {"retries": 7, "deadline": 120, "window": 8192}
    assert settings.policy == RunPolicy(max_failures=0, give_up_after=9, max_cost=2.5, **named)
    assert settings.limits == Limits(**named)


def test_a_served_lm_is_never_waited_for_without_end(workplace):
    lm = Parts(run_settings(lm="openai/m", api_base="http://127.0.0.1:9/v1")).lm
    assert (lm.kwargs["timeout"], lm.num_retries) == (120, 3)
    lm = Parts(run_settings(lm="openai/m", timeout=5.0, retries=0, reply_tokens=64)).lm
    assert (lm.kwargs["timeout"], lm.num_retries, lm.kwargs["max_tokens"]) == (5.0, 0, 64)


@pytest.mark.parametrize(
    ("lm", "given", "sent"),
    [
        ("openai/m", {}, 0.0),
        ("openai/m", {"temperature": 0.7}, 0.7),
        ("openai/gpt-5", {}, None),  # it takes none but its own
        ("openai/gpt-5", {"temperature": 1.0}, 1.0),
        ("openai/m", {"temperature": "none"}, None),
        ("openai/gpt-5", {"temperature": "none"}, None),
        ("anthropic/claude-opus-4-7", {}, None),  # as DSPy's list of models says
        ("simulated", {}, None),  # greedy, as at 0
        ("simulated", {"temperature": "none"}, None),
        ("simulated", {"temperature": 0.7}, 0.7),
    ],
)
def test_an_lm_decodes_greedily_unless_another_temperature_is_given(workplace, lm, given, sent):
    settings = run_settings(lm=lm, **given)
    assert Parts(settings).lm.kwargs["temperature"] == sent
    assert run_settings(**settings.model_dump(mode="json")) == settings, "as a worker of a cluster gets them"


def test_no_temperature_can_be_typed_or_named_in_a_file_or_a_variable(workplace, monkeypatch, questree):
    words = "ask What? --program direct --lm openai/m --api-base http://127.0.0.1:9/v1 --retries 0 --temperature"
    assert "127.0.0.1" in questree(words, "none").refused()
    assert "temperature" in questree(words, "warm").refused()
    monkeypatch.setenv("QUESTREE_TEMPERATURE", "none")
    assert run_settings().temperature == "none"
    assert run_settings(temperature="0.5").temperature == 0.5
    with pytest.raises(QuestreeError, match="less than or equal to 2"):
        run_settings(temperature=3)


@pytest.mark.parametrize("given", [{"temperature": 0.7}, {"reply_tokens": 64}])
def test_what_a_model_cannot_take_is_said_by_name(workplace, given):
    with pytest.raises(QuestreeError, match=r"openai/gpt-5 cannot be asked so: .*temperature=1\.0"):
        _ = Parts(run_settings(lm="openai/gpt-5", **given)).lm
    with pytest.raises(QuestreeError, match=r"claude-opus-4-7 takes no temperature\. Leave --temperature out"):
        _ = Parts(run_settings(lm="anthropic/claude-opus-4-7", temperature=0.7)).lm
