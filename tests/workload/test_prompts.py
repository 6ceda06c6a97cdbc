import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from workbench.errors import ModelError, ScenarioError
from workbench.workload.english import sentences
from workbench.workload.prompts import Pool, Prompts, encode, load_tokenizer

HEAD = 4  # tokens that tell pieces apart


def common(a, b):
    """Length of the start that two prompts share."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@pytest.fixture(scope="module")
def tokenizer(tokenizer_path):
    return load_tokenizer(tokenizer_path)


@pytest.fixture(scope="module")
def prompts(tokenizer):
    return Prompts(tokenizer, 1)


def test_sentences_are_whole():
    made = sentences(np.random.default_rng(5), 300)
    assert len(set(made)) > 290
    for text in made:
        assert text[0].isupper()
        assert text.endswith((". ", "? "))
        assert not set(text) & set("{}")
        assert " a old" not in text


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 3000), min_size=2, max_size=12))
def test_pieces_are_exactly_as_long_as_asked_and_share_nothing(prompts, lengths):
    pieces = [prompts.piece(n) for n in lengths]
    assert [len(piece) for piece in pieces] == lengths
    for i, piece in enumerate(pieces):
        for other in pieces[:i]:
            assert common(piece, other) < HEAD
    firsts = [piece[0] for piece in pieces]
    assert len(set(firsts)) == len(firsts)  # so few pieces differ in their first token


def test_many_short_prompts_differ(tokenizer):
    prompts = Prompts(tokenizer, 3)
    made = [prompts.piece(HEAD) for _ in range(20_000)]
    assert len(set(made)) == len(made)


@settings(deadline=None)
@given(key=st.integers(), short=st.integers(1, 600), more=st.integers(0, 600))
def test_the_same_key_gives_the_same_start(prompts, key, short, more):
    assert prompts.piece(short + more, key)[:short] == prompts.piece(short, key)
    assert common(prompts.piece(short + more, key), prompts.piece(short + more, (key, "other"))) < HEAD


def test_a_prompt_longer_than_the_pool_goes_round():
    pool = Pool((1, 2, 3), (0,))
    assert pool.cut(2, 8) == (3, 1, 2, 3, 1, 2, 3, 1)
    assert pool.cut(1, 2) == (2, 3)


def test_the_seed_and_the_salt_change_the_words(tokenizer):
    one = Prompts(tokenizer, 1).piece(200)
    assert one == Prompts(tokenizer, 1).piece(200)
    for other in (Prompts(tokenizer, 2), Prompts(tokenizer, 1, salt=1)):
        assert other.piece(200) != one


def test_text_is_readable(tokenizer, prompts):
    text = tokenizer.decode(list(prompts.piece(400)[HEAD:]))
    assert text[0].isupper()
    assert " the " in text


def test_documents_are_the_persons_words_in_the_order_of_the_names(tokenizer, prompts, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.md").write_bytes(b"the village\r\n")
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone window\nand <|im_end|> more\n")
    (tmp_path / "c.pdf").write_bytes(b"\xff\xfe")
    pool = prompts.documents(tmp_path)
    assert tokenizer.decode(list(pool.tokens)) == "one window\nand <|im_end|> more\nthe village\r\n"
    assert len(pool.starts) == 3
    assert Tokenizer.token_to_id(tokenizer, "<|im_end|>") not in pool.tokens  # a person's text ends no turn
    piece = prompts.piece(HEAD + 5, pool=pool)
    assert piece[HEAD:] in [pool.cut(start, 5) for start in pool.starts]


def test_no_more_than_8_mib_are_read_and_a_character_may_be_cut(prompts, tmp_path):
    line = "é" * 511 + "\n"  # 1023 bytes, so that the border falls into a character
    (tmp_path / "a.txt").write_text(line * 9000, encoding="utf-8")
    (tmp_path / "b.txt").write_text("never read\n")
    pool = prompts.documents(tmp_path)
    assert len(pool.starts) == (8 << 20) // 1023 + 1


@pytest.mark.parametrize(
    ("data", "said"), [(b"", "some text"), (b"\xff\xfeA", "byte 0 is not"), (b"a\0b", "not binary data")]
)
def test_documents_without_text_are_refused(prompts, tmp_path, data, said):
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(ScenarioError, match=said):
        prompts.documents(tmp_path)


def test_documents_that_are_not_there_are_refused(prompts, tmp_path):
    with pytest.raises(ScenarioError, match="a folder with text files"):
        prompts.documents(tmp_path)
    with pytest.raises(ScenarioError, match="check the path"):
        prompts.documents(tmp_path / "none.txt")


def test_a_tokenizer_is_found_in_its_folder_and_its_settings_are_not_kept(tokenizer_path, tmp_path):
    odd = Tokenizer.from_file(str(tokenizer_path))
    odd.enable_truncation(3)
    odd.enable_padding(length=9)
    odd.save(str(tmp_path / "tokenizer.json"))
    text = "the window of the village and the river"
    expected = Tokenizer.from_file(str(tokenizer_path)).encode(text).ids
    assert len(expected) > 3
    assert load_tokenizer(tmp_path).encode(text).ids == expected


def test_a_missing_or_damaged_tokenizer_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"got '.*tokenizer\.json', expected a tokenizer\.json"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="a readable tokenizer"):
        load_tokenizer(tmp_path)


def test_a_tokenizer_that_knows_no_english_is_refused():
    with pytest.raises(ModelError, match="got 'no tokens', expected tokens for English text"):
        Prompts(Tokenizer(models.BPE()), 0)
    with pytest.raises(ModelError, match="text that it can encode"):
        Prompts(Tokenizer(models.WordLevel({"ж": 0}, unk_token="[none]")), 0)


def test_starts_are_where_the_lines_begin(tokenizer):
    pool = encode(tokenizer, ["the river\n", "", "a window\n"])
    second = tokenizer.encode("a window\n").ids
    assert pool.starts == (0, len(pool.tokens) - len(second))
