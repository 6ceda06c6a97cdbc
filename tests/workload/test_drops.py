"""Dropped prompts: of the length asked for, each unlike all before."""

import pytest

from workbench.errors import InputError
from workbench.workload.drops import Drops


@pytest.fixture
def drops(tokenizer_path):
    return Drops(tokenizer_path, max_model_len=1024)


def test_each_has_its_own_name_and_words(drops):
    first, second = drops.make(500, 16), drops.make(500, 16)
    assert (first.request, second.request) == ("dropped-0", "dropped-1")
    assert first.prompt_tokens == second.prompt_tokens == 500
    assert first.prompt[:32] != second.prompt[:32]
    assert (first.class_name, first.priority, first.output_tokens) == ("long", 2, 16)


@pytest.mark.parametrize("tokens", [0, -5, 1009])
def test_what_does_not_fit_the_context_is_refused_with_the_bounds(drops, tokens):
    with pytest.raises(InputError, match=r"1 to 1008 \(max_model_len less 16 output tokens\)"):
        drops.make(tokens, 16)
    assert drops.make(1008, 16).request == "dropped-0", "a refusal uses up no name"


@pytest.mark.parametrize("tokens", ["500", 10.5, None, True, float("nan")])
def test_a_length_that_is_no_count_is_refused_by_name(drops, tokens):
    with pytest.raises(InputError, match=r"^tokens: got "):
        drops.make(tokens, 16)


@pytest.mark.parametrize("output_tokens", [0, -5, 1024, "16", None, True])
def test_an_output_that_the_engine_could_not_make_is_refused_by_name(drops, output_tokens):
    with pytest.raises(InputError, match=r"^output_tokens: got .* expected 1 to 1023 "):
        drops.make(64, output_tokens)
