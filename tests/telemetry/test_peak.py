"""Measured peaks: what is kept and when it is measured anew. The child is real in one test, made up in the others."""

import json

import pytest

from workbench.telemetry import copies, matmul, peak


@pytest.fixture
def child(monkeypatch):
    """Count the measurements and answer what the test wants."""
    calls = []

    def measure(what, options):
        calls.append((what, *options))
        if isinstance(measure.answer, Exception):
            raise measure.answer
        return dict(measure.answer)

    measure.answer, measure.calls = {"bfloat16": 1e10, "float32": 8e10}, calls
    monkeypatch.setattr(peak, "_child", measure)
    monkeypatch.setattr(peak, "_failed", {})
    return measure


def test_the_faster_type_counts_and_the_source_says_so(child, tmp_path):
    found = peak.matmul_peak(2, tmp_path)
    assert found.per_s == 8e10
    assert found.source == "measured matmul, 2 threads, float32, bfloat16 reaches 12% of it"
    child.answer = {"bfloat16": 9e14}
    found = peak.matmul_peak(16, tmp_path, device="cuda", name="NVIDIA X")
    assert (found.per_s, found.source) == (9e14, "measured matmul, NVIDIA X, bfloat16")


def test_it_is_measured_once_for_a_machine_and_a_number_of_threads(child, tmp_path):
    first = peak.matmul_peak(1, tmp_path)
    child.answer = {"bfloat16": 2e10, "float32": 3e10}
    assert peak.matmul_peak(1, tmp_path) == first
    assert len(child.calls) == 1
    assert peak.matmul_peak(2, tmp_path).per_s == 3e10
    assert peak.matmul_peak(1, tmp_path, name="another processor").per_s == 3e10
    assert len(child.calls) == 3
    assert peak.matmul_peak(1, tmp_path, again=True).per_s == 3e10
    assert peak.matmul_peak(1, tmp_path).per_s == 3e10  # and that is what is kept now
    assert len(child.calls) == 4


def test_another_torch_is_another_measurement(child, tmp_path, monkeypatch):
    peak.matmul_peak(1, tmp_path)
    monkeypatch.setattr(peak, "version", lambda _name: "99.0")
    peak.matmul_peak(1, tmp_path)
    assert len(child.calls) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"key": 1}', '{"key": {}, "rates": {"float32": "x"}}'])
def test_a_damaged_file_is_measured_again(child, tmp_path, content):
    peak.matmul_peak(1, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(content)
    assert peak.matmul_peak(1, tmp_path).per_s == 8e10
    assert json.loads(path.read_text())["rates"] == child.answer


def test_a_folder_that_cannot_be_written_keeps_nothing_and_costs_nothing_else(child, tmp_path):
    (tmp_path / "file").write_text("")
    assert peak.matmul_peak(1, tmp_path / "file" / "peaks").per_s == 8e10


def test_a_failure_is_not_tried_again_unless_asked(child, tmp_path):
    child.answer = peak.PeakError("no luck")
    for _ in range(3):
        with pytest.raises(peak.PeakError, match="no luck"):
            peak.matmul_peak(1, tmp_path)
    assert len(child.calls) == 1
    child.answer = {"float32": 5e10}
    assert peak.matmul_peak(1, tmp_path, again=True).per_s == 5e10
    assert peak.matmul_peak(1, tmp_path).per_s == 5e10


def test_a_real_child_measures_a_rate_that_a_processor_can_have(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(peak, "_failed", {})
    found = peak.matmul_peak(1, tmp_path)
    assert 1e8 < found.per_s < 1e14
    assert found.source.startswith("measured matmul, 1 thread, ")


def test_a_machine_without_cuda_says_so(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    monkeypatch.setattr(peak, "_failed", {})
    with pytest.raises(peak.PeakError, match="torch finds no CUDA device"):
        peak.copy_rates(tmp_path, name="none")
    with pytest.raises(RuntimeError, match="no CUDA device"):
        copies.rates()
    assert not list(tmp_path.iterdir())


def test_a_child_that_says_nothing_useful_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(peak, "_failed", {})
    with pytest.raises(peak.PeakError, match="invalid choice"):
        peak.matmul_peak(1, tmp_path, device="abacus")


def test_the_rate_is_flops_over_the_shortest_time(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "set_num_threads", lambda _n: None)
    monkeypatch.setattr(matmul, "_SHAPES", {"cpu": ((4, 5, 6), (40, 50, 60))})
    monkeypatch.setattr(matmul, "_fastest", lambda _torch, _device, x, _weight: 1.0 if x.shape[0] == 4 else 10.0)
    assert matmul.rates("cpu", 1) == dict.fromkeys(("bfloat16", "float32"), 2.0 * 40 * 50 * 60 / 10)


def _topology(root, cores, node=lambda _cpu: 0):
    for cpu, core in enumerate(cores):
        place = root / f"cpu{cpu}"
        (place / "topology").mkdir(parents=True)
        (place / "topology" / "core_id").write_text(f"{core}\n")
        (place / "topology" / "physical_package_id").write_text("0\n")
        (place / f"node{node(cpu)}").mkdir()


def test_threads_are_the_physical_cores_less_one(tmp_path, monkeypatch):
    monkeypatch.setattr(peak, "CPUS", tmp_path)
    monkeypatch.setattr(peak.os, "uname", lambda: type("U", (), {"machine": "x86_64"}))
    _topology(tmp_path, [0, 1, 2, 3, 0, 1, 2, 3])  # 4 cores, 2 threads each
    assert peak.engine_threads({}, range(8)) == 3
    assert peak.engine_threads({}, [0, 4]) == 1  # one core: none can be left free
    assert peak.engine_threads({}, [0, 1]) == 1
    assert peak.engine_threads({"VLLM_CPU_NUM_OF_RESERVED_CPU": "2"}, range(8)) == 2
    assert peak.engine_threads({"VLLM_CPU_OMP_THREADS_BIND": "0-2,5|6-7"}, range(8)) == 4
    assert peak.engine_threads({"VLLM_CPU_OMP_THREADS_BIND": "nobind"}, range(8)) == 8
    assert peak.engine_threads({"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "5"}, range(8)) == 5
    monkeypatch.setattr(peak.os, "uname", lambda: type("U", (), {"machine": "aarch64"}))
    assert peak.engine_threads({}, range(8)) == 7


def test_a_worker_stays_on_one_numa_node(tmp_path, monkeypatch):
    monkeypatch.setattr(peak, "CPUS", tmp_path)
    monkeypatch.setattr(peak.os, "uname", lambda: type("U", (), {"machine": "x86_64"}))
    _topology(tmp_path, range(8), node=lambda cpu: cpu // 4)
    assert peak.engine_threads({}, range(8)) == 3
    assert peak.engine_threads({}, range(3, 8)) == 1  # its first node has one core left
