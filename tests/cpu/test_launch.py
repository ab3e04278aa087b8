"""A kernel is kept for the next launch, and made again when its source was edited. No GPU: what loads is a stand-in."""

import pytest
import torch

from course_kernels.cuda import launch as launch_module
from course_kernels.cuda.compile import CompileError
from course_kernels.cuda.launch import load_kernel

core = pytest.importorskip("cuda.core")
SOURCE = '#include "b.cuh"\nextern "C" __global__ void f(int *x) { x[0] = NUMBER; }'


class Loaded:
    """Stands for what the driver makes of a cubin."""

    def __init__(self, cubin):
        self.cubin = cubin

    @classmethod
    def from_cubin(cls, cubin):
        return cls(cubin)

    def get_kernel(self, name):
        if f".text.{name}\0".encode() not in self.cubin:
            raise RuntimeError("named symbol not found")
        return Loaded(self.cubin)


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when a test says so; a card that is always there."""
    now = [0.0]
    monkeypatch.setattr(launch_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(launch_module, "_arch", lambda device: "sm_90a")
    monkeypatch.setattr(core, "ObjectCode", Loaded)
    monkeypatch.setattr(launch_module, "_HELD", {})
    return now


@pytest.fixture
def source(tmp_path):
    (tmp_path / "a.cu").write_text(SOURCE)
    (tmp_path / "b.cuh").write_text("#define NUMBER 1\n")
    return tmp_path / "a.cu"


def edits(source):
    yield lambda: source.write_text(SOURCE.replace("x[0]", "x[7]"))
    yield lambda: (source.parent / "b.cuh").write_text("#define NUMBER 7\n")


@pytest.mark.parametrize("which", [0, 1], ids=["the source", "a header"])
def test_an_edit_is_seen_at_the_next_look(clock, source, which):
    before = load_kernel(source, "f")
    list(edits(source))[which]()
    within = load_kernel(source, "f")
    clock[0] += launch_module.LOOK_EVERY_S
    after = load_kernel(source, "f")

    assert within is before
    assert after.cubin != before.cubin
    assert load_kernel(source, "f") is after


def test_without_an_edit_a_kernel_stays_the_same_object(clock, source, monkeypatch):
    first = load_kernel(source, "f")
    monkeypatch.setattr(launch_module, "compile_cubin", None)  # whoever compiles again stumbles
    for _ in range(3):
        clock[0] += 1
        assert load_kernel(source, "f") is first


def test_a_comment_gives_the_same_kernel(clock, source):
    first = load_kernel(source, "f")
    source.write_text(SOURCE + " // so\n")
    clock[0] += 1

    assert load_kernel(source, "f") is first


def test_a_new_header_that_shadows_another_is_seen(clock, source, tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "b.cuh").rename(shared / "b.cuh")
    monkeypatch.setattr("course_kernels.cuda.includes.SHARED", shared)
    before = load_kernel(source, "f")
    (tmp_path / "b.cuh").write_text("#define NUMBER 7\n")
    clock[0] += 1

    assert load_kernel(source, "f").cubin != before.cubin


def test_a_broken_edit_is_refused_until_it_is_mended(clock, source):
    before = load_kernel(source, "f")
    source.write_text("x")
    for _ in range(2):
        clock[0] += 1
        with pytest.raises(CompileError):
            load_kernel(source, "f")
    source.write_text(SOURCE)

    assert load_kernel(source, "f") is before


def test_a_source_that_is_gone_is_an_error(clock, source):
    load_kernel(source, "f")
    source.unlink()
    clock[0] += 1
    with pytest.raises(FileNotFoundError):
        load_kernel(source, "f")


def test_each_set_of_macros_is_a_kernel_of_its_own(clock, source):
    (source.parent / "b.cuh").write_text("")
    one, two = (load_kernel(source, "f", {"NUMBER": number}) for number in (1, 2))

    assert one.cubin != two.cubin
    assert load_kernel(source, "f", {"NUMBER": 1}) is one


def test_a_name_that_is_not_there_is_one_line(clock, source):
    with pytest.raises(
        ValueError, match=r'^a\.cu: no extern "C" __global__ g in it \(named symbol not found\)$'
    ):
        load_kernel(source, "g")


def test_a_tensor_on_another_card_is_refused(monkeypatch):
    class Elsewhere(torch.Tensor):
        is_cuda = True
        device = torch.device("cuda:1")

    said = r"^launch: expected a tensor on cuda:0, the current device, got cuda:1$"
    with pytest.raises(ValueError, match=said):
        launch_module._argument(torch.zeros(1).as_subclass(Elsewhere), 0)
