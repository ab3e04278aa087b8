#!/usr/bin/env bash
# Helion 1.5.1 does not import beside torch 2.11, which its page allows and of which its metadata says nothing; nor does
# it import without `packaging`, which pip does not bring with it.
#
# Seen with helion 1.5.1, torch 2.11.0 (CUDA 13, no card) and 2.13.0 (CPU): "cannot import name 'IntelGPUError' from
# 'torch._inductor.runtime.triton_compat'", a private module. The page of the package asks for PyTorch 2.9 or later; its
# metadata names no torch, so pip says nothing. Helion 1.5.0 imports beside torch 2.11.0, and 1.5.1 beside 2.13.0.
# The metadata does not name packaging either: "No module named 'packaging'".
# It matters to whoever has to keep an older torch: write helion==1.5.0 packaging.
#
# It downloads torch with CUDA, about 5 GB once unpacked. Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
pip=(install --quiet --disable-pip-version-check)
is_so=true
found() { # what is expected, and a label
  local said
  said=$("$folder/venv/bin/python" -W ignore -c "import helion" 2>&1 | tail -n 1) || true
  echo "$2: ${said:-imports}"
  [[ ${said:-imports} == $1 ]] || is_so=false
}
for torch in 2.11.0 2.13.0; do
  rm -rf "$folder/venv"
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" "${pip[@]}" "torch==$torch" triton helion==1.5.1
  found "ModuleNotFoundError: No module named 'packaging'" "torch $torch, helion 1.5.1, as pip installs it"
  "$folder/venv/bin/pip" "${pip[@]}" packaging
  if [[ $torch == 2.11.0 ]]; then
    found "ImportError: cannot import name 'IntelGPUError'*" "torch $torch, helion 1.5.1, packaging"
    "$folder/venv/bin/pip" "${pip[@]}" helion==1.5.0
    found imports "torch $torch, helion 1.5.0, packaging"
  else
    found imports "torch $torch, helion 1.5.1, packaging"
  fi
done
if $is_so; then echo "as described"; else echo "this has changed"; exit 1; fi
