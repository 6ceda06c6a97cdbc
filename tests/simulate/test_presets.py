"""Devices to simulate: published figures, and efficiencies that say where they come from."""

import pytest

from workbench.errors import InputError
from workbench.simulate import presets
from workbench.simulate.presets import Device, device, devices


@pytest.mark.parametrize(
    ("asked", "key", "processors", "gib"),
    [
        ("H100", "h100-sxm", 132, 79.6),
        ("h200", "h200", 132, 140.4),
        ("A100", "a100-80gb-sxm", 108, 80.0),
        ("b200", "b200", 148, 179.1),
        ("L40S", "l40s", 142, 45.0),
        ("RTX 4090", "rtx-4090", 128, 24.0),
    ],
)
def test_devices_by_the_names_people_use(asked, key, processors, gib):
    found = device(asked)
    assert (found.key, found.processors) == (key, processors)
    assert found.memory / 2**30 == pytest.approx(gib, abs=0.05)


def test_every_device_reaches_less_than_its_peaks_and_says_why():
    for key in devices():
        reach = device(key).efficiency
        assert all(0.5 < getattr(reach, name) < 1 for name in ("gemm", "stream", "attention", "kv", "link"))
        assert reach.source
        assert (reach.error is None) == (key == "rtx-4090")


def test_links():
    assert device("H100").nvlink == 450e9
    assert device("L40S").nvlink is None


def test_the_spread_is_at_least_as_wide_as_what_was_measured():
    best, worst = presets.spread(device("L40S").efficiency)
    assert (best.gemm, worst.gemm) == (0.86, 0.66)
    assert (best.gemm_s, worst.attention_s) == (2.0e-6, pytest.approx(12.2e-6))


def test_it_travels_as_plain_data():
    assert Device.from_dict(device("H100").as_dict()) == device("H100")


def test_an_unknown_gpu_is_named():
    with pytest.raises(InputError, match="GPU: got 'V100', expected one of h100-sxm"):
        device("V100")
