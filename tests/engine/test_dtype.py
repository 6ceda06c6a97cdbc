"""What ``auto`` stands for: float32 where bfloat16 would be emulated."""

import pytest

from workbench.config import EngineConfig
from workbench.engine import dtype


@pytest.mark.parametrize(
    ("line", "computes"),
    [
        ("flags\t\t: fpu avx2 fma f16c", False),
        ("flags\t\t: fpu avx2 avx512f avx512bw", True),
        ("flags\t\t: fpu avx2 amx_bf16", True),
        ("Features\t: fp asimd bf16 i8mm", True),
        ("Features\t: fp asimd asimdhp", False),
        ("processor\t: 0", True),  # not said: left to vLLM
    ],
)
def test_which_processors_compute_bf16(tmp_path, line, computes):
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\n{line}\nbugs\t: none\n")
    assert dtype.computes_bf16(path) is computes


def test_an_unreadable_cpuinfo_leaves_it_to_vllm(tmp_path):
    assert dtype.computes_bf16(tmp_path / "none")


@pytest.mark.parametrize(
    ("asked", "device", "computes", "becomes"),
    [
        ("auto", "cpu", False, "float32"),
        ("auto", "cpu", True, "auto"),
        ("auto", "cuda", False, "auto"),
        ("bfloat16", "cpu", False, "bfloat16"),
    ],
)
def test_only_auto_on_a_cpu_changes(monkeypatch, asked, device, computes, becomes):
    monkeypatch.setattr(dtype, "computes_bf16", lambda: computes)
    assert dtype.fitted(EngineConfig(dtype=asked), device).dtype == becomes
