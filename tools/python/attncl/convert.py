# SPDX-License-Identifier: MIT
"""attncl-convert: a PyTorch checkpoint as a model file."""
from __future__ import annotations

import argparse
import ast
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from . import converting, decoders
from .c_api import AttnclError
from .model import some

EPILOG = """\
SOURCE is a directory as the transformers package saves them, a *.gguf of llama.cpp or any part of one, a *.safetensors state dict, or a file of
torch.save() with a module or a state dict.  A state dict needs --module, unless config.json lies beside it (GPT-2, BERT).

  attncl-convert encoder.pt encoder.safetensors --module TransformerEncoder --set nhead=4 --set activation=gelu
  attncl-convert SmolLM2-135M/ smollm2.safetensors --dtype q8
  attncl-convert smollm2-q8_0.gguf smollm2.safetensors
"""


def parse_setting(text: str) -> tuple[str, Any]:
    """Parses KEY=VALUE; the value is true, false, a number or a word."""
    key, found, value = text.partition("=")
    if not found or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        return key, {"true": True, "false": False}[value.lower()] if value.lower() in ("true", "false") else ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _Parser(prog="attncl-convert", description=__doc__.partition(": ")[2], epilog=EPILOG,
                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("source", metavar="SOURCE")
    parser.add_argument("output", metavar="OUTPUT", help="the model file to write")
    parser.add_argument("--module", metavar="CLASS",
                        help="class of a state dict's module, of PyTorch or attncl.nn: Linear, TransformerEncoder, AFTLocal ...")
    parser.add_argument("--set", metavar="KEY=VALUE", type=parse_setting, action="append", default=[], dest="settings",
                        help="an argument of that class that a state dict does not tell, as PyTorch calls it")
    parser.add_argument("--config", metavar="FILE", help="config.json of a GPT-2 or BERT state dict")
    parser.add_argument("--key", help="the entry of a checkpoint that is the state dict")
    parser.add_argument("--prefix", default="", help="only the tensors below this name, which it is taken off")
    parser.add_argument("--no-check", action="store_false", dest="check", help="do not run both and compare")
    parser.add_argument("--limit", type=float, default=1e-4, help="largest difference allowed (%(default)s)")
    parser.add_argument("--device", metavar="D", help="device to check on: gpu, cpu, PLATFORM:DEVICE, or part of a name")
    parser.add_argument("--dtype", choices=("f32", "f16", "bf16", "q8", "q4"),
                        help="type of the matrices of a directory or a *.gguf, as of attncl convert; else they keep theirs")
    parser.add_argument("--tokenizer", metavar="FILE", default=True, help="the tokenizer.json that a directory's or *.gguf's model takes text by")
    parser.add_argument("--no-tokenizer", action="store_false", dest="tokenizer",
                        help="leave a directory's tokenizer.json out: the model takes token numbers")
    given = vars(parser.parse_args(arguments))
    source = given["source"]
    given["settings"] = dict(given["settings"])
    try:
        if _is_gguf(pathlib.Path(source)) or decoders.find_family(source):
            _convert_without_torch(given)
        elif given.pop("dtype") or not isinstance(given["tokenizer"], bool):
            decoders.refuse(f"--dtype and --tokenizer are for directories and *.gguf of {', '.join(decoders.FAMILIES)}; "
                            "attncl convert changes the types of others")
        else:
            pathlib.Path(source).stat()  # a missing source needs no PyTorch
            from .exporting import export
            export(given.pop("source"), given.pop("output"), **given)
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error)
    except (ImportError, AttnclError, decoders.ConversionError) as error:
        return _failed(error)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:  # of a damaged source
        return _failed(f"{source}: {type(error).__name__}: {error}")
    return 0


def _is_gguf(source: pathlib.Path) -> bool:
    """Whether it is a GGUF file; those that other programs downloaded may lack the ending."""
    if source.is_dir():
        files = sorted(file.name for file in source.glob("*.gguf"))
        if files and not any(source.glob("*.safetensors")) and not any(source.glob("*.bin")):
            decoders.refuse(f"{source} is a directory of GGUF files, give one of them: {some(files)}")
        return False
    if source.suffix == ".gguf" or not source.is_file():
        return source.suffix == ".gguf"
    with source.open("rb") as file:
        return file.read(4) == b"GGUF"


def _convert_without_torch(given: dict[str, Any]) -> None:
    """Converts a directory or a GGUF file."""
    unused = [name for name in ("module", "settings", "config", "key", "prefix") if given[name]]
    if unused:
        decoders.refuse(f"{unused[0]}: {given['source']} tells all")
    config = converting.convert(given["source"], given["output"], given["tokenizer"], given["dtype"] and given["dtype"].upper())
    print(f"{given['output']}: arch lm, {config['n_layers']} layers of width {config['d_model']}, texts of at most "
          f"{config['max_len']} tokens, not compared")


def _failed(error: BaseException | str) -> int:
    print("attncl-convert:", " ".join(str(error).split()), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
