"""The main job on a real engine: one long prompt among chats, under several settings, without a restart."""

import math

import pytest

from workbench import sweep
from workbench.errors import EngineError, EnvelopeError, InputError
from workbench.metrics import prefill_steps
from workbench.workload.scenario import Setting

pytestmark = pytest.mark.live

SETTINGS = (
    Setting(name="one step", budget=8192),
    Setting(name="budget 64", budget=64),
    Setting(name="chunk 128", budget=1024, chunk=128),
    Setting(name="decode-first", budget=8192, policy="decode_first"),
)


@pytest.fixture(scope="module")
def played(bench, short):
    done = {}
    for setting in SETTINGS:
        for _ in range(3):  # a machine that starves the client for seconds has measured something else
            (played,) = sweep.hot(bench, short, [setting], lambda _setting, run: run.wait(300))
            done[setting.name] = played
            if played.run.summary["schedule_lag_max_s"] < 0.5:
                break
    return done


def test_all_settings_ran_on_one_engine(played, bench):
    assert {one.engine_pid for one in played.values()} == {bench.engine.pid}


@pytest.mark.parametrize("name", [setting.name for setting in SETTINGS])
def test_every_request_got_its_tokens(played, name):
    requests = played[name].run.trace.requests
    assert requests["status"].tolist() == ["ok"] * 5
    assert sorted(requests["output_tokens"]) == [4, 160, 160, 160, 160]
    tokens = played[name].run.trace.tokens
    assert tokens["n"].sum() == 644


@pytest.mark.parametrize("name", [setting.name for setting in SETTINGS])
def test_the_steps_account_for_every_token(played, name):
    run = played[name].run
    batch = run.trace.batch.groupby("request").sum(numeric_only=True)
    asked = run.trace.requests.set_index("request")
    assert (batch["emitted"] == asked["output_tokens"]).all()
    assert (batch["tokens"] == asked["prompt_tokens"] + asked["output_tokens"] - 1).all()
    assert run.trace.steps["step"].diff().dropna().eq(1).all(), "no record was lost"
    assert run.meta["engine"]["probe_faults"] == []


def test_a_prompt_becomes_as_many_steps_as_budget_and_chunk_say(played):
    def steps(name):
        frame = prefill_steps(played[name].run.trace).set_index("request")
        return int(frame.loc["long-0", "prefill_steps"]), int(frame.loc["long-0", "largest_chunk"])

    assert steps("one step") == (1, 1500)
    assert steps("chunk 128") == (math.ceil(1500 / 128), 128)
    count, largest = steps("budget 64")
    assert largest == 60, "four decodes leave 60 of the budget"
    assert count >= math.ceil(1500 / 64)


def test_the_longest_gap_shrinks_with_the_budget(played):
    longest = {name: one.row["gap_max_ms"] for name, one in played.items()}
    assert longest["one step"] > 3 * longest["budget 64"]
    assert longest["one step"] > 3 * longest["decode-first"]


def test_the_activation_peak_grows_with_the_tokens_of_a_step(played):
    steps = played["one step"].run.trace.steps
    by_size = steps.groupby(steps["prefill_tokens"] > 1000)["activation_bytes"].max()
    assert by_size[True] > 10 * (1 << 20)
    assert by_size[True] > 3 * by_size[False]
    assert played["one step"].row["peak_activation_mib"] > 3 * played["budget 64"].row["peak_activation_mib"]


def test_knob_changes_are_stamped_and_act_on_the_next_step(played):
    trace = played["budget 64"].run.trace
    knobs, steps = trace.knobs, trace.steps
    before, after = knobs.sort_values("revision").itertuples()
    assert (before.budget, after.budget) == (8192, 64)
    long = trace.requests.set_index("request").loc["long-0"]
    assert 1.0 <= after.sent_s < long.sent_s, "the long prompt comes after the change, however busy the machine is"
    later = steps[steps["scheduled_s"] > after.sent_s]
    assert later["revision"].eq(after.revision).all(), "no step that began after the change ran without it"
    assert steps.loc[steps["revision"] == after.revision, "step"].min() == after.step


def test_engine_and_client_clocks_agree(played):
    tokens = played["one step"].run.trace.tokens
    lag = tokens["client_s"] - tokens["engine_s"]
    assert tokens["engine_s"].notna().all()
    assert lag.min() > -0.001
    assert lag.median() < 0.05


def test_memory_is_sampled_meanwhile(played):
    memory = played["one step"].run.trace.memory
    rss = memory[memory["source"] == "host engine rss"]
    assert len(rss) > 20
    assert rss["bytes"].min() > 500 << 20


@pytest.fixture
def endless(short):
    """Chats that no machine ends before a test has done its part and cancels them."""
    return short.model_copy(update={"streams": (short.streams[0].replace(output_tokens=4000),)})


def test_a_prompt_can_be_dropped_into_a_run(bench, endless):
    bench.knobs(budget=256, policy="chunked")
    run = bench.run(endless)
    names = [bench.drop_long(1000, output_tokens=2) for _ in range(2)]
    dropped_at = run.progress[0]
    while run.progress[0] < dropped_at + 400:  # of four chats: 100 steps, where the prompts need 8
        assert not run.wait(0.05)
    run.cancel()
    assert run.wait(30)
    for name in names:
        chunks = run.trace.batch[(run.trace.batch["request"] == name) & run.trace.batch["prefill"]]
        assert chunks["tokens"].sum() == 1000
        assert len(chunks) >= 4
        assert run.trace.requests.set_index("request").loc[name, "status"] == "ok"
    prompts = run.trace.requests.set_index("request").loc[names, "cached_tokens"].fillna(0)
    assert (prompts < 32).all(), "the second prompt is not the first again"


def test_a_cancelled_run_keeps_what_was_measured(bench, endless):
    run = bench.run(endless)
    while run.progress[0] < 20:
        assert not run.wait(0.05)
    run.cancel()
    assert run.wait(30)
    assert run.meta["status"] == "cancelled"
    assert set(run.trace.requests["status"]) <= {"ok", "cancelled"}
    assert len(run.trace.tokens) >= 20


def test_a_second_run_at_the_same_time_is_refused_in_one_line(bench, endless):
    run = bench.run(endless)
    with pytest.raises(EngineError, match="one at a time"):
        bench.run(endless)
    run.cancel()
    run.wait(30)


@pytest.mark.parametrize("wrong", [{"budget": 9000}, {"chunk": 5000}, {"max_running": 100}, {"budget": 8}])
def test_a_knob_outside_the_envelope_is_refused_and_nothing_changes(bench, wrong):
    before = bench.engine.knobs
    with pytest.raises(EnvelopeError, match=next(iter(wrong))):
        bench.knobs(**wrong)
    assert bench.engine.knobs == before


def test_a_prompt_longer_than_the_context_is_refused(bench, short):
    too_long = short.model_copy(update={"streams": (short.streams[1].replace(prompt_tokens=5000),)})
    with pytest.raises(InputError, match="5000"):
        bench.run(too_long)
