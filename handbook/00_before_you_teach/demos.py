# ---
# id: demos
# title: "Every live demo, with a watch"
# order: 5
# description: What each live demo keeps the room waiting, from Enter to prompt, in a process that has compiled nothing.
# needs: gpu
# ---

# %% [markdown]
# # Every live demo, with a watch
#
# A live demo that you have not timed is a gamble with other people's minutes. You press Enter, nothing happens on the
# screen, and you begin to talk faster. After this page you know for each demo of the course how long you will wait, so that you can announce it:
# *this takes about as long as writing down a guess.*
#
# Each session map gives every demo its own step, and a demo that takes longer than its step is refused before
# you ever see the map. The waits below are the waits that your students will see.
#
# ## What a wait is made of
#
# The multiplication itself takes no longer than the blink of an eye. You wait for everything around it, like a guest in
# a
# restaurant whose kitchen has only just opened:
#
# - **Python starts and reads PyTorch** from the disk. Nobody gets around that. (After the first start, Python keeps the compiled form of PyTorch's source, here too. Some containers forbid that, with `PYTHONDONTWRITEBYTECODE`, and then every start takes several seconds longer.)
# - **The kernels are compiled.** Kernels that were compiled yesterday would be ready at once; here we reuse none of
#   them.
# - **The true answer is worked out** in float64, and every kernel's answer is checked against it before the clock starts.
# - **Each kernel runs many times,** for as long as `--seconds` says.
#
# So here every demo runs in its own process, and the compilers' caches are empty folders. This shows what the
# *first* run of the morning is like. We run one demo, the one that asks PyTorch's compiler for a kernel,
# twice, without emptying the folders in between.
#
# /// predict | Does the wait grow with the number of kernels?
# Take the demo with the fewest kernels below, and the one with the most.
#
# - [l4_ladder.wait_s >= 6 * l1_peak.wait_s] Yes: six times the kernels, six times the wait or more
# - [1.3 * l1_peak.wait_s <= l4_ladder.wait_s < 6 * l1_peak.wait_s] Yes, but less than six times
# - [l4_ladder.wait_s < 1.3 * l1_peak.wait_s] Hardly: starting up is nearly all of it
# /// reveal
# The demo with one kernel, nothing but multiply-adds, takes {{ l1_peak.wait_s:.0f }} s; the one with six kernels of the ladder takes {{ l4_ladder.wait_s:.0f }} s. [The table](#the-waits) has the wait of yours. Most of the shorter of the two waits is the cost of starting up.
# ///

# %% tags=["fold"]
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from course_kernels.measure import quantity, record

# What is typed in the room, as the maps say it.
DEMOS = {
    "opening": (
        "PYTHONPATH=src python -m course_kernels.measure sgemm/k01_naive sgemm/library.cublas "
        "--workload dtype=float32,M=4096,N=4096,K=4096"
    ),
    "l1_peak": (
        "PYTHONPATH=src python -m course_kernels.measure fused_multiply_add/k01_chains --workload "
        "dtype=float32,N=270336,C=8,K=8192 --seconds 0.5"
    ),
    "l2_fork": (
        "PYTHONPATH=src python -m course_kernels.measure divergence/k01_branches "
        "divergence/k02_sorted --workload dtype=float32,N=16777216,W=32 --seconds 0.5"
    ),
    "l3_turn": (
        "PYTHONPATH=src python -m course_kernels.measure transpose/k01_naive transpose/k02_tiled "
        "transpose/k03_padded transpose/k05_vectorised --workload dtype=float32,M=16384,N=16384 "
        "--seconds 0.5"
    ),
    "l4_ladder": (
        "PYTHONPATH=src python -m course_kernels.measure sgemm/k01_naive sgemm/k02_coalesced "
        "sgemm/k03_shared_tiles sgemm/k04_register_column sgemm/k05_register_tile "
        "sgemm/library.cublas --workload dtype=float32,M=4096,N=4096,K=4096 --seconds 0.3"
    ),
    "l5_steps_of_the_ladder": (
        "PYTHONPATH=src python -m course_kernels.measure sgemm/k01_naive sgemm/k05_register_tile "
        "sgemm/k07_conflict_free sgemm/k09_asynchronous sgemm/library.cublas --workload "
        "dtype=float32,M=4096,N=4096,K=4096 --seconds 0.3"
    ),
    "l6_from_lanes_to_mills": (
        "PYTHONPATH=src python -m course_kernels.measure gemm/k01_cuda_cores gemm/k02_wmma "
        "gemm/k03_mma_sync gemm/k04_wgmma gemm/k05_triton gemm/library.cublas --workload "
        "dtype=bfloat16,M=4096,N=4096,K=4096 --seconds 0.3"
    ),
    "l7_nobody_waited": (
        "PYTHONPATH=src python -m course_kernels.measure reduction/k02_tree reduction/k03_shuffle "
        "reduction/k04_vectorised reduction/library.torch_sum --workload dtype=float32,N=268435456 "
        "--seconds 0.3"
    ),
    "l8_plain_recipe": (
        "PYTHONPATH=src python -m course_kernels.measure attention/k01_materialised --workload "
        "dtype=bfloat16,B=4,H=16,N=4096,D=128,causal=False"
    ),
    "w1_benchmark": (
        "PYTHONPATH=src python -m course_kernels.measure attention/k01_materialised "
        "attention/k02_teaching attention/library.sdpa_efficient --workload "
        "dtype=float32,B=4,H=16,N=4096,D=128 --seconds 0.5"
    ),
    "w1_tensor_cores": (
        "PYTHONPATH=src python -m course_kernels.measure attention/k01_materialised "
        "attention/k03_flash attention/library.sdpa_flash attention/library.sdpa_cudnn --workload "
        "dtype=bfloat16,B=4,H=16,N=4096,D=128 --seconds 0.5"
    ),
    "w2_sass": (
        'PYTHONPATH=src python -c "from course_kernels.cuda import compile, disassemble; from '
        "course_kernels.gemm import k04_wgmma; "
        "print(disassemble.sass(compile.compile_cubin(k04_wgmma.SOURCE, 'sm_90a')))\" | grep -nE "
        '"HGMMA|LDGSTS|WARPGROUP|BAR|BRA"'
    ),
    "w2_race": (
        "PYTHONPATH=src python -m course_kernels.measure gemm/k04_wgmma gemm/k08_roles "
        "gemm/k14_tuned gemm/library.cublas --workload dtype=bfloat16,M=4096,N=4096,K=4096 --seconds "
        "0.5"
    ),
    "w3_gemm": (
        "PYTHONPATH=src python -m course_kernels.measure gemm/k04_wgmma gemm/k05_triton "
        "gemm/library.cublas gemm/library.cublaslt --workload dtype=bfloat16,M=4096,N=4096,K=4096 "
        "--seconds 0.5"
    ),
    "w3_attention": (
        "PYTHONPATH=src python -m course_kernels.measure attention/k03_flash "
        "attention/k04_specialised attention/library.sdpa_cudnn --workload "
        "dtype=bfloat16,B=1,H=16,N=16384,D=128 --seconds 0.5"
    ),
    "w4_rows": (
        "for M in 1 64 4096; do PYTHONPATH=src python -m course_kernels.measure gemm/library.cublas "
        "--workload dtype=bfloat16,M=$M,N=8192,K=8192; done"
    ),
    "w4_fusion": (
        "PYTHONPATH=src python -m course_kernels.measure bias_gelu/library.eager "
        "bias_gelu/library.compiled bias_gelu/k01_fused --workload dtype=bfloat16,M=32768,N=16384"
    ),
    "w5_widths": (
        "for FOLDER in gemm/library.cublas gemm_fp8/library.cublaslt; do PYTHONPATH=src python -m "
        "course_kernels.measure $FOLDER --workload dtype=bfloat16,M=4096,N=4096,K=4096; done"
    ),
    "w6_cheat": (
        "PYTHONPATH=src python -m course_kernels.measure refusals/cheats.faster_than_floor --workload "
        "dtype=float32,M=8192,N=8192"
    ),
}
REFUSED_ON_PURPOSE = {
    "w6_cheat"
}  # the measurement says no, with exit code 2: that is the demo
TWICE = "w4_fusion"
CACHES = (
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "XDG_CACHE_HOME",
    "COURSE_CACHE_DIR",
)


def waits_for(name: str, times: int = 1) -> list[float]:
    """Seconds from Enter to prompt, in a fresh process with nothing compiled; the next times with what was kept."""
    seconds = []
    with tempfile.TemporaryDirectory() as fresh:
        python = Path(
            fresh, "python"
        )  # the word `python` means the Python of this page
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        room = os.environ | {
            cache: str(Path(fresh, cache.lower())) for cache in CACHES
        }
        room["PATH"] = os.pathsep.join((fresh, os.environ["PATH"]))
        for _ in range(times):
            start = time.perf_counter()
            done = subprocess.run(
                ["bash", "-c", f"set -o pipefail; {DEMOS[name]}"],
                env=room,
                capture_output=True,
                text=True,
            )
            seconds.append(time.perf_counter() - start)
            if done.returncode != (2 if name in REFUSED_ON_PURPOSE else 0):
                said = (
                    done.stderr.strip() or done.stdout.strip() or "nothing"
                ).splitlines()[-1]
                failed.append(f"{name}: exit code {done.returncode}: {said}")
    return seconds


# What Python makes of PyTorch's text is there from here on, as it is wherever PyTorch has run before.
subprocess.run([sys.executable, "-c", "import torch"], check=True)
failed: list[str] = []
waits = {name: waits_for(name) for name in DEMOS if name != TWICE}
waits[TWICE] = waits_for(TWICE, times=2)
if failed:
    raise RuntimeError("; ".join(failed))
record(
    **{
        name: {"wait_s": quantity(seconds[0], "s", how="device")}
        for name, seconds in waits.items()
    },
    again={"wait_s": quantity(waits[TWICE][1], "s", how="device")},
    all_of_them=quantity(
        sum(seconds[0] for seconds in waits.values()), "s", how="device"
    ),
)

# %% [markdown]
# ## The waits
#
# /// table
# columns:
#   - {label: session, value: session}
#   - {label: what the room sees, value: demo}
#   - {label: "wait, s", value: wait_s, format: ".0f"}
# rows:
#   - {name: opening, session: Opening, demo: "The naive multiply against the library"}
#   - {name: l1_peak, session: L1, demo: "Nothing but multiply-adds"}
#   - {name: l2_fork, session: L2, demo: "A warp at a fork"}
#   - {name: l3_turn, session: L3, demo: "Four transposes in one race"}
#   - {name: l4_ladder, session: L4, demo: "The ladder, all five and cuBLAS"}
#   - {name: l5_steps_of_the_ladder, session: L5, demo: "Four of our kernels and the library, in turns"}
#   - {name: l6_from_lanes_to_mills, session: L6, demo: "From the lanes to the tensor cores: five kernels and the library"}
#   - {name: l7_nobody_waited, session: L7, demo: "The part that nobody waited for"}
#   - {name: l8_plain_recipe, session: L8, demo: "The plain recipe, and its percent of peak"}
#   - {name: w1_benchmark, session: W1, demo: "Their kernel against PyTorch, in fp32"}
#   - {name: w1_tensor_cores, session: W1, demo: "The same loop on tensor cores, in bf16"}
#   - {name: w2_sass, session: W2, demo: "Make the sheet: twenty lines of machine code"}
#   - {name: w2_race, session: W2, demo: "Three of ours against the library"}
#   - {name: w3_gemm, session: W3, demo: "Triton beside the library"}
#   - {name: w3_attention, session: W3, demo: "One rung down: attention in Triton, in Gluon, in cuDNN"}
#   - {name: w4_rows, session: W4, demo: "1, 64 and 4096 rows"}
#   - {name: w4_fusion, session: W4, demo: "Two kernels, or one"}
#   - {name: w5_widths, session: W5, demo: "Sixteen bits against eight, on this card"}
#   - {name: w6_cheat, session: W6, demo: "The machine's clever kernel, refused"}
# caption: "From Enter to prompt, in a fresh process with nothing compiled yet. All of them, one after the other, take {{ all_of_them:.0f }} s."
# ///
#
# And the second time? *Two kernels, or one* took {{ w4_fusion.wait_s:.0f }} s from cold, and {{ again.wait_s:.0f }} s when
# the compilers could reuse what they had made.
#
# The rest of a wait goes into starting Python, checking, and running many times, and no cache saves that. So run each demo
# once before the session: not to make it faster, but to know that it works.
#
# A command that loops over several sizes makes you wait for *each* of them: every turn of the loop starts Python again.
# Talk between the turns.
#
# ## Three rules for the room
#
# 1. **Say how long it takes before you press Enter.** A wait that you announced is a pause. A wait that you did not
#    announce is a failure.
# 2. **Never fill it with new material.** The students are looking at the cursor. Take guesses, write the tally, draw
#    the axis
#    on which the answer will go.
# 3. **If it takes half as long again as you announced, stop waiting.** Show the recorded result; each map names it beside the demo.
#    Nobody came to watch you repair a driver.
#
# Your machine is not ours. It has different disks, a different card, and perhaps PyTorch on a network drive.
# Measure again with `nox -s docs -- --page handbook/00_before_you_teach/demos.py`, and the maps will show your waits.
#
# /// exercise | Your own watch
# Run the demo of your next session twice in a row, with a watch in your hand. How long is the first wait, how long is
# the second, and where did the difference go?
# /// answer
# The second time, the compilers find what they made in their folders, and the operating system may still hold PyTorch's
# files in memory. You can find out which of the two made the difference: empty the folders (`TRITON_CACHE_DIR`,
# `TORCHINDUCTOR_CACHE_DIR`, `CUDA_CACHE_PATH`, each set to a new folder) and run the demo once more. The table shows the first run and not the
# second, because something is always cold when you stand in the room.
# ///
#
# **Where this leads.** [The opening demo](opening_demo.py) word by word, and how a measurement is made:
# [how every number here is measured](../../docs/how_we_measure.py).
