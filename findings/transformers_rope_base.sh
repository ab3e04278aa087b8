#!/usr/bin/env bash
# transformers takes 10,000 for RoPE's base, without a word, where a Llama's config.json says it in a place that this
# version does not look at: 4.57.6 in every file that transformers 5 has written, and 5.24.0 in an object by type of
# layer.
#
# transformers 4 has the base at the top, `rope_theta`, transformers 5 in `rope_parameters`. The models of a larger
# base, every Llama since the third, load without an error and write nonsense; a file of base 10,000 hides it. Where
# both keys are there and differ, 4 takes the one at the top and 5 the one in the object.
# Our reader refuses a config in which two places differ, and one by type of layer.
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 4.57.6 5.24.0; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet --disable-pip-version-check "transformers==$version"
  "$folder/$version/bin/python" - 2>/dev/null <<'PYTHON'
import sys

import transformers
from transformers import LlamaConfig

own = {"rope_theta": 500000.0, "rope_type": "default"}
FORMS = {
    "as 5 writes it": {"rope_parameters": own},
    "by type of layer": {"rope_parameters": {"full_attention": own, "sliding_attention": own}},
    "in both places": {"rope_theta": 20000.0, "rope_parameters": own},
}
older = transformers.__version__.startswith("4.")
bases = []
print(f"transformers {transformers.__version__}")
for form, said in FORMS.items():
    config = LlamaConfig.from_dict(said)
    bases.append(config.rope_theta if older else config.rope_parameters["rope_theta"])
    print(f"{form}: {bases[-1]:,.0f}")
is_so = bases == ([10000.0, 10000.0, 20000.0] if older else [500000.0, 10000.0, 500000.0])
print("as described" if is_so else "this has changed")
sys.exit(not is_so)
PYTHON
done
