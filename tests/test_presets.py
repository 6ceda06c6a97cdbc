"""Presets are whole configurations, and the article's is the article's."""

from __future__ import annotations

import pytest

from workbench.config import EngineConfig
from workbench.engine.command import serve_command
from workbench.errors import InputError
from workbench.presets import preset, presets
from workbench.workload.scenario import load_scenario


def test_names_and_texts():
    assert list(presets()) == ["laptop", "laptop-long", "thrash", "article", "vllm"]
    for name, one in presets().items():
        assert one.name == name
        assert one.title
        assert one.description.endswith(".")
        assert preset(name) is one
    titles = [one.title for one in presets().values()]
    assert len(set(titles)) == len(titles)


def test_no_two_are_the_same_configuration():
    assert len({one.config for one in presets().values()}) == len(presets())


def test_the_laptop_is_the_engine_of_the_demo():
    assert preset("laptop").config == load_scenario("chat_and_long").engine_config == EngineConfig()


def test_long_context_takes_a_whole_prompt_in_one_step():
    config = preset("laptop-long").config
    assert (config.model, config.max_model_len) == ("tiny-long", 32768)
    assert config.max_num_batched_tokens >= config.max_model_len  # else the policy monolithic is refused


def test_the_thrashing_pool_is_the_engine_of_its_scenario():
    scenario = load_scenario("thrash")
    assert preset("thrash").config == scenario.engine_config
    blocks = int(preset("thrash").config.extra_args[-1]) - 1  # one is vLLM's own
    longest = 1024 // 32
    assert longest < blocks < 8 * longest, "one request fits, eight do not"


def test_most_presets_leave_the_knobs_alone():
    turned = {name: dict(one.changes) for name, one in presets().items() if one.changes}
    assert turned == {"thrash": {"reserve_full": False}}
    for one in presets().values():
        assert one.knobs == one.config.envelope.defaults.replace(**one.changes)


def test_the_article_renders_the_exact_command():
    assert serve_command(preset("article").config) == (
        "vllm serve meta-llama/Llama-3.1-70B-Instruct --max-model-len 32768 "
        "--max-num-batched-tokens 2048 --max-num-seqs 128 --tensor-parallel-size 4 --pipeline-parallel-size 1 "
        "--block-size 16 --gpu-memory-utilization 0.9 --enable-prefix-caching --scheduling-policy fcfs"
    )


def test_an_unknown_name_is_answered_with_a_near_one():
    with pytest.raises(InputError, match="did you mean article"):
        preset("artcle")
    with pytest.raises(InputError, match=r"laptop, laptop-long, thrash, article, vllm; choose one"):
        preset("zzz")


def test_presets_cannot_be_changed():
    with pytest.raises(TypeError):
        presets()["mine"] = preset("laptop")
    with pytest.raises(TypeError):
        preset("laptop").fields["model"] = "x"
