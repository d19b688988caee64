"""Settings from options, environment and file, in that order."""

import pytest

from questree.cli.options import named_values
from questree.common.errors import QuestreeError
from questree.parts import Parts
from questree.settings import run_settings


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("QUESTREE_TRACKING_URI")


def test_options_go_before_the_environment_and_that_before_the_file(tmp_path, monkeypatch):
    (tmp_path / "questree.toml").write_text('task = "file"\nseed = 1\nlimit = 1\n')
    monkeypatch.setenv("QUESTREE_SEED", "2")
    monkeypatch.setenv("QUESTREE_LIMIT", "2")
    settings = run_settings(limit=3, task=None)
    assert (settings.task, settings.seed, settings.limit) == ("file", 2, 3)


def test_a_named_file_is_taken_instead_of_the_one_in_the_folder(tmp_path):
    (tmp_path / "questree.toml").write_text("seed = 1\n")
    (tmp_path / "other.toml").write_text("seed = 2\n")
    assert run_settings(tmp_path / "other.toml").seed == 2


ACTING = [
    *((part, "evilmod:make") for part in ("program", "task", "retriever", "reader", "duplicates", "allow_code")),
    ("retriever", "bm25+evilmod:make"),
    *(("retriever", address) for address in ("http://evil.example:80", "qdrant://evil.example:80/passages")),
    ("tracking_uri", "http://evil.example"),
    ("api_base", "http://evil.example/v1"),
    ("lm", "openai/theirs"),
]


@pytest.mark.parametrize(("key", "value"), ACTING)
def test_a_file_that_nobody_named_acts_only_with_consent(tmp_path, monkeypatch, key, value):
    file = tmp_path / "questree.toml"
    file.write_text(f"{key} = {value!r}\n")
    refused = pytest.raises(QuestreeError, match=rf"questree\.toml.* sets {key}: .*--config questree\.toml")
    with refused:
        run_settings()
    assert getattr(run_settings(**{key: "simulated"}), key) == "simulated"  # what is typed goes before it
    assert getattr(run_settings(file, **{key: "simulated"}), key) == "simulated"
    assert getattr(run_settings(), key) == value  # that it was named is remembered
    (tmp_path / "copy").mkdir()
    file.rename(tmp_path / "copy" / "questree.toml")
    with monkeypatch.context() as elsewhere, refused:
        elsewhere.chdir(tmp_path / "copy")
        run_settings()
    file.write_text(f"{key} = {value!r} # changed\n")
    with refused:
        run_settings()


def test_a_command_says_what_a_file_of_the_folder_sets(tmp_path, caplog, monkeypatch):
    (tmp_path / "questree.toml").write_text("seed = 1\nlimit = 2\nretries = 3\n")
    monkeypatch.setenv("QUESTREE_LIMIT", "9")
    run_settings(retries=0)
    run_settings(retries=0)
    assert caplog.messages == ["questree.toml of this folder sets seed."]
    run_settings(tmp_path / "questree.toml")
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [("lmm = 'x'\n", "unknown settings lmm"), ("lm =", "no TOML file"), ("limit = 0\n", "limit: Input should be")],
)
def test_a_faulty_file_is_named_with_what_is_wrong(tmp_path, content, said):
    (tmp_path / "questree.toml").write_text(content)
    with pytest.raises(QuestreeError, match=said):
        run_settings()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(QuestreeError, match="nowhere"):
        run_settings(tmp_path / "nowhere.toml")


def test_a_variable_with_nearly_the_name_of_a_setting_is_told_of(monkeypatch, caplog):
    for name in ("QUESTREE_MAX_COTS", "QUESTREE_TOKEN", "QUESTREE_CACHE", "QUESTREE_DATA", "QUESTREE_LIMIT"):
        monkeypatch.setenv(name, "1")
    run_settings()
    [said] = caplog.messages
    assert "QUESTREE_MAX_COTS is no setting" in said
    assert "'max_cost'" in said


def test_an_address_without_the_name_of_an_lm_is_no_rehearsal():
    with pytest.raises(QuestreeError, match="--lm openai/MODEL"):
        _ = Parts(run_settings(api_base="http://127.0.0.1:8000/v1")).lm
    assert Parts(run_settings(api_base="http://127.0.0.1:8000/v1", lm="simulated")).lm


def test_a_setting_of_a_program_that_is_given_twice_is_refused():
    assert named_values(["k=1", "max-rounds=2"], "--set") == {"k": 1, "max_rounds": 2}
    with pytest.raises(QuestreeError, match="--set max_rounds is given twice"):
        named_values(["max-rounds=1", "max_rounds=2"], "--set")
