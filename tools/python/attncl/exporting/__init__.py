# SPDX-License-Identifier: MIT
"""Writes PyTorch modules as model files.  Needs torch, and for GPT-2 and BERT the transformers package."""
from __future__ import annotations

import copy
import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError("conversion needs PyTorch: pip install 'attncl[convert]'") from error

from .. import converting, decoders
from ..files import save
from ..model import Model, as_array
from ..tokenizer import directory_eos_metadata, eos_metadata, read_directory
from .checkpoint import build, load_source
from .modules import MODULES, class_name
from .parameters import Conversion, ConversionError, refuse
from .pretrained import MODELS

__all__ = ["ConversionError", "Report", "export"]


@dataclasses.dataclass
class Report:
    """The result of export().  difference: the largest between the module's and the file's outputs; None: not checked."""
    arch: str
    config: dict[str, Any]
    notes: list[str]
    difference: float | None = None


def _converter(module: torch.nn.Module) -> tuple[Callable[[Any, Conversion], None], Callable[[Any], Any]]:
    """The functions for a module's class, or for the class whose forward() it inherits."""
    for known, functions in MODULES.items():
        if isinstance(module, known) and type(module).forward is known.forward:
            return functions
    if type(module).__name__ in MODELS:
        return MODELS[type(module).__name__]
    refuse(f"{type(module).__name__} cannot be converted; what can: "
           + ", ".join([class_name(known) for known in MODULES] + list(MODELS)))


def _largest_difference(module: torch.nn.Module, probe: Callable[[Any], Any], path: str, device: str | None) -> float:
    """Runs the module, in F32 unless it is F64, and the file on the same random numbers.  Differences are relative to the
    output's largest element if that is above 1."""
    reference = copy.deepcopy(module).cpu().eval()
    if not any(p.dtype == torch.float64 for p in reference.parameters()):
        reference = reference.float()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        inputs, expected = probe(reference)
    with Model(path, device) as model:
        got = model.run({name: tensor.numpy() for name, tensor in inputs.items()})
    worst = 0.0
    for name, tensor in expected.items():
        want = tensor.double().numpy()
        if got[name].shape != want.shape:
            refuse(f"output {name} is {list(got[name].shape)}, the module's {list(want.shape)}")
        difference = np.abs(got[name] - want).max(initial=0) / max(1.0, np.abs(want).max(initial=0))
        worst = max(worst, difference) if difference == difference else float("inf")
    return float(worst)


def _check_output(path: str, source: Any) -> None:
    """Checks, before work is done for it, that the output can be written."""
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise FileNotFoundError(f"{path}: there is no directory {directory}")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a directory, expected a file")
    if isinstance(source, (str, os.PathLike)) and os.path.exists(source) and os.path.exists(path) and os.path.samefile(source, path):
        refuse(f"{path}: the output would overwrite what is read")


def export(source: Any, path: str | os.PathLike[str], *, module: str | None = None, settings: dict[str, Any] | None = None,
           config: Any = None, key: str | None = None, prefix: str = "", check: bool = True, limit: float = 1e-4,
           device: str | None = None, quiet: bool = False, tokenizer: bool = True) -> Report:
    """Writes a module as the model file `path`, runs both on random inputs and prints the largest difference.

    source    an nn.Module; or a state dict or the path of a file or directory, as attncl-convert takes them
    module    the class of a state dict, "TransformerEncoder"; settings: its arguments, {"nhead": 4}
    config    config.json of a GPT-2 or BERT state dict: a path or a dict
    key       which entry of a checkpoint holds the state dict; prefix: only its tensors below this name
    limit     ConversionError when they differ by more, relative to outputs above 1; no file is written then
    device    the device to check on, as Model() takes it
    tokenizer whether the model file of a directory's language model holds its tokenizer.json, so that it takes text

    Raises ConversionError, which names what cannot be expressed.  Every parameter is used, or named in the error or in
    a note.  The module is not changed; it is taken as in evaluation, without dropout.
    """
    notes: list[str] = []
    path = os.fspath(path)
    _check_output(path, source)
    if isinstance(source, (str, os.PathLike)) and decoders.find_family(source) not in (None, "gpt2") and not (module or settings or config or key or prefix):
        return Report("lm", converting.convert(source, path, tokenizer), [])
    directory = source if isinstance(source, (str, os.PathLike)) and os.path.isdir(source) else ""
    if not isinstance(source, torch.nn.Module):
        if isinstance(source, (str, os.PathLike)):
            if module and config:
                refuse("module and config: a state dict is of a class of PyTorch or of GPT-2 or BERT")
            source, config = load_source(source, config)
        source, notes = build(source, module, settings or {}, config, key, prefix)
    elif module or settings or config or key or prefix:
        refuse("module, settings, config, key and prefix are for state dicts, not for a module")
    convert, probe = _converter(source)
    out = Conversion(source)
    convert(source, out)
    out.finish()

    metadata = {"attncl.arch": out.arch, "attncl.config": json.dumps(out.config)}
    if out.arch == "lm" and directory:
        metadata.update(directory_eos_metadata(out.config["n_vocab"], directory))
        if tokenizer and (text := read_directory(directory)) is not None:
            metadata["attncl.tokenizer"] = text
    elif out.arch == "lm":
        said = (getattr(getattr(source, name, None), "eos_token_id", None) for name in ("generation_config", "config"))
        metadata.update(eos_metadata(out.config["n_vocab"], *said))
    report = Report(out.arch, out.config, notes + out.notes)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path) or ".", prefix=".attncl-") as directory:
        written = os.path.join(directory, "model.safetensors")
        save(written, {name: as_array(tensor) for name, tensor in out.tensors.items()}, metadata)
        if check:
            report.difference = _largest_difference(source, probe, written, device)
            if report.difference > limit:
                refuse(f"{path} is not written: it would differ from the module by {report.difference:.2g}, "
                       f"more than {limit:g}")
        os.replace(written, path)
    if not quiet:
        for note in report.notes:
            print("note:", note, file=sys.stderr)
        found = "not checked" if report.difference is None else f"largest difference {report.difference:.2g}"
        print(f"{path}: arch {report.arch}, {len(out.tensors)} tensors, {found}")
    return report
