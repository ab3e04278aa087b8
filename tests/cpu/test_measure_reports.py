"""What names a machine is taken out of a report: by length, in both codings, and nothing else."""

import pytest

from course_kernels.measure import reports
from course_kernels.measure.counters import CountersUnavailable
from course_kernels.measure.reports import private_words, read_seen, scrubbed

HOST, HOME = "node-17.cluster.example", "/home/ada"
# Made up, in the manner of such a file: lengths, texts between bytes, a text in UTF-16.
REPORT = (
    b"NVR\x00\x12\x00\x00\x00"
    + bytes([len(HOST)])
    + HOST.encode()
    + b"\x0a\x2b/home/ada/course/src/course_kernels/copy/k01.cu\x00"
    + "/home/ada/course".encode("utf-16-le")
    + b"\x00\x00sm__warps_active.avg\x00/srv/adam/other\x00"
)


def test_host_and_folders_go_and_all_else_stays():
    clean = scrubbed(REPORT, [HOST, HOME, HOME + "/course"])

    assert len(clean) == len(REPORT)
    assert HOST.encode() not in clean
    assert b"/home/ada/" not in clean
    assert "/home/ada".encode("utf-16-le") not in clean
    assert b"________________/src/course_kernels/copy/k01.cu\x00" in clean
    assert b"sm__warps_active.avg\x00/srv/adam/other\x00" in clean
    assert clean[:9] == REPORT[:9]


def test_a_name_between_fields_that_look_like_letters_goes_and_a_short_one_stays():
    assert scrubbed(b"0node-17B ad", ["node-17", "ad"]) == b"0_______B ad"


def test_letters_of_several_bytes_keep_their_length():
    word = "Zoë-pc"
    clean = scrubbed(b"\x07" + word.encode() + b"\x00", [word])

    assert clean == b"\x07" + b"_" * 7 + b"\x00"


def test_this_machine_is_named():
    assert str(reports.SOURCES.parent) in private_words()


def test_without_ncu_it_says_so(monkeypatch):
    from course_kernels.add_norm import k01_thread_a_row
    from course_kernels.add_norm.problem import PROBLEM

    monkeypatch.setattr(reports.shutil, "which", lambda name: None)
    with pytest.raises(CountersUnavailable, match="not on PATH"):
        reports.take_report(k01_thread_a_row, PROBLEM.check_on[0])


SAID = """==PROF== Connected to process 7
==PROF== Disconnected from process 7
"ID","Kernel Name","dram__bytes_read.sum","profiler__replayer_passes"
"","","byte","pass"
"0","add_norm_warp_a_row","1048576","3"
"""


def test_what_ncu_said_of_one_kernel_is_read():
    seen = read_seen(SAID, ["dram__bytes_read.sum"])

    assert seen.passes == 3
    assert seen.of("dram__bytes_read.sum") == 2**20


@pytest.mark.parametrize("fault", ["no kernel", "no passes", "no metric"])
def test_what_is_missing_is_named(fault):
    said = {
        "no kernel": SAID.rpartition('"0"')[0],
        "no passes": SAID.replace("replayer_passes", "perfworks_session_reuse"),
        "no metric": SAID.replace("bytes_read", "bytes_write"),
    }[fault]
    with pytest.raises(
        CountersUnavailable,
        match=r"expected one kernel|has no dram__bytes_read|has no profiler__replayer_passes",
    ):
        read_seen(said, ["dram__bytes_read.sum"])
