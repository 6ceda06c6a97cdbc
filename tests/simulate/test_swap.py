"""Preemption by swap: what it costs, what it saves, and where it ends."""

from types import SimpleNamespace

import pytest
from jobs import ask, job, knobs, played

from workbench.simulate.job import Swap
from workbench.simulate.swap import HostPool

# Two requests of 6 and 4 blocks at their start in a pool of 11: soon they are in each other's way.
CROWD = [ask("first", 92, 40), ask("second", 60, 40, at=0.05)]
SMALL = {"blocks": 12, "knobs": knobs(reserve_full=False)}


def request(name, computed, tokens=None):
    return SimpleNamespace(request_id=name, num_computed_tokens=computed, num_tokens=tokens or computed + 1)


def test_the_host_takes_whole_blocks_up_to_its_size():
    host = HostPool(Swap(blocks=5, out_s=0.5, in_s=0.25), block_size=16)
    assert host.put(request("a", 33))
    assert host.used_blocks == 3
    assert not host.put(request("b", 48)), "3 more are one too many"
    assert host.put(request("c", 17))
    assert (host.used_blocks, host.out_blocks, host.full) == (5, 5, 1)
    assert not host.put(request("d", 0)), "nothing to keep"
    assert host.full == 1


def test_a_step_pays_for_what_was_moved_before_it_once():
    host = HostPool(Swap(blocks=9, out_s=0.5, in_s=0.25), block_size=16)
    host.put(request("a", 32))
    assert host.cost(0.1) == pytest.approx(0.1 + 2 * 0.5)
    assert host.cost(0.1) == pytest.approx(0.1)
    assert host.get_num_new_matched_tokens(request("a", 0, 33), 0) == (32, False)
    host.update_state_after_alloc(request("a", 0), None, 32)
    assert host.cost(0.1) == pytest.approx(0.1 + 2 * 0.25)
    assert host.used_blocks == 0


def test_with_overlap_the_longer_of_the_two_counts():
    host = HostPool(Swap(blocks=9, out_s=0.5, in_s=0.25, overlap=True), block_size=16)
    host.put(request("a", 32))
    assert host.cost(0.3) == 1.0
    host.put(request("b", 16))
    assert host.cost(0.7) == 0.7


def test_the_last_token_is_always_computed_and_the_local_cache_goes_first():
    host = HostPool(Swap(blocks=9, out_s=0.0, in_s=0.0), block_size=16)
    host.put(request("a", 40, 40))
    assert host.get_num_new_matched_tokens(request("a", 0, 40), 0) == (39, False)
    assert host.get_num_new_matched_tokens(request("a", 0, 40), 32) == (7, False)
    assert host.get_num_new_matched_tokens(request("other", 0, 40), 0) == (0, False)


def test_who_ends_while_it_is_out_leaves_the_host():
    host = HostPool(Swap(blocks=9, out_s=0.0, in_s=0.0), block_size=16)
    host.put(request("a", 40))
    host.request_finished(request("a", 40), ())
    assert host.used_blocks == 0


def _victim(done):
    [name] = {name for step in done.trace.steps["preempted"] for name in step}
    return name


@pytest.mark.parametrize(("ahead", "depth"), [(False, 1), (True, 2)])
def test_a_victim_goes_on_where_it_was_and_pays_for_the_way(model_folder, ahead, depth):
    moved = Swap(blocks=100, out_s=0.01, in_s=0.02)
    fields = {**SMALL, "ahead": ahead, "depth": depth}
    again, swapped = (played(job(CROWD, swap=swap, **fields), model_folder) for swap in (None, moved))
    assert again.loop.facts["preemptions"] == swapped.loop.facts["preemptions"] == 1
    assert _victim(again) == _victim(swapped) == "second"
    batch = swapped.trace.batch
    mine = batch[batch["request"] == "second"]
    assert mine["tokens"].sum() == 60 + 39, "nothing is computed twice"
    assert mine["tokens"].max() == 60
    lost = again.trace.batch
    assert lost[lost["request"] == "second"]["tokens"].sum() > 150
    facts = swapped.loop.facts
    assert facts["swap_out_blocks"] == facts["swap_in_blocks"] > 0
    steps = swapped.trace.steps
    slow = (steps["end_s"] - steps["start_s"]).round(6)
    paid = slow[slow > 0.1] - 0.1
    assert paid.sum() == pytest.approx(facts["swap_out_blocks"] * 0.01 + facts["swap_in_blocks"] * 0.02)
    assert set(swapped.requests("status").values()) == {"ok"}
    assert swapped.loop.scheduler.host.used_blocks == 0


def test_without_room_in_the_host_it_is_computed_again(model_folder):
    tiny = played(job(CROWD, swap=Swap(blocks=1, out_s=9.0, in_s=9.0), **SMALL), model_folder)
    again = played(job(CROWD, **SMALL), model_folder)
    assert tiny.trace.tables == again.trace.tables
    assert tiny.loop.facts["swap_full"] == 1


@pytest.mark.parametrize("policy", ["chunked", "decode_first", "priority", "qos", "target_gap"])
@pytest.mark.parametrize(("ahead", "depth"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("prefix_cache", [False, True])
def test_no_token_is_lost_under_any_policy(model_folder, policy, ahead, depth, prefix_cache):
    requests = [ask(f"r{i:02}", 30 + 13 * i % 90, 30 + 7 * i % 40, 0.1 * i, i % 3) for i in range(20)]
    done = played(
        job(
            requests,
            blocks=24,
            swap=Swap(blocks=30, out_s=0.001, in_s=0.001),
            ahead=ahead,
            depth=depth,
            prefix_cache=prefix_cache,
            max_model_len=256,
            knobs=knobs(policy=policy, reserve_full=False, prefill_every=2, prefix_cache=not prefix_cache),
        ),
        model_folder,
    )
    tokens = done.trace.tokens.groupby("request")["n"].sum().to_dict()
    assert tokens == {one.request: one.output_tokens for one in requests}
    assert done.loop.facts["swap_in_blocks"] > 0
    assert done.loop.scheduler.host.used_blocks == 0
    assert done.loop.scheduler.kv_cache_manager.usage == 0
