"""Quantised checkpoints as three libraries write them, read number by number; minutes, and a network for the libraries.

The CI's test, with files in the same forms, is tests/cpu/test_quantised.py. QUANTISED_LIBRARIES=FOLDER names a folder
in which the libraries lie already.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import write_quantised
from safetensors.torch import load_file

from course_models import quantised
from course_models.checkpoint import slots

# Beside PINNED: what they import, without another torch.
NEEDED = ("pydantic", "loguru", "nvidia-ml-py", "omegaconf", "pulp", "scipy", "ninja")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A folder that holds the pinned libraries."""
    if there := os.environ.get("QUANTISED_LIBRARIES"):
        return there
    folder = tmp_path_factory.mktemp("libraries")
    quietly = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--target",
        str(folder),
    ]
    *own, transformers = write_quantised.PINNED
    subprocess.run([*quietly, "--no-deps", *own, "accelerate"], check=True)
    subprocess.run([*quietly, transformers, *NEEDED], check=True)
    return str(folder)


@pytest.mark.parametrize("form", write_quantised.FORMS)
def test_what_a_library_writes_is_read(libraries, tmp_path, form):
    script = Path(write_quantised.__file__)
    environment = os.environ | {"PYTHONPATH": libraries}
    subprocess.run([sys.executable, str(script), str(tmp_path), form], env=environment, check=True)
    folder = tmp_path / form.replace(" ", "_")
    due = load_file(folder / "due/w.safetensors")
    model = quantised.load(folder, dtype=torch.float32)
    rounded = [slot for slot in slots(model.config) if slot.name in due]
    assert len(rounded) == 7  # the products of the one layer; the head stays in all forms
    for slot in rounded:
        found, wanted = slot.of(model), due[slot.name]
        # compressed-tensors multiplies in bfloat16.
        digits = 0.0 if wanted.dtype == torch.float32 else 2.0**-7
        torch.testing.assert_close(found, wanted.float(), rtol=digits, atol=0.0, msg=slot.name)
