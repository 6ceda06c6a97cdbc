"""Errors that people meet most: Chinese where Chinese is spoken, and English as they are kept."""

import json

import pytest

from workbench import cli
from workbench.config import EngineConfig, Envelope, Knobs, parse
from workbench.engine.failures import explain
from workbench.errors import EngineError, EngineStartError, InputError, WorkbenchError
from workbench.i18n import phrase, speaking, told_error
from workbench.knob_options import single_knobs
from workbench.learn.checks import as_number
from workbench.models import resolve_model
from workbench.session import Workbench
from workbench.workload.scenario import load_scenario

FITS = Envelope(max_budget=8192, max_chunk=4096, max_running=16)
MANY = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB"


def no_engine(tmp_path):
    Workbench(model="smollm2", runs=tmp_path).run("chat_and_long")


def no_run(tmp_path):
    Workbench.open(tmp_path / "none")


def no_model(tmp_path):
    resolve_model("smollm-2", offline=True)


def above_the_ceiling(tmp_path):
    FITS.check(Knobs(budget=9000, chunk=0, max_running=16))


def a_clash(tmp_path):
    FITS.check(Knobs(budget=8, chunk=0, max_running=16))


def no_scenario(tmp_path):
    load_scenario("chat_and_lnog")


def a_wrong_scenario(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nstreams: [\n")
    load_scenario(file)


def a_key_twice(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nname: yours\n")
    load_scenario(file)


def a_wrong_field(tmp_path):
    parse(EngineConfig, {"max_num_seqs": "many"})


def an_unknown_knob(tmp_path):
    single_knobs(["budgt=64"])


def no_number(tmp_path):
    as_number("much", phrase("exercise {place}", place=1))


CASES = [
    (
        no_engine,
        "run: got a workload while the engine is new, expected ready; start it first",
        "run：收到负载，但引擎状态为“尚未启动”，应为“就绪”；请先启动引擎",
    ),
    (
        above_the_ceiling,
        "budget: got '9000', expected at most 8192 (the start-up max_num_batched_tokens); choose 8192 or less, or "
        "start again with max_num_batched_tokens=9000",
        "budget：得到“9000”，应为：至多 8192（启动参数 max_num_batched_tokens）；请取 8192 或更小，或以 "
        "max_num_batched_tokens=9000 重新启动",
    ),
    (
        a_clash,
        "budget and max_running: got '8 < 16', expected a budget of at least one token per running request; raise "
        "budget to 16 or lower max_running",
        "budget 与 max_running：得到“8 < 16”，应为：token 预算至少为每个运行中的请求一个 token；请把 budget 提高到 "
        "16，或降低 max_running",
    ),
    (
        no_model,
        "model: got 'smollm-2', expected a preset (smollm2, tiny-long), a folder, or a hub id such as org/name; did "
        "you mean smollm2?",
        "model：得到“smollm-2”，应为：预设（smollm2, tiny-long）、目录，或形如 org/name 的 hub id；是否想写 smollm2？",
    ),
    (
        a_wrong_field,
        "max_num_seqs: got 'many', expected a whole number; correct it",
        "max_num_seqs：得到“many”，应为：一个整数；请改正",
    ),
    (
        no_number,
        "exercise 1: got 'much', expected a number; write one, such as 12 or 0.5",
        "练习 1：得到“much”，应为：一个数；请写一个数，例如 12 或 0.5",
    ),
]


def raised(cause, tmp_path):
    with pytest.raises(WorkbenchError) as error:
        cause(tmp_path)
    return error.value


@pytest.mark.parametrize(("cause", "english", "chinese"), CASES)
def test_an_error_is_told_in_chinese_and_kept_in_english(cause, english, chinese, tmp_path):
    with speaking("zh"):
        error = raised(cause, tmp_path)
        assert told_error(error) == chinese
        assert str(error) == english
    with speaking("en"):
        assert told_error(error) == english
    assert json.loads(json.dumps([str(error)])) == [english]


@pytest.mark.parametrize(
    ("cause", "begins", "ends"),
    [
        (no_run, "运行目录：得到“", "应为：存在的目录；见 `workbench runs list`，或给出含 run.json 的目录"),
        (no_scenario, "场景：得到“chat_and_lnog”，应为：", " 之一；是否想写 chat_and_long？"),
        (
            a_key_twice,
            "",
            "mine.yaml 第 2 行第 1 列：得到“name: yours”，应为：有效的 YAML；请去掉一个 name，它在这里出现了两次",
        ),
        (an_unknown_knob, "--knob：得到“budgt”，应为：budget, chunk, max_running, ", " 之一；是否想写 budget？"),
    ],
)
def test_an_error_with_a_path_or_a_list_in_it_is_told(cause, begins, ends, tmp_path):
    with speaking("zh"):
        said = told_error(raised(cause, tmp_path))
    assert said.startswith(begins)
    assert said.endswith(ends)


def test_what_a_library_said_of_a_file_leaves_the_line_in_english(tmp_path):
    error = raised(a_wrong_scenario, tmp_path)
    with speaking("zh"):
        assert told_error(error) == str(error)


@pytest.mark.parametrize(("expected", "fix"), [("plain", phrase("correct it")), (phrase("a number"), "plain")])
def test_a_line_is_never_half_in_chinese(expected, fix):
    error = InputError("x", 3, expected, fix)
    with speaking("zh"):
        assert told_error(error) == str(error)


def test_others_are_told_with_their_type():
    with speaking("zh"):
        assert told_error(ValueError("x\ny")) == "ValueError: x y"
        assert told_error(EngineError("play: got a,\n expected b")) == "play: got a, expected b"


def test_no_secret_comes_back_in_another_language():
    error = InputError("url", "http://me:hunter22@host/v1", phrase("a value"), phrase("correct it"))
    with speaking("zh"):
        assert "hunter22" not in told_error(error)
        assert "hunter22" not in told_error(EngineError(phrase("{detail}; see the log", detail="http://me:hunter22@h")))


def test_the_cause_of_a_start_that_failed_is_told():
    error = EngineStartError(phrase("engine start: {cause}", cause=explain(f"RuntimeError: {MANY}", 1)))
    with speaking("zh"):
        assert told_error(error) == (
            "引擎启动：设备内存不足（Tried to allocate 2.00 GiB）；请降低 gpu_memory_utilization、kv_cache_mib 或 "
            "max_num_batched_tokens，或换更小的模型"
        )
        assert told_error(EngineStartError(explain("MemoryError", 1))) == (
            "主机内存不足；请降低 kv_cache_mib、max_model_len 或 max_num_batched_tokens，或换更小的模型"
        )
    assert error.cause.startswith("engine start: out of device memory (Tried to allocate 2.00 GiB); lower gpu_memory")


def test_a_language_that_there_is_not_is_refused_in_english(monkeypatch):
    monkeypatch.setenv("WORKBENCH_LANG", "klingon")
    assert (
        told_error(InputError("x", 3, phrase("a number"), phrase("correct it")))
        == "x: got '3', expected a number; correct it"
    )


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["runn"], "命令：得到“runn”，应为：demo, run, sweep, "),
        (["run", "chat_and_lnog"], "是否想写 chat_and_long？"),
        (["run", "chat_and_long", "--budget", "9000"], "请取 8192 或更小，或加上 --set max_num_batched_tokens=9000"),
        (["run", "chat_and_long", "--budget", "many"], "--budget：得到“many”，应为：一个整数；见 workbench run --help"),
        (["run"], "得到“无”，应为：一个值；见 workbench run --help"),
    ],
)
def test_the_command_line_speaks_chinese(argv, line, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("WORKBENCH_LANG", "zh")
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["workbench", *argv])
    with pytest.raises(SystemExit) as left:
        cli.main()
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert line in said
    assert said.count("\n") == 1
