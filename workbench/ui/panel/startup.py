"""The start-up form: everything that an engine is started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.attached_config import AttachedConfig
from workbench.config import EngineConfig
from workbench.engine.dtype import fitted
from workbench.errors import InputError
from workbench.i18n import marked, translate
from workbench.models import list_presets
from workbench.origin import in_pieces
from workbench.presets import presets
from workbench.simulate.hardware_setup import set_up
from workbench.simulated_config import SimulatedConfig, engine_config
from workbench.startable import hindrance
from workbench.ui.panel.controls import Control
from workbench.ui.panel.fields import choice, control, powers_of_two, suggesting
from workbench.ui.panel.parts import Drawer, Part, Text

FIRST = ("max_num_batched_tokens", "max_num_seqs", "max_model_len", "enable_prefix_caching", "scheduling_policy")
_OWN = "own"
_OFFERED: Mapping[str, tuple[int, ...]] = {
    "max_model_len": tuple(powers_of_two(1024, 131072)),
    "max_num_batched_tokens": tuple(powers_of_two(256, 131072)),
    "max_num_seqs": tuple(powers_of_two(1, 1024)),
    "tensor_parallel_size": (1, 2, 4, 8),
    "pipeline_parallel_size": (1, 2, 4, 8),
    "block_size": (16, 32, 64, 128),
    "kv_cache_mib": tuple(powers_of_two(64, 65536)),
}


LIVE, SIMULATED, ATTACHED = marked("live"), marked("simulated"), marked("attached")
_SERVER = ("url", "api_key_env", "chat", "insecure", "ca", "tokenizer", "probe")
_OF_ANY = ("model", "max_model_len", "start_timeout_s")  # fields that say something about an attached server, too
_FIRST_SERVED = marked("the first that it serves")
_URL = "http://127.0.0.1:8000/v1"
_GPUS = ("H100", "H200", "A100", "B200", "L40S", "RTX 4090", "cpu")
# Not count: that is tensor times pipeline parallel.
_HARDWARE = ("pace", "link", "step_time", "swap_gib", "swap_overlap", "kv_blocks")


class StartUpForm:
    """Controls of :class:`workbench.config.EngineConfig`, and of the hardware of a simulated engine.

    Attributes:
        parts: what to display in a :class:`~workbench.ui.panel.form.Form`.
        controls: by the field's name, one for every field of a live engine.
        engine: live, simulated or attached.
        server: by the field's name, how an attached server is reached.
        hardware: by the field's name, what only a simulated engine has.
        preset: the drop-down of presets; "own" is a configuration that is none of them.
    """

    def __init__(self, fields: Mapping[str, Any] | None = None) -> None:
        self.controls: dict[str, Control] = {
            name: suggesting(EngineConfig, name, [one.name for one in list_presets()])
            if name == "model"
            else control(EngineConfig, name, options=_OFFERED.get(name))
            for name in EngineConfig.model_fields
        }
        self._known = {one.name: one.config for one in presets().values()}
        self.preset = choice("preset", "preset", "", [*self._known, _OWN], _OWN, text=_title)
        self.engine = choice(
            "engine", "engine",
            "live: vLLM computes here. simulated: its scheduler runs in virtual time. attached: a server runs already.",
            (LIVE, SIMULATED, ATTACHED), LIVE, text=translate,
        )  # fmt: skip
        self.hardware: dict[str, Control] = {
            "gpu": suggesting(SimulatedConfig, "gpu", _GPUS),
            **{name: control(SimulatedConfig, name) for name in _HARDWARE},
        }
        self.server = {name: control(AttachedConfig, name, default=_URL if name == "url" else None) for name in _SERVER}
        self._said, self._memory = Text("start_problem", "alert"), Text("start_memory")
        self._callbacks: list[Callable[[], None]] = []
        self._disabled = False
        more = [one for name, one in self.controls.items() if name not in ("model", *FIRST)]
        hint = marked("Every other field of the engine's start")
        self.parts: tuple[Part, ...] = (
            self.controls["model"],
            self.preset,
            *(self.controls[name] for name in FIRST),
            self._memory,
            Drawer("hardware", "Simulated hardware", [self.engine, *self.hardware.values()], "Hardware that you lack"),
            Drawer("server", "Server that runs already", list(self.server.values()), "Of an attached engine"),
            Drawer("more", "More start-up fields", more, hint),
            self._said,
        )
        for one in (*self.controls.values(), *self.hardware.values(), *self.server.values()):
            one.observe(self._changed)
        self.engine.observe(self._switched)
        self.preset.observe(self._chosen)
        self.set(fields or {})

    @property
    def config(self) -> EngineConfig | None:
        """The configuration as shown, whether or not this machine can start it; none if it makes no sense."""
        return self._config

    @property
    def problem(self) -> str | None:
        """Why the engine cannot be started as shown; none if nothing speaks against it."""
        return self._problem

    @property
    def changes(self) -> Mapping[str, Any]:
        """Hot knobs to turn once the engine runs: those of the preset that is shown."""
        name = self.preset.value
        return {} if name == _OWN else presets()[name].changes

    def values(self) -> dict[str, Any]:
        """Fields that differ from the defaults, as :class:`workbench.Workbench` takes them; unchecked on a problem."""
        if self._config is not None:
            kind = {"engine": self.engine.value} if self.engine.value != LIVE else {}
            if isinstance(self._config, AttachedConfig):
                return {name: value for name, value in self._config.own.items() if value not in (None, "", False, 0)}
            return kind | self._config.model_dump(exclude_defaults=True)
        return {name: one.value for name, one in self._shown.items() if one.value != one.default}

    @property
    def fields(self) -> dict[str, Any]:
        """All fields as :meth:`workbench.Workbench.configure` takes them; none if they make no sense."""
        return {} if self._config is None else {**self._config.model_dump(), "engine": self.engine.value}

    def set(self, fields: Mapping[str, Any]) -> None:
        """Show a whole configuration: these fields, the others as by default. Nobody is told."""
        with self._said.together():
            self.engine.show(fields.get("engine", LIVE))
            for name, one in (*self.controls.items(), *self.hardware.items(), *self.server.items()):
                one.show(fields.get(name, one.default))
            self._check()

    def observe(self, callback: Callable[[], None]) -> None:
        """Call back after each change that a person makes, be it one field or a preset."""
        self._callbacks.append(callback)

    @property
    def disabled(self) -> bool:
        """Whether nothing can be changed, since an engine runs on it."""
        return self._disabled

    @disabled.setter
    def disabled(self, off: bool) -> None:
        with self._said.together():
            self._disabled = self.preset.disabled = self.engine.disabled = off
            for one in (*self.controls.values(), *self.hardware.values(), *self.server.values()):
                one.disabled = off

    def _chosen(self) -> None:
        if self.preset.value != _OWN:  # of which there is nothing to show
            self.set(presets()[self.preset.value].fields)
        else:
            self._check()
        self._tell()

    def _switched(self) -> None:
        """Another kind of engine has other defaults."""
        others: dict[str, EngineConfig] = {SIMULATED: SimulatedConfig(), ATTACHED: AttachedConfig(url=_URL)}
        other = others.get(self.engine.value)
        self.set(other.model_dump() if other is not None else {})
        self._tell()

    def _changed(self) -> None:
        self._check()
        self._tell()

    @property
    def _simulated(self) -> bool:
        return bool(self.engine.value == SIMULATED)

    @property
    def _attached(self) -> bool:
        return bool(self.engine.value == ATTACHED)

    @property
    def _shown(self) -> dict[str, Control]:
        """What the kind of engine has, by field."""
        if self._attached:
            return {"engine": self.engine, **{name: self.controls[name] for name in _OF_ANY}, **self.server}
        more = {"engine": self.engine, **self.hardware} if self._simulated else {}
        return {**self.controls, **more}

    def _tell(self) -> None:
        for callback in self._callbacks:
            callback()

    def _check(self) -> None:
        self._config, self._problem, self._memory.text = None, None, ""
        try:
            self._config = engine_config({name: one.value for name, one in self._shown.items()})
            if isinstance(self._config, SimulatedConfig):
                self._look_up(self._config)
            elif not isinstance(self._config, AttachedConfig):
                self._problem = hindrance(self._config)
        except InputError as wrong:
            self._problem = str(wrong)
        with self._said.together():
            for one in self.hardware.values():
                one.hidden = not self._simulated
            for one in self.server.values():
                one.hidden = not self._attached
            for name, one in self.controls.items():  # what it was started with is not known
                one.hidden = self._attached and name not in _OF_ANY
            self.preset.hidden = self._attached
            model = self.controls["model"]
            model.change(placeholder=_FIRST_SERVED if self._attached else model.default)
        self._said.text = self._problem
        name = _OWN
        if self._config is not None and self.engine.value == LIVE:
            shown = fitted(self._config, "cpu")  # as that of a running engine is
            name = next((name for name, config in self._known.items() if fitted(config, "cpu") == shown), _OWN)
        self.preset.show(name)
        self.preset.hint = presets()[name].description if name != _OWN else marked("Fields that are no preset.")

    def _look_up(self, config: SimulatedConfig) -> None:
        """Whether the hardware can be, and what a step of the budget needs of its memory."""
        setup = set_up(config)
        if setup.memory is not None:
            budget = config.max_num_batched_tokens
            self._memory.text = (
                f"{in_pieces(setup.label)}{translate(': ')}{setup.memory.beside(budget, budget, config.max_model_len)}"
            )


def _title(name: str) -> str:
    return presets()[name].title if name != _OWN else translate("own fields")
