"""Too much at once: cancelled requests, file descriptors, changes of knobs. The engine is a stand-in."""

from __future__ import annotations

import resource
import time

import psutil

from workbench.store import open_run


def test_a_thousand_requests_cancelled_at_once(place, stand_in, books):
    stand_in(period_ms=200)
    bench = place.bench()
    bench.start()
    place.mark()
    run = bench.run(place.scenario(count=1000, output=4000))
    place.until(lambda: run.progress[0] > 2000, "no tokens came")
    bench.stop_load()
    assert run.wait(0)
    requests = run.trace.requests
    assert run.meta["status"] == "cancelled"
    assert len(requests) == 1000
    assert requests["status"].value_counts().to_dict() == {"cancelled": 1000}
    assert requests["done_s"].notna().all()
    assert run.summary["tokens"] == books(run.trace, 4000)["n"].sum() > 2000
    after = bench.run(place.scenario(output=30))
    assert after.wait(place.patience)
    assert len(books(after.trace, 30)) == 120
    assert after.trace.steps["running"].iloc[-1] <= 4, "the engine still has some of the thousand"
    bench.stop()
    assert place.nothing_left()


def test_a_client_out_of_file_descriptors(place, stand_in, books, capsys):
    from workbench.cli.house import show_run

    stand_in()
    bench = place.bench()
    bench.start()
    place.mark()
    assert bench.run(place.scenario(output=5)).wait(place.patience)
    client = bench.engine._held.driver.pid
    before = resource.prlimit(client, resource.RLIMIT_NOFILE)
    files = psutil.Process(client).num_fds() + 20
    resource.prlimit(client, resource.RLIMIT_NOFILE, (files, before[1]))
    run = bench.run(place.scenario(count=60, output=100))
    assert run.wait(place.patience)
    requests = run.trace.requests
    failed = requests[requests["status"] == "error"]
    assert set(requests["status"]) == {"ok", "error"}
    assert len(requests) == 60
    assert failed["error"].str.contains("Too many open files").all()
    assert failed["done_s"].notna().all()
    served = requests[requests["status"] == "ok"]["request"]
    assert len(books(run.trace, 100, of=served)) == 100 * len(served)
    show_run(run, as_json=False)
    said = [line for line in capsys.readouterr().err.splitlines() if "Too many open files" in line]
    assert said[0].startswith(f"{len(failed)} of 60 requests failed, the first {failed['request'].iloc[0]}: ")
    resource.prlimit(client, resource.RLIMIT_NOFILE, before)
    after = bench.run(place.scenario(output=30))
    assert after.wait(place.patience)
    assert len(books(after.trace, 30)) == 120
    bench.stop()
    assert place.nothing_left()


def test_a_thousand_changes_of_knobs_a_second(place, stand_in, books, tmp_path):
    stand_in()
    bench = place.bench()
    bench.start()
    place.mark()
    run = bench.run(place.scenario(output=4000))
    place.until(lambda: run.progress[0] > 50, "no tokens came")
    begun, sent = time.monotonic(), {}
    for number in range(3000):
        budget = 64 + number % 1000
        sent[bench.knobs(budget=budget)] = budget
        time.sleep(max(0.0, begun + (number + 1) / 1000 - time.monotonic()))
    told = run.progress[0]
    place.until(lambda: run.progress[0] > told + 50, "no tokens came after that")
    bench.stop_load()
    assert list(sent) == list(range(1, 3001))
    trace = open_run(run.folder)
    books(trace, 4000)
    knobs = trace.tables["knobs"].to_pandas().set_index("revision")
    assert knobs.loc[1:, "budget"].to_dict() == sent, "each change is in the trace"
    assert knobs["sent_s"].is_monotonic_increasing
    applied = knobs["applied_s"].dropna()
    assert 3000 in applied.index, "of all changes before a step the last counts"
    assert applied.is_monotonic_increasing
    used = trace.steps["revision"]
    assert used.is_monotonic_increasing
    assert set(used) <= set(applied.index)
    assert used.iloc[-1] == 3000
    assert bench.engine.knobs.budget == sent[3000]
    report = bench.report(tmp_path / "report.html")
    assert report.stat().st_size < 3_000_000, "a report stays one that can be sent"
    bench.stop()
    assert place.nothing_left()
