"""`[tool.aotcli]`: what it may say, what is refused, and which model a command without MODEL means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aotcli.cli.config import load_config
from aotcli.cli.default_model import choose_model
from aotcli.cli.options import GivenCapture
from aotcli.cli.target import capture_settings, find_target, given_words, is_record
from aotcli.errors import ConfigError, InputError

NOTHING = GivenCapture()


def project(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a cache of its own, outside any project and any CI."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CI", raising=False)


class TestReading:
    def test_without_a_file_all_is_default(self, tmp_path: Path) -> None:
        config = load_config(tmp_path)
        assert (config.path, config.model, dict(config.models)) == (None, None, {})

    def test_every_key(self, tmp_path: Path) -> None:
        text = """
            [tool.aotcli]
            model = "m.py"
            strategy = ["mincut", "save-all"]
            level = "aten"
            device = "cpu"
            dtype = "bfloat16"
            autocast = "float16"
            tensors = "real"
            seed = 3
            dynamic = true
            train = false
            loss = false
            cache = false
            with-source = true
            anonymize = true
            input = "f32[2]"
            set = { layers = 4, tied = true }
            [tool.aotcli.models]
            a = "a.py"
            b = { model = "b.py", level = "inductor" }
        """
        config = load_config(project(tmp_path, text))
        assert config.strategies == ("mincut", "save-all")
        assert config.models["a"].spec == "a.py"
        assert config.models["b"].capture == {"level": "inductor"}
        settings = capture_settings(GivenCapture(**config.capture))
        assert (settings.level, settings.dtype, settings.autocast) == ("aten", "bfloat16", "float16")
        assert (settings.tensors, settings.seed, settings.dynamic) == ("real", 3, True)
        assert (settings.train, settings.loss) == (False, False)
        assert settings.inputs == ("f32[2]",)
        assert settings.overrides == (("layers", "4"), ("tied", "true"))
        assert settings.with_source
        assert settings.anonymize

    def test_the_nearest_file_with_a_table_counts(self, tmp_path: Path) -> None:
        project(tmp_path, '[tool.aotcli]\nmodel = "far.py"')
        near = tmp_path / "a" / "b"
        near.mkdir(parents=True)
        assert load_config(near).model == "far.py"
        project(tmp_path / "a", "[tool.other]\nx = 1")
        assert load_config(near).model == "far.py"
        project(near, '[tool.aotcli]\nmodel = "near.py"')
        assert load_config(near).model == "near.py"

    @pytest.mark.parametrize(
        ("text", "what", "fix"),
        [
            ("[tool.aotcli]\nmodle = 'm.py'", "unknown key 'modle'", "did you mean 'model'?"),
            ("[tool.aotcli]\nstratgy = 'mincut'", "unknown key 'stratgy'", "did you mean 'strategy'?"),
            ("[tool.aotcli]\nzzz = 1", "unknown key 'zzz'", "remove 'zzz'"),
            ("[tool.aotcli]\nmodel = 3", "model is 3", "correct model"),
            ("[tool.aotcli]\nseed = true", "seed is True", "correct seed"),
            ("[tool.aotcli]\nseed = '1'", "seed is '1'", "correct seed"),
            ("[tool.aotcli]\ninput = [1]", "input is [1]", "correct input"),
            ("[tool.aotcli]\nmodels = 'm.py'", "models is 'm.py'", "correct models"),
            ("[tool.aotcli.models]\na = 1", "a does not say which model", "write a ="),
            ("[tool.aotcli.models]\na = {model='m.py', levle='aten'}", "unknown key 'levle'", "did you mean 'level'?"),
            ("[tool]\naotcli = 1", "tool.aotcli is no table", "write [tool.aotcli]"),
            ("[tool.aotcli\n", "is no valid TOML", "correct it"),
        ],
    )
    def test_what_is_not_understood_is_refused(self, tmp_path: Path, text: str, what: str, fix: str) -> None:
        with pytest.raises(ConfigError) as caught:
            load_config(project(tmp_path, text))
        assert what in caught.value.what
        assert fix in caught.value.fix
        assert str(tmp_path) in caught.value.what


class TestPrecedence:
    def test_command_line_over_entry_over_table_over_defaults(self, tmp_path: Path) -> None:
        text = """
            [tool.aotcli]
            level = "aten"
            seed = 1
            dtype = "bfloat16"
            set = { a = 1, b = 1, c = 1 }
            [tool.aotcli.models]
            small = { model = "m.py", seed = 2, dtype = "float16", set = { b = 2, c = 2 } }
        """
        project(tmp_path, text)
        given = GivenCapture(dtype="float64", overrides=("c=3",))
        target = find_target("small", given, lambda note: None)
        assert (target.settings.level, target.settings.seed, target.settings.dtype) == ("aten", 2, "float64")
        assert dict(target.settings.overrides) == {"a": "1", "b": "2", "c": "3"}
        assert target.settings.tensors == "auto"

    def test_no_cache(self, tmp_path: Path) -> None:
        project(tmp_path, "[tool.aotcli]\ncache = false")
        assert not find_target("m.py", NOTHING, lambda note: None).cache
        assert find_target("m.py", GivenCapture(cache=True), lambda note: None).cache


class TestWithoutModel:
    def test_the_projects_model(self, tmp_path: Path) -> None:
        project(tmp_path, '[tool.aotcli]\nmodel = "m.py"')
        spec, _, note = choose_model(None, load_config(tmp_path), NOTHING)
        assert spec == "m.py"
        assert note.startswith("model: m.py (pyproject.toml of ")

    def test_the_projects_model_seen_from_a_subfolder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        project(tmp_path, '[tool.aotcli]\nmodel = "sub/m.py:net"')
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "m.py").touch()
        monkeypatch.chdir(tmp_path / "sub")
        spec, _, _ = choose_model(None, load_config(Path.cwd()), NOTHING)
        path, _, name = spec.partition(":")
        assert Path(path).resolve() == tmp_path / "sub" / "m.py"
        assert name == "net"

    def test_a_model_by_the_name_of_an_entry(self, tmp_path: Path) -> None:
        project(tmp_path, '[tool.aotcli]\nmodel = "b"\n[tool.aotcli.models]\na = "a.py"\nb = "b.py"')
        assert choose_model(None, load_config(tmp_path), NOTHING)[0] == "b.py"

    def test_the_only_entry(self, tmp_path: Path) -> None:
        project(tmp_path, '[tool.aotcli.models]\nonly = { model = "m.py", level = "aten" }')
        spec, given, _ = choose_model(None, load_config(tmp_path), NOTHING)
        assert (spec, given.level) == ("m.py", "aten")

    def test_several_entries_are_named(self, tmp_path: Path) -> None:
        project(tmp_path, '[tool.aotcli.models]\na = "a.py"\nb = "b.py"')
        with pytest.raises(InputError) as caught:
            choose_model(None, load_config(tmp_path), NOTHING)
        assert "a, b" in caught.value.why
        assert "aotcli partition a" in caught.value.fix

    def test_nothing_to_choose(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            choose_model(None, load_config(tmp_path), NOTHING)
        assert caught.value.exit_code == 2
        assert str(tmp_path) in caught.value.why
        assert "no model was traced here before" in caught.value.why
        assert '[tool.aotcli]\nmodel = "model.py"' in caught.value.fix

    def test_nothing_to_choose_offers_a_file_that_would_work(self, tmp_path: Path) -> None:
        (tmp_path / "other.py").write_text("x = 1\n")
        (tmp_path / "net.py").write_text("def model():\n    ...\n\ninputs = ()\n")
        with pytest.raises(InputError) as caught:
            choose_model(None, load_config(tmp_path), NOTHING)
        assert caught.value.fix.startswith("aotcli partition net.py --strategy mincut\n")
        assert 'model = "net.py"' in caught.value.fix


class TestTheLastModel:
    def remember(self, spec: str, given: GivenCapture = NOTHING) -> None:
        from aotcli.cli.last_model import remember

        remember(find_target(spec, given, lambda note: None))

    def test_it_is_used_and_named(self, tmp_path: Path) -> None:
        (tmp_path / "m.py").touch()
        self.remember("m.py", GivenCapture(level="aten", overrides=("layers=2",)))
        spec, given, note = choose_model(None, load_config(tmp_path), GivenCapture(overrides=("width=8",)))
        assert (spec, given.level, given.overrides) == ("m.py", "aten", ("layers=2", "width=8"))
        assert note == "model: m.py (last traced just now)"

    def test_not_in_ci(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "m.py").touch()
        self.remember("m.py")
        monkeypatch.setenv("CI", "true")
        with pytest.raises(InputError, match="no MODEL"):
            choose_model(None, load_config(tmp_path), NOTHING)

    def test_not_where_its_file_is_gone(self, tmp_path: Path) -> None:
        (tmp_path / "m.py").touch()
        self.remember("m.py")
        (tmp_path / "m.py").unlink()
        with pytest.raises(InputError, match="no MODEL"):
            choose_model(None, load_config(tmp_path), NOTHING)

    def test_not_in_another_project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            project(tmp_path / name, "")
            (tmp_path / name / "m.py").touch()
        monkeypatch.chdir(tmp_path / "one")
        self.remember("m.py")
        monkeypatch.chdir(tmp_path / "two")
        with pytest.raises(InputError, match="no MODEL"):
            choose_model(None, load_config(Path.cwd()), NOTHING)

    def test_a_damaged_note_is_no_note(self, tmp_path: Path) -> None:
        (tmp_path / "m.py").touch()
        self.remember("m.py")
        (note,) = (tmp_path / "cache").rglob("last/*.json")
        note.write_text("{")
        with pytest.raises(InputError, match="no MODEL"):
            choose_model(None, load_config(tmp_path), NOTHING)


class TestTargets:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("gpt.aot.json", True),
            ("gpt.aot.json.gz", True),
            ("a/b.json", True),
            ("-", True),
            ("model.py", False),
            ("model.py:net", False),
            ("hf:config.json", False),
            ("hf:configs/llama.json", False),
            ("package.module:net", False),
        ],
    )
    def test_records_and_models_are_told_apart(self, text: str, expected: bool) -> None:
        assert is_record(text) is expected

    @pytest.mark.parametrize(
        "given",
        [GivenCapture(level="aten"), GivenCapture(overrides=("a=1",)), GivenCapture(train=True)],
    )
    def test_a_record_takes_no_capture_options(self, given: GivenCapture) -> None:
        with pytest.raises(InputError, match="does not go with a record"):
            find_target("gpt.aot.json", given, lambda note: None)

    def test_options_as_typed(self) -> None:
        given = GivenCapture(
            inputs=("f32[2]",), overrides=("a=1",), level="aten", train=False, loss=False, dynamic=True
        )
        assert given_words(given) == [
            *("--input", "f32[2]", "--set", "a=1", "--level", "aten"),
            *("--dynamic", "--eval", "--no-loss"),
        ]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (GivenCapture(level="atne"), "did you mean --level aten?"),
            (GivenCapture(tensors="fak"), "did you mean --tensors fake?"),
            (GivenCapture(overrides=("layers",)), "write --set layers=4"),
        ],
    )
    def test_options_that_do_not_parse(self, given: GivenCapture, message: str) -> None:
        with pytest.raises(InputError) as caught:
            capture_settings(given)
        assert message in caught.value.fix


def test_tests_run_outside_ci() -> None:
    assert "CI" not in os.environ
