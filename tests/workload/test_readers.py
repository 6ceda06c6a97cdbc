import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import TraceFileError
from workbench.workload.readers import read_trace

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
BURST_OLD = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
BURST = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "trace"

    def reader(data, trace_format="auto", **options):
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return read_trace(path, trace_format, **options)

    return reader


def moon(**fields):
    row = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]} | fields
    return json.dumps(row) + "\n"


def test_azure_with_seven_digits_and_two_in_one_instant(read):
    found = read(
        AZURE
        + "2023-11-16 18:17:03.9799600,4808,10\n"
        + "2023-11-16 18:17:03.9799601,3180,8\n"
        + "2023-11-16 18:17:03.9799601,110,27\n"
    )
    assert found.times.tolist() == pytest.approx([0, 1e-7, 1e-7], abs=1e-12)
    assert found.prompt_tokens.tolist() == [4808, 3180, 110]
    assert found.output_tokens.tolist() == [10, 8, 27]
    assert found.blocks == (None, None, None)
    assert found.counts == {"rows": 3, "failed": 0, "empty_prompt": 0, "zero_output": 0, "reordered": 0}


def test_azure_of_2024_has_a_zone_and_fewer_digits(read):
    found = read(AZURE + "2024-05-10 00:00:00.5+00:00,1,1\n2024-05-10 02:00:01+02:00,2,2\n")
    assert found.times.tolist() == [0, 0.5]


def test_order_is_restored_across_midnight_and_equal_times_keep_theirs(read):
    found = read(
        AZURE
        + "2023-11-17 00:00:00.1,1,1\n2023-11-16 23:59:59.9,2,1\n2023-11-17 00:00:00.1,3,1\n2023-11-16 23:59:59.9,4,1\n"
    )
    assert found.prompt_tokens.tolist() == [2, 4, 1, 3]
    assert found.times.tolist() == pytest.approx([0, 0, 0.2, 0.2])
    assert found.counts["reordered"] == 2


def test_what_a_spreadsheet_leaves_is_read(read):
    text = AZURE.replace(",", ', "', 1).replace("Tokens,", 'Tokens",', 1) + "2023-11-16 18:17:03,12.0,3\n\n , ,\n"
    found = read(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert (found.prompt_tokens.tolist(), found.output_tokens.tolist()) == ([12], [3])
    assert found.counts["rows"] == 1


def test_an_empty_output_is_raised_to_one_token_and_an_empty_prompt_is_skipped(read):
    found = read(AZURE + "2023-11-16 18:17:03,5,0\n2023-11-16 18:17:04,0,7\n")
    assert (found.prompt_tokens.tolist(), found.output_tokens.tolist()) == ([5], [1])
    assert (found.counts["zero_output"], found.counts["empty_prompt"]) == (1, 1)


@pytest.mark.parametrize("header", [BURST_OLD, BURST])
def test_burstgpt_of_both_ages_skips_failed_requests(read, header):
    middle = "s-1,3.2,ChatGPT" if "Session" in header else "ChatGPT"
    found = read(
        header
        + f"5,{middle},472,18,490,Conversation log\n6,{middle},9,0,9,API log\n45.5,{middle},1087,230,1317,API log\n"
    )
    assert found.times.tolist() == [0, 40.5]
    assert (found.prompt_tokens.tolist(), found.output_tokens.tolist()) == ([472, 1087], [18, 230])
    assert (found.counts["rows"], found.counts["failed"]) == (3, 1)


def test_mooncake_keeps_the_blocks(read):
    found = read(moon() + "\n" + moon(timestamp=1500, hash_ids=[1, 3], output_length=0) + moon(timestamp=27))
    assert found.times.tolist() == [0, 0.027, 1.5]
    assert found.blocks == ((1, 2), (1, 2), (1, 3))
    assert found.output_tokens.tolist() == [5, 5, 1]


def test_mooncake_without_hashes(read):
    assert read('{"timestamp": 3, "input_length": 4, "output_length": 5}').blocks == (None,)


def test_speed_and_limit(read):
    text = BURST_OLD + "".join(f"{10 * i},m,1,{i % 2},1,x\n" for i in range(10))
    found = read(text, speed=20, limit=3)
    assert found.times.tolist() == [0, 1, 2]  # the rows at 10, 30 and 50 s; those between failed
    assert found.counts["failed"] == 3


@pytest.mark.parametrize(
    ("text", "line", "value"),
    [
        ("a,b\n1,2\n", 1, "a,b"),
        ("\n\nhello\n", 3, "hello"),
        (AZURE + "2023-11-16 18:17:03,1,1\n2023-11-16,1,1\n", 3, "2023-11-16"),
        (AZURE + "2023-13-16 18:17:03,1,1\n", 2, "2023-13-16"),
        (AZURE + "2023-11-16 18:17:03.,1,1\n", 2, "18:17:03."),
        (AZURE + "2023-11-16 18:17:03,-1,1\n", 2, "ContextTokens -1"),
        (AZURE + "2023-11-16 18:17:03,1,1.5\n", 2, "GeneratedTokens 1.5"),
        (AZURE + "2023-11-16 18:17:03,nan,1\n", 2, "ContextTokens nan"),
        (AZURE + "2023-11-16 18:17:03,1e300,1\n", 2, "ContextTokens 1e300"),
        (AZURE + "2023-11-16 18:17:03,1\n", 2, "18:17:03,1"),
        (AZURE + '2023-11-16 18:17:03,"1,1\n', 2, "unexpected end of data"),
        (BURST_OLD + "1,m,1,1,1,x\ninf,m,1,1,1,x\n", 3, "Timestamp inf"),
        (moon() + "{\n", 2, "{"),
        (moon() + "[1]\n", 2, "[1]"),
        (moon() + "[" * 100_000, 2, "[[["),
        ('{"timestamp": 1, "input_length": 2}\n', 1, "timestamp"),
        (moon(timestamp="now"), 1, "timestamp now"),
        (moon(timestamp=True), 1, "timestamp True"),
        (moon(timestamp=float("nan")), 1, "timestamp nan"),
        (moon(input_length=-5), 1, "input_length -5"),
        (moon(output_length=None), 1, "output_length None"),
        (moon(hash_ids="abc"), 1, "hash_ids abc"),
        (moon(hash_ids=[1.5]), 1, "hash_ids [1.5]"),
        (moon() + "x" * (1 << 21), 2, "xxx"),
    ],
)
def test_a_bad_line_is_named(read, text, line, value):
    with pytest.raises(TraceFileError) as bad:
        read(text)
    assert f"line {line}:" in str(bad.value)
    assert value in str(bad.value.value)


def test_bytes_that_are_no_text_are_named_by_line(read):
    with pytest.raises(TraceFileError, match="line 3: got 'ContextTokens 1"):
        read(AZURE.encode() + b"2023-11-16 18:17:03,1,1\n2023-11-16 18:17:03,1\xff,1\n")


@pytest.mark.parametrize(("text", "said"), [("", "empty file"), ("\n \n", "empty file"), (AZURE, "no requests")])
def test_a_file_without_requests_is_refused(read, text, said):
    with pytest.raises(TraceFileError, match=said):
        read(text)


def test_a_file_of_failures_says_so(read):
    with pytest.raises(TraceFileError, match="2 rows, 2 failed"):
        read(BURST_OLD + "1,m,1,0,1,x\n2,m,1,0,1,x\n")


def test_another_format_than_was_said_is_refused(read):
    with pytest.raises(TraceFileError, match=r"expected burstgpt \(Timestamp, Request tokens, Response tokens\)"):
        read(AZURE, "burstgpt")


def test_too_many_rows_ask_for_a_limit(read):
    text = BURST_OLD + "1,m,1,1,1,x\n" * 4
    assert len(read(text, most=4).times) == 4
    with pytest.raises(TraceFileError, match=r"4 requests.*at most 3; set a limit"):
        read(text, most=3)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "none", tmp_path / "pipe", tmp_path / ("x" * 300), Path("a\0b")):
        with pytest.raises(TraceFileError, match="a file that exists"):
            read_trace(path)


@settings(deadline=None, max_examples=200)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 10**13), st.integers(0, 9999), st.integers(0, 9999)), min_size=1, max_size=20
    ),
    speed=st.floats(0.1, 100),
)
def test_mooncake_rows_come_back_sorted_and_whole(read, rows, speed):
    text = "".join(moon(timestamp=t, input_length=p, output_length=o, hash_ids=[]) for t, p, o in rows)
    usable = sorted((row for row in rows if row[1]), key=lambda row: row[0])
    if not usable:
        with pytest.raises(TraceFileError):
            read(text)
        return
    found = read(text, speed=speed)
    assert found.times == pytest.approx([(t - usable[0][0]) / 1000 / speed for t, _, _ in usable])
    assert found.prompt_tokens.tolist() == [p for _, p, _ in usable]
    assert found.output_tokens.tolist() == [max(o, 1) for _, _, o in usable]


pieces = st.lists(
    st.sampled_from([AZURE, BURST, BURST_OLD, moon(), "2023-11-16 18:17:03.1234567,1,1\n", "1,m,1,1,1,x\n"])
    | st.text(max_size=30)
    | st.text(alphabet='{}[]",:.0123456789eE+- \r\n\0', max_size=40),
    max_size=6,
).map("".join)


@settings(deadline=None, max_examples=400)
@given(data=pieces.map(lambda text: text.encode(errors="surrogatepass")) | st.binary(max_size=200))
def test_any_file_gives_requests_or_a_named_error(read, data):
    try:
        found = read(data)
    except TraceFileError:
        return
    assert found.times[0] == 0
    assert (found.times[1:] >= found.times[:-1]).all()
    assert min(found.prompt_tokens.min(), found.output_tokens.min()) >= 1
    assert len(found.times) == len(found.prompt_tokens) == len(found.output_tokens) == len(found.blocks)
