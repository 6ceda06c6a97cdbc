import copy

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.config import SLO, EngineConfig, Knobs
from workbench.errors import EnvelopeError, InputError, ScenarioError
from workbench.workload.arrivals import AtOnce, Gamma
from workbench.workload.lengths import Fixed, Uniform
from workbench.workload.scenario import Scenario, Setting, load_scenario, scenario_names
from workbench.workload.stream import SharedPrefix, Stream

GOOD = {
    "name": "mine",
    "seed": 5,
    "engine": {"max_model_len": 2048, "max_num_batched_tokens": 1024, "max_num_seqs": 16},
    "slo": {"gap_ms": 100},
    "streams": [
        {"class": "chat", "arrivals": {"kind": "at_once", "count": 2}, "prompt_tokens": 8, "output_tokens": 4},
        {
            "class": "long",
            "start_s": 1.5,
            "arrivals": {"kind": "gamma", "rate": 2, "cv": 3, "duration_s": 5},
            "prompt_tokens": {"kind": "uniform", "min": 5, "max": 9},
            "output_tokens": 4,
            "shared_prefix": {"tokens": 32, "groups": 2},
        },
    ],
    "settings": [{"name": "as it starts"}, {"name": "small", "budget": 64, "chunk": 32}],
}


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenarios") / "mine.yaml"

    def loader(data):
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
        return load_scenario(path)

    return loader


def changed(path, value):
    """The good scenario with one thing changed; ``...`` removes it."""
    data = copy.deepcopy(GOOD)
    *way, last = path
    here = data
    for step in way:
        here = here[step]
    if value is ...:
        del here[last]
    else:
        here[last] = value
    return data


def test_a_good_scenario_is_read(load):
    found = load(GOOD)
    assert found.slo == SLO(gap_ms=100)
    assert found.streams[0] == Stream(
        class_name="chat", arrivals=AtOnce(count=2), prompt_tokens=Fixed(tokens=8), output_tokens=Fixed(tokens=4)
    )
    assert found.streams[1].arrivals == Gamma(rate=2, cv=3, duration_s=5)
    assert found.streams[1].prompt_tokens == Uniform(min=5, max=9)
    assert found.streams[1].shared_prefix == SharedPrefix(tokens=32, groups=2)
    assert found.engine_config == EngineConfig(max_model_len=2048, max_num_batched_tokens=1024, max_num_seqs=16)


def test_a_scenario_survives_being_written_and_read(load):
    found = load(GOOD)
    assert load(found.model_dump(mode="json", by_alias=True)) == found
    assert found.replace(seed=6).streams == found.streams


def test_a_setting_takes_what_it_leaves_out_from_the_engine(load):
    found = load(GOOD)
    envelope = found.engine_config.envelope
    assert found.settings[0].knobs(envelope) == Knobs(budget=1024, chunk=0, max_running=16)
    assert found.settings[1].knobs(envelope) == Knobs(budget=64, chunk=32, max_running=16)
    with pytest.raises(EnvelopeError, match="at most 1024"):
        Setting(name="x", budget=2000).knobs(envelope)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["streams"], ..., "streams: got 'nothing'"),
        (["streams"], [], "streams: got"),
        (["strems"], [], "did you mean streams?"),
        (["name"], "a/b", "name: got 'a/b'"),
        (["seed"], -1, "seed: got '-1'"),
        (["seed"], 2**32, "seed: got"),
        (["engine", "max_num_seq"], 4, "did you mean max_num_seqs?"),
        (["engine", "max_num_seqs"], 4096, "raise max_num_batched_tokens to 4096"),
        (["engine", "port"], 0, "engine: port: got '0'"),
        (["slo", "gap_ms"], "soon", "slo.gap_ms: got 'soon'"),
        (["streams", 0, "priority"], -1, "streams.0.priority: got '-1', expected vip, normal, offline (which"),
        (["streams", 0, "priority"], "ofline", "got 'ofline', expected vip, normal, offline (which"),
        (["streams", 0, "priority"], 1001, "up to 1000"),
        (["streams", 0, "klass"], "x", "klass"),
        (["streams", 0, "class"], "9 to 5", "streams.0.class: got '9 to 5'"),
        (["streams", 0, "prompt_tokens"], 0, "got '0'"),
        (["streams", 0, "prompt_tokens"], {"min": 4}, "kind: fixed or uniform or lognormal, or a bare number"),
        (["streams", 0, "prompt_tokens"], {"kind": "uniform", "min": 4, "max": 3}, "min at most max"),
        (
            ["streams", 0, "prompt_tokens"],
            {"kind": "lognormal", "median": 4, "p99": 8, "max": 9, "mn": 3},
            "did you mean min?",
        ),
        (["streams", 0, "output_tokens"], ..., "expected output_tokens, or arrivals of kind trace"),
        (["streams", 0, "arrivals"], {"kind": "atonce"}, "kind: at_once or constant or poisson"),
        (["streams", 0, "arrivals", "coutn"], 2, "did you mean count?"),
        (["streams", 0, "arrivals"], {"kind": "poisson", "rate": 1}, "exactly one of count and duration_s"),
        (["streams", 0, "arrivals"], {"kind": "trace", "path": "x.csv"}, "no prompt_tokens, since"),
        (["streams", 0, "start_s"], float("nan"), "start_s: got 'nan'"),
        (["streams", 1, "shared_prefix", "groups"], 0, "groups: got '0'"),
        (["settings", 1, "budget"], 1025, "settings.1 (small): budget: got '1025', expected at most 1024"),
        (["settings", 1, "budget"], 8, "settings.1 (small): budget and max_running: got '8 < 16'"),
        (["settings", 1, "chunk"], 2049, "settings.1 (small): chunk: got '2049'"),
        (["settings", 1, "chunk"], -1, "settings.1 (small): chunk: got '-1'"),
        (["settings", 1, "policy"], "magic", "settings.1.policy: got 'magic'"),
        (["settings", 1, "name"], "as it starts", "names that differ"),
        (["streams", 1, "class"], "chat", None),
    ],
)
def test_a_bad_field_is_named_with_the_file(load, path, value, said):
    data = changed(path, value)
    if said is None:
        assert [stream.class_name for stream in load(data).streams] == ["chat", "chat"]
        return
    with pytest.raises(ScenarioError) as bad:
        load(data)
    assert "mine.yaml: " in str(bad.value)
    assert said in str(bad.value)


def test_a_class_with_fixed_concurrency_stands_alone(load):
    arrivals = {"kind": "concurrency", "in_flight": 2, "count": 8}
    data = changed(["streams", 0, "arrivals"], arrivals)
    assert load(data).concurrency == {"chat": 2}
    data["streams"][1]["class"] = "chat"
    with pytest.raises(ScenarioError, match="2 of class chat"):
        load(data)


@pytest.mark.parametrize("text", ["", "just words", "- 1\n", "1: 2\n", "streams: 5\nname: x\n"])
def test_a_file_that_is_no_scenario_is_refused(load, text):
    with pytest.raises(ScenarioError, match=r"mine\.yaml"):
        load(text)


def test_paths_start_at_the_file(tmp_path):
    data = changed(["streams", 0, "documents"], "texts")
    data["streams"][1] = {"class": "code", "arrivals": {"kind": "trace", "path": "../t.csv"}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(data))
    found = load_scenario(str(tmp_path / "s.yaml"))
    assert found.streams[0].documents == tmp_path / "texts"
    assert found.streams[1].arrivals.path == tmp_path / "../t.csv"


def test_a_name_is_looked_up_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_scenario("chat_and_long").name == "chat_and_long"


def test_an_unknown_name_is_answered_with_a_near_one():
    with pytest.raises(ScenarioError, match=r"did you mean chat_and_long\?"):
        load_scenario("chat_and_lnog")
    with pytest.raises(ScenarioError, match=r"bursty_chat, chat_and_long, .*give the path"):
        load_scenario("zzz")
    for outside in ("../pyproject.toml", "..", "nothing.yaml", "~nobody-here/x.yaml"):
        with pytest.raises(ScenarioError):
            load_scenario(outside)


def test_an_installation_without_named_scenarios_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.workload.scenario._folder", lambda: tmp_path)
    with pytest.raises(ScenarioError, match="this installation has no named scenarios"):
        load_scenario("chat_and_long")


def test_the_demo_has_its_six_settings_in_order():
    demo = load_scenario("chat_and_long")
    envelope = demo.engine_config.envelope
    knobs = [(s.name, k.budget, k.chunk, k.policy) for s in demo.settings for k in [s.knobs(envelope)]]
    assert knobs == [
        ("one step", 8192, 0, "chunked"),
        ("budget 1024", 1024, 0, "chunked"),
        ("budget 256", 256, 0, "chunked"),
        ("budget 64", 64, 0, "chunked"),
        ("budget 1024 chunk 128", 1024, 128, "chunked"),
        ("decode-first", 8192, 0, "decode_first"),
    ]
    assert demo.engine_config == EngineConfig(max_model_len=4096, max_num_batched_tokens=8192, max_num_seqs=32)
    assert (demo.slo.gap_ms, demo.slo.ttft_ms) == (200, 2000)


@pytest.mark.parametrize("name", scenario_names())
def test_each_named_scenario_is_named_as_its_file_and_says_what_it_answers(name):
    found = load_scenario(name)
    assert found.name == name
    assert found.question.endswith("?")
    assert found.description


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
places = st.sampled_from(
    [
        ["name"], ["seed"], ["engine"], ["slo"], ["streams"], ["settings"], ["extra"],
        ["engine", "max_model_len"], ["engine", "extra_args"], ["slo", "gap_percentile"],
        ["streams", 0], ["streams", 0, "class"], ["streams", 0, "priority"], ["streams", 0, "arrivals"],
        ["streams", 0, "arrivals", "kind"], ["streams", 0, "arrivals", "count"], ["streams", 0, "prompt_tokens"],
        ["streams", 0, "documents"], ["streams", 1, "prompt_tokens", "kind"], ["streams", 1, "arrivals", "cv"],
        ["streams", 1, "shared_prefix"], ["settings", 1], ["settings", 1, "budget"], ["settings", 1, "policy"],
    ]
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(path=places, value=values)
def test_any_value_anywhere_gives_a_scenario_or_a_named_error(load, path, value):
    try:
        found = load(changed(path, value))
    except ScenarioError:
        return
    assert isinstance(found, Scenario)
    assert load(found.model_dump(mode="json", by_alias=True)) == found


@settings(deadline=None, max_examples=300)
@given(cut=st.integers(0, 2000), junk=st.text(max_size=12), keep=st.booleans())
def test_any_damage_to_the_text_gives_a_scenario_or_a_named_error(load, cut, junk, keep):
    text = yaml.safe_dump(GOOD)
    cut %= len(text)
    try:
        load(text[:cut] + junk.encode(errors="replace").decode() + (text[cut:] if keep else ""))
    except InputError as bad:
        assert isinstance(bad, ScenarioError)  # noqa: PT017 - most damage is an error, some is not


def test_the_rate_of_a_scenario_is_that_of_its_open_loop_streams(load):
    scenario = load(GOOD)
    assert scenario.rate == 2
    faster = scenario.at_rate(5)
    assert faster.rate == 5
    assert faster.streams[0] == scenario.streams[0]
    assert (faster.streams[1].arrivals.rate, faster.streams[1].arrivals.cv) == (5, 3)
    assert scenario.rate == 2, "the scenario itself is as it was"


def test_a_scenario_without_open_loop_streams_has_no_rate(load):
    closed = load({**copy.deepcopy(GOOD), "streams": [GOOD["streams"][0]]})
    assert closed.rate is None
    with pytest.raises(ScenarioError, match="mine has no stream with a rate"):
        closed.at_rate(2)


@pytest.mark.parametrize("rate", [0, -1, 1e9, float("nan"), "x", True, None])
def test_a_rate_that_no_stream_takes_is_refused(load, rate):
    with pytest.raises(ScenarioError, match="rate"):
        load(GOOD).at_rate(rate)
