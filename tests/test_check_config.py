"""`[tool.aotcli.check]`: what may be demanded, and what is refused with which advice."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from aotcli.cli.check_config import CheckConfig, load_check_config
from aotcli.errors import AotcliError, ConfigError, InputError
from aotcli.ir.check import CheckedModel, Limit, Limits, Quantity, Structure, Tolerance

GIB = 1 << 30
ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def config(text: str) -> CheckConfig:
    Path("pyproject.toml").write_text(text)
    return load_check_config(Path.cwd())


def model(text: str) -> CheckedModel:
    (found,) = config(f'[tool.aotcli.check.models.net]\nmodel = "net.py"\n{text}').models
    return found


class TestReading:
    def test_every_key(self) -> None:
        found = model(
            """
            strategy = "mincut:aggressive=true"
            saved_bytes = { max = "2GiB", growth = "1%" }
            peak_bytes = { growth = "64 MiB" }
            recompute_flops = { max = "2.5 TFLOP", growth = 0 }
            forbid_ops = ["aten._to_copy.default", "aten.*attention*", "torch.ops.aten.mm"]
            structure = "equivalent"
            strict_env = true
            level = "aten"
            dtype = "bfloat16"
            set = { layers = 2 }
            """
        )
        assert (found.name, found.spec, found.target, found.strategy) == (
            "net",
            "net.py",
            "net.py",
            "mincut:aggressive=true",
        )
        assert found.limits == Limits(
            figures=(
                Limit(Quantity.SAVED, 2 * GIB, Tolerance(share=Fraction(1, 100))),
                Limit(Quantity.PEAK, None, Tolerance(amount=64 << 20)),
                Limit(Quantity.RECOMPUTE, 2_500_000_000_000, Tolerance()),
            ),
            forbid_ops=("aten._to_copy.default", "aten.*attention*", "aten.mm"),
            structure=Structure.EQUIVALENT,
            strict_env=True,
        )
        assert (found.settings.level, found.settings.dtype, found.settings.overrides) == (
            "aten",
            "bfloat16",
            (("layers", "2"),),
        )
        assert found.words == "net.py --set layers=2 --dtype bfloat16 --level aten"
        assert found.config == "pyproject.toml"

    @pytest.mark.parametrize(
        ("text", "tolerance"),
        [
            ('"1%"', Tolerance(share=Fraction(1, 100))),
            ('" 0.5 % "', Tolerance(share=Fraction(1, 200))),
            ("0.1", Tolerance(share=Fraction(1, 10))),
            ("0", Tolerance()),
            ("1", Tolerance(share=Fraction(1))),
            ('"150%"', Tolerance(share=Fraction(3, 2))),
            ('"512B"', Tolerance(amount=512)),
            ('"1.5 KiB"', Tolerance(amount=1536)),
        ],
    )
    def test_growth(self, text: str, tolerance: Tolerance) -> None:
        assert model(f"saved_bytes = {{ growth = {text} }}").limits.figures[0].growth == tolerance

    @pytest.mark.parametrize(
        ("text", "most"),
        [("0", 0), ("1000", 1000), ('"2.33 TFLOP"', 2_330_000_000_000), ('"1e9"', 10**9), ('"5 MFLOPs"', 5_000_000)],
    )
    def test_flops(self, text: str, most: int) -> None:
        assert model(f"recompute_flops = {{ max = {text} }}").limits.figures[0].most == most

    def test_who_demands_nothing_is_held_to_no_growth(self) -> None:
        assert model("").limits.figures == (
            Limit(Quantity.SAVED, growth=Tolerance()),
            Limit(Quantity.PEAK, growth=Tolerance()),
        )
        assert model('structure = "exact"').limits.figures == ()

    def test_strict_env_for_all_and_for_one(self) -> None:
        found = config(
            "[tool.aotcli.check]\nstrict_env = true\n[tool.aotcli.check.models]\n"
            'a = { model = "a.py" }\nb = { model = "b.py", strict_env = false }\n'
        )
        assert [each.limits.strict_env for each in found.models] == [True, False]

    def test_a_named_model_brings_its_settings_and_the_nearer_ones_win(self) -> None:
        (found,) = config(
            '[tool.aotcli]\nlevel = "aten"\nseed = 1\n'
            '[tool.aotcli.models]\nsmall = { model = "gpt.py", seed = 2, set = { layers = 2, width = 8 } }\n'
            "[tool.aotcli.check.models.small]\nset = { layers = 3 }\n"
        ).models
        assert (found.spec, found.settings.level, found.settings.seed) == ("gpt.py", "aten", 2)
        assert dict(found.settings.overrides) == {"layers": "3", "width": "8"}

    def test_paths_start_at_the_project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("pyproject.toml").write_text('[tool.aotcli.check.models.net]\nmodel = "m/net.py:small"\n')
        for folder in ("m", "deep/down"):
            Path(folder).mkdir(parents=True)
        Path("m/net.py").touch()
        monkeypatch.chdir("deep/down")
        found = load_check_config(Path.cwd())
        assert (found.models[0].spec, found.models[0].target) == ("m/net.py:small", "../../m/net.py:small")
        assert found.store.folder == tmp_path / ".aotcli"
        assert found.models[0].config == "../../pyproject.toml"

    def test_a_record(self) -> None:
        (found,) = config('[tool.aotcli.check.models.net]\nmodel = "net.aot.json"').models
        assert found.is_record

    def test_choosing(self) -> None:
        found = config('[tool.aotcli.check.models]\ngpt = { model = "a.py" }\nmlp = { model = "b.py" }\n')
        assert [each.name for each in found.choose([])] == ["gpt", "mlp"]
        assert [each.name for each in found.choose(["mlp", "mlp"])] == ["mlp"]
        with pytest.raises(InputError) as caught:
            found.choose(["gtp"])
        assert caught.value.fix == "did you mean 'gpt'?"


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "what", "fix"),
        [
            ("saved_byte = { max = '1GiB' }", "unknown key 'saved_byte'", "did you mean 'saved_bytes'?"),
            ("peak_bytes = { grow = '1%' }", "unknown key 'grow'", "did you mean 'growth'?"),
            ("saved_bytes = '2GiB'", "saved_bytes is '2GiB'", "growth"),
            ("saved_bytes = {}", "saved_bytes is {}", "growth"),
            ("saved_bytes = { max = 2147483648 }", "max is 2147483648", "correct max"),
            ("saved_bytes = { max = '2' }", "'2' is no size", "2MiB"),
            ("saved_bytes = { max = '2 bananas' }", "no size", "24MiB"),
            ("saved_bytes = { max = true }", "max is True", "correct max"),
            ("saved_bytes = { growth = 5 }", "growth is 5", '"5%"'),
            ("saved_bytes = { growth = -1 }", "growth is -1", '"0%"'),
            ("saved_bytes = { growth = nan }", "growth is nan", '"0%"'),
            ("saved_bytes = { growth = '-1%' }", "'-1%'", ""),
            ("saved_bytes = { growth = true }", "growth is True", ""),
            ("recompute_flops = { max = '2GiB' }", "max is '2GiB'", "correct max"),
            ("recompute_flops = { max = -1 }", "max is -1", "correct max"),
            ("recompute_flops = { growth = 'little' }", "growth is 'little'", "correct growth"),
            ("forbid_ops = 'aten.mm'", "forbid_ops is 'aten.mm'", "correct forbid_ops"),
            ("forbid_ops = ['mm']", "forbid_ops has 'mm'", '"aten.mm"'),
            ("forbid_ops = ['aten.mm default']", "forbid_ops has", "aten._to_copy.default"),
            ("structure = 'exakt'", "structure is 'exakt'", "did you mean 'exact'?"),
            ("structure = 1", "structure is 1", 'structure = "exact"'),
            ("structure = 'ignore'", "demands nothing", "growth"),
            ("forbid_ops = []", "demands nothing", "growth"),
            ("strict_env = 'yes'", "strict_env is 'yes'", "correct strict_env"),
            ("level = 'fx'", "--level fx", "inductor"),
            ("strategy = ['mincut']", "strategy is ['mincut']", "correct strategy"),
        ],
    )
    def test_what_is_not_understood(self, text: str, what: str, fix: str) -> None:
        with pytest.raises(ConfigError) as caught:
            model(text)
        assert what in caught.value.what
        assert fix in caught.value.fix
        assert "[tool.aotcli.check.models.net]" in caught.value.what

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("[tool.aotcli.check]\nmodel = 'a.py'", "unknown key 'model'"),
            ("[tool.aotcli]\ncheck = 'a.py'", "check is 'a.py'"),
            ("[tool.aotcli.check]\nmodels = 'a.py'", "models is 'a.py'"),
            ("[tool.aotcli.check.models]\nnet = 'a.py'", "is no table"),
            ("[tool.aotcli.check.models.net]\nstrategy = 'mincut'", "does not say which model it is"),
            ("[tool.aotcli.check.models.'../net']\nmodel = 'a.py'", "'../net' cannot name a baseline"),
            ("[tool.aotcli.check.models]\nNet = {model='a.py'}\nnet = {model='b.py'}", "would share one file"),
            ("[tool.aotcli.check.models.net]\nmodel = 'a.aot.json'\nlevel = 'aten'", "does not go with a record"),
            ("[tool.aotcli.chek.models.net]\nmodel = 'a.py'", "unknown key 'chek'"),
        ],
    )
    def test_tables(self, text: str, what: str) -> None:
        with pytest.raises(ConfigError) as caught:
            config(text)
        assert what in caught.value.what

    @pytest.mark.parametrize(
        ("text", "lines"),
        [
            (None, '[tool.aotcli.check.models.NAME]\nmodel = "model.py"'),
            ("[tool.other]", '[tool.aotcli.check.models.NAME]\nmodel = "model.py"'),
            ('[tool.aotcli]\nmodel = "m/gpt.py:big"', '[tool.aotcli.check.models.gpt]\nmodel = "m/gpt.py:big"'),
            ('[tool.aotcli.models]\nsmall = "s.py"', '[tool.aotcli.check.models.small]\nmodel = "s.py"'),
            ("[tool.aotcli.check.models]", '[tool.aotcli.check.models.NAME]\nmodel = "model.py"'),
        ],
    )
    def test_without_models_it_says_what_to_paste(self, text: str | None, lines: str) -> None:
        if text is not None:
            Path("pyproject.toml").write_text(text)
        with pytest.raises(ConfigError) as caught:
            load_check_config(Path.cwd())
        assert lines in caught.value.fix
        assert caught.value.exit_code == 2

    def test_what_is_pasted_is_read(self) -> None:
        with pytest.raises(AotcliError) as caught:
            config('[tool.aotcli]\nmodel = "net.py"')
        pasted = caught.value.fix.partition("\n")[2]
        assert config(f'[tool.aotcli]\nmodel = "net.py"\n{pasted}').names == ("net",)


def test_this_project_has_a_baseline_for_each_of_its_models_and_no_other() -> None:
    found = load_check_config(ROOT)
    assert found.store.names() == tuple(sorted(found.names))
    for name in found.names:
        baseline = found.store.read(name)
        assert baseline is not None
        assert baseline.accepted is not None
        assert baseline.accepted.model == next(each.spec for each in found.models if each.name == name)
