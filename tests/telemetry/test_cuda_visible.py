"""``CUDA_VISIBLE_DEVICES`` resolved against made-up lists of devices."""

import pytest

from workbench.telemetry.answers import Device
from workbench.telemetry.cuda_visible import visible
from workbench.telemetry.reading import Reading


def gpu(index, uuid, name="H100", **more):
    return Device(uuid, f"nvml:{index}", index, uuid, name, Reading(1), **more)


def mig(parent, number, uuid, ids):
    return Device(uuid, f"nvml:{parent}/mig{number}", parent, uuid, "1g", Reading(1), "instance", instance_ids=ids)


PLAIN = [gpu(0, "GPU-aa11"), gpu(1, "GPU-ab22"), gpu(2, "GPU-cc33")]
MIXED = [
    gpu(0, "GPU-aa11"),
    gpu(1, "GPU-bb22", mig_mode="on", migs=(mig(1, 0, "MIG-x1", (1, 0)), mig(1, 1, "MIG-x2", (2, 0)))),
]


def seen(devices, value, **environ):
    if value is not None:
        environ["CUDA_VISIBLE_DEVICES"] = value
    found = visible(devices, environ)
    return [d.label.removeprefix("nvml:") for d in found.devices], found.notes


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        (None, ["0", "1", "2"]),
        ("2,0", ["2", "0"]),
        (" 1 , 2 ", ["1", "2"]),
        ("1x,+2", ["1", "2"]),
        ("GPU-cc33,GPU-aa11", ["2", "0"]),
        ("GPU-cc", ["2"]),
    ],
)
def test_order_and_forms(value, labels):
    assert seen(PLAIN, value) == (labels, ())


@pytest.mark.parametrize(
    ("value", "labels", "note"),
    [
        ("", [], "is empty"),
        ("-1", [], "'-1' names no device"),
        ("0,2,-1,1", ["0", "2"], "'-1' names no device"),
        ("0,7,1", ["0"], "'7' names no device"),
        ("none", [], "'none' names no device"),
        ("0,,1", ["0"], "'' names no device"),
        ("0,1,0", [], "'0' is there twice"),
        ("GPU-a", [], "'GPU-a' names several"),
        ("GPU-aa11,GPU-aa", [], "'GPU-aa' is there twice"),
        ("GPU-aa11,1", ["0"], "'1' names no device"),
        ("0,GPU-ab22", ["0"], "'GPU-ab22' names no device"),
        ("MIG-x1", [], "'MIG-x1' names no device"),
    ],
)
def test_what_cuda_ignores_is_said(value, labels, note):
    got, notes = seen(PLAIN, value)
    assert got == labels
    assert len(notes) == 1
    assert note in notes[0]


@pytest.mark.parametrize(
    ("value", "labels", "notes"),
    [
        (None, ["1/mig0"], 1),
        ("0", ["0"], 0),
        ("1", ["1/mig0"], 1),
        ("0,1", ["1/mig0"], 1),
        ("MIG-x2", ["1/mig1"], 0),
        ("MIG-x2,MIG-x1", ["1/mig1"], 1),
        ("MIG-GPU-bb22/2/0", ["1/mig1"], 0),
        ("MIG-GPU-bb22/9/0", [], 1),
        ("GPU-bb22", ["1/mig0"], 1),
    ],
)
def test_mig(value, labels, notes):
    got = seen(MIXED, value)
    assert got[0] == labels
    assert len(got[1]) == notes


def test_mig_without_instances_is_no_device():
    devices = [gpu(0, "GPU-aa11", mig_mode="on"), gpu(1, "GPU-bb22")]
    assert seen(devices, None) == (["1"], ("nvml:0: MIG is on and no instance can be used",))


@pytest.mark.parametrize(
    ("value", "order", "guess"),
    [(None, None, True), ("1", None, True), ("1", "PCI_BUS_ID", False), ("GPU-b", None, False)],
)
def test_numbers_of_different_gpus_are_a_guess(value, order, guess):
    devices = [gpu(0, "GPU-aa11", "H100"), gpu(1, "GPU-bb22", "L4")]
    notes = seen(devices, value, **({"CUDA_DEVICE_ORDER": order} if order else {}))[1]
    assert any("the order is a guess" in note for note in notes) == guess
