"""The models that the course has trained, as they lie beside the record of `docs/a_small_model.py`.

    model = pretrained.load("small")

`small` is a model of the Llama family over bytes, `draft` a smaller one that guesses what it will say, `experts` one
whose blocks are experts. `keep` is how that page leaves them: two files each, NAME.safetensors and NAME.json.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from course_models import checkpoint, downloaded
from course_models.model import Model

NAMES = ("small", "draft", "experts")
_FOLDER = "docs/a_small_model.artifacts"


def load(
    name: str,
    folder: Path | str | None = None,
    *,
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device | str = "cpu",
) -> Model:
    """Return one of the trained models.

    Args:
        name: one of `NAMES`.
        folder: where the two files lie; beside the record of this repository without it.
        dtype, device: as for `downloaded.load`.
    Raises:
        checkpoint.CheckpointRefused: no such model, its files are not there, or they are no checkpoint.
    """
    if name not in NAMES:
        raise checkpoint.CheckpointRefused(f"{name}: no such model: take one of {', '.join(NAMES)}")
    place = Path(folder) if folder is not None else _beside_the_record()
    # Read by Python and not by the library: then a page that loads a model is known to depend on its files.
    files = {checkpoint.WEIGHTS: f"{name}.safetensors", checkpoint.CONFIG: f"{name}.json"}
    with tempfile.TemporaryDirectory() as scratch:
        for standard, own in files.items():
            try:
                data = (place / own).read_bytes()
            except OSError as error:
                raise checkpoint.CheckpointRefused(
                    f"{place / own}: {error.strerror}: measure docs/a_small_model.py, or restore it with git"
                ) from None
            (Path(scratch) / standard).write_bytes(data)
        return downloaded.load(scratch, dtype=dtype, device=device)


def keep(name: str, model: Model, folder: Path | str) -> tuple[Path, Path]:
    """Write a model's two files into a folder: its weights in bfloat16, and its sizes.

    Returns:
        NAME.safetensors and NAME.json.
    """
    place = Path(folder)
    with tempfile.TemporaryDirectory() as scratch:
        checkpoint.save(model, scratch)
        weights, sizes = place / f"{name}.safetensors", place / f"{name}.json"
        weights.write_bytes((Path(scratch) / checkpoint.WEIGHTS).read_bytes())
        sizes.write_bytes((Path(scratch) / checkpoint.CONFIG).read_bytes())
    return weights, sizes


def _beside_the_record() -> Path:
    records = Path(__file__).resolve().parents[2] / "records"
    found = sorted(records.glob(f"*/{_FOLDER}"))
    return found[0] if found else records / "nvidia-h200" / _FOLDER
