"""C8: the article's six values, in the command and in what vLLM makes of it."""

from workbench.claims import reference_command, resolve, stand_in, stock
from workbench.claims.reference_command import ARTICLE
from workbench.config import EngineConfig
from workbench.presets import preset

RIGHT = dict(ARTICLE.values())


def test_holds_when_all_six_come_back():
    verdict = reference_command(preset("article").config, RIGHT, "resolved by vLLM")
    assert verdict.outcome == "holds"
    assert verdict.sentence == "6 of 6 values stand in the command and are what vLLM resolves it to."
    # 4 * 0.9 * 80 GB - 2 * 70,553,706,496 B = 146.9 GB; 2 * 2 * 80 * 1024 bytes a token
    assert "at most 448,281 tokens of KV" in verdict.arithmetic
    assert "13.7 prompts of full length" in verdict.arithmetic


def test_in_part_when_vllm_makes_something_else_of_one():
    verdict = reference_command(preset("article").config, RIGHT | {"block_size": 128}, "x")
    assert verdict.outcome == "holds in part"
    assert "--block-size: the article's 16, in the command 16, resolved to 128" in verdict.sentence


def test_in_part_when_the_preset_is_another():
    verdict = reference_command(preset("article").config.replace(max_num_seqs=64), RIGHT | {"max_num_seqs": 64}, "x")
    assert verdict.outcome == "holds in part"
    assert "5 of 6" in verdict.sentence


def test_does_not_hold_when_none_is_there():
    config = EngineConfig(max_model_len=4096, max_num_batched_tokens=512)
    verdict = reference_command(config, {}, "x")
    assert verdict.outcome == "does not hold here"
    assert "0 of 6" in verdict.sentence
    assert "do not fit on 1 H100 SXMs" in verdict.arithmetic


def test_vllm_itself_resolves_the_article_and_its_own_defaults():
    defaults, article = resolve(stock(), stand_in(preset("article").config))
    assert {name: article[name] for name in RIGHT} == RIGHT
    assert defaults["enable_chunked_prefill"] is True
    assert defaults["long_prefill_token_threshold"] == 0
