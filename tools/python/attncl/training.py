# SPDX-License-Identifier: MIT
"""Trains models by the library, from a configuration and data.

train() writes the files of `attncl train`, and each can resume what the other began:

    config.json, log.jsonl, model.safetensors, best.safetensors, checkpoints/step-N.safetensors
"""
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import math
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from . import files
from .c_api import Status, TrainerOptions, TrainPlan, TrainState, TrainStep, check_readable, library, make_error
from .model import Handle, Model, drop_graphs, open_context

# Keys that may change when a training is resumed.
_MAY_CHANGE = {f"train.{key}" for key in ("steps", "eval_every", "checkpoint_every", "keep", "patience", "sample")}


class Plan(NamedTuple):
    """The plan of a training run; docs/training.md explains the keys."""
    steps: int
    eval_every: int
    checkpoint_every: int
    keep: int
    patience: int
    sample: int
    n_train_batches: int
    n_valid_batches: int


class State(NamedTuple):
    """The progress of a training run.  The best held-out loss is infinite before the first evaluation; the accuracy is NaN
    unless targets are labels."""
    step: int
    best_loss: float
    best_step: int
    n_worse: int
    accuracy: float


class Step(NamedTuple):
    """The result of a step: the loss before it, the gradient norm before clipping."""
    step: int
    loss: float
    grad_norm: float
    learning_rate: float
    n_tokens: int


class Trainer(Handle):
    """A model in training: for step in trainer, or trainer.step().

    config    {"arch", "model", "train"} as docs/training.md lists them, or the path of its JSON file
    data      the path of a UTF-8 text, read by a tokenizer or by characters; or one of tokens, pairs and batches, which may be paths, too
    tokens    token numbers, integers [n]
    batches   a dict of the model's inputs and "targets", steps first
    init      a model file with the first values of the parameters, and for `data` the tokenizer
    tokenizer the path of a tokenizer.json for `data`, in place of that of `init` or of characters
    steps, seed    in place of the configuration's
    """

    def __init__(self, config: Mapping[str, Any] | str | os.PathLike[str], data: str | os.PathLike[str] | None = None, *,
                 tokens: Any = None, pairs: str | os.PathLike[str] | None = None, batches: Any = None,
                 init: str | os.PathLike[str] | None = None, tokenizer: str | os.PathLike[str] | None = None, steps: int | None = None, seed: int | None = None,
                 device: str | None = None, precision: str | None = None):
        options = TrainerOptions()
        if steps is not None:
            options.steps = ctypes.pointer(ctypes.c_int64(steps))
        if seed is not None:
            options.seed = ctypes.pointer(ctypes.c_uint64(seed))
        text = json.dumps({"arch": "lm", **read_config(config)}).encode()
        if tokens is not None and not isinstance(tokens, (str, os.PathLike)):
            tokens = {"tokens": tokens}
        sources = {"data": data, "tokens": tokens, "pairs": pairs, "batches": batches, "init": init, "tokenizer": tokenizer}
        lib, context, trainer = library(), ctypes.c_void_p(), ctypes.c_void_p()
        directory = tempfile.mkdtemp(prefix="attncl-")  # for arrays, which the library reads from files while it trains
        try:
            for name, source in sources.items():
                if isinstance(source, Mapping):
                    path = os.path.join(directory, name)
                    files.save(path, source)
                    source = path
                if source is not None:
                    setattr(options, name, check_readable(source))
            context = open_context(device, precision)
            lib.trainer_create(context, text, ctypes.byref(options), ctypes.byref(trainer))
        except BaseException:
            lib.context_destroy(context)
            shutil.rmtree(directory)
            raise
        self._model: Model = Model.__new__(Model)
        self._model._adopt(context, ctypes.c_void_p(lib.trainer_model(trainer)))
        self._lib, self._handle, self._lock = lib, trainer, self._model._lock
        self._release_with((drop_graphs, self._model._graphs), (lib.trainer_destroy, trainer), (lib.context_destroy, context),
                   (shutil.rmtree, directory))
        self._model._release, self._model._owner = self._release, self

    def close(self) -> None:
        self._model.close()  # also closes its decoders and the trainer

    def __repr__(self) -> str:
        if self.closed:
            return "<attncl.Trainer, closed>"
        state = self.state
        best = f", best held-out loss {state.best_loss:.4g} at step {state.best_step}" if math.isfinite(state.best_loss) else ""
        return f"<attncl.Trainer {self.config['arch']}: step {state.step} of {self.plan.steps}{best}>"

    @property
    def config(self) -> dict[str, Any]:
        """The configuration with every default and the values from data and arguments."""
        return json.loads(self._ask(self._lib.trainer_config))

    @property
    def plan(self) -> Plan:
        return Plan(*self._fill(TrainPlan(), self._lib.trainer_plan))

    @property
    def state(self) -> State:
        return State(*self._fill(TrainState(), self._lib.trainer_state))

    @property
    def model(self) -> Model:
        """The trained model; its weights change with each step, and it is closed with the trainer."""
        self._check_open()
        return self._model

    def step(self) -> Step:
        """Takes a step, even beyond the planned steps."""
        return Step(*self._fill(TrainStep(), self._lib.trainer_step))

    def __iter__(self) -> Iterator[Step]:
        """Takes the remaining steps."""
        steps = self.plan.steps
        while self.state.step < steps:
            yield self.step()

    def evaluate(self) -> float:
        """The mean loss of the held-out part, in nats per target."""
        loss = ctypes.c_double()
        self._ask(self._lib.trainer_evaluate, ctypes.byref(loss))
        return loss.value

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint: a model file with the optimiser's state."""
        self._ask(self._lib.trainer_save, os.fsencode(path))

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Writes only the model, as evaluations use it."""
        self._ask(self._lib.trainer_save_model, os.fsencode(path))

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Continues from a checkpoint, with the same bits as the training that wrote it."""
        self._ask(self._lib.trainer_resume, check_readable(path))

    def _fill(self, struct: ctypes.Structure, function: Callable[..., Any]) -> Iterator[Any]:
        """Lets `function` fill the struct; returns its fields."""
        self._ask(function, ctypes.byref(struct))
        return (getattr(struct, field[0]) for field in struct._fields_)


def read_config(config: Mapping[str, Any] | str | os.PathLike[str]) -> dict[str, Any]:
    """The dict itself, or the object in the JSON file of this path."""
    if isinstance(config, Mapping):
        return dict(config)
    with open(config, encoding="utf-8") as file:
        try:
            read = json.load(file)
        except ValueError as error:
            raise make_error(Status.ERR_FORMAT, f"{os.fspath(config)}: no valid JSON: {error}") from None
    if not isinstance(read, dict):
        raise make_error(Status.ERR_FORMAT, f"{os.fspath(config)}: holds no JSON object")
    return read


def train(config: Mapping[str, Any] | str | os.PathLike[str] | None, data: str | os.PathLike[str] | None,
          out: str | os.PathLike[str], *, resume: bool = False, progress: bool | Callable[[Step, float | None], Any] = True,
          **options: Any) -> Trainer:
    """Trains a model in the directory `out` as `attncl train` does, and returns the trainer, whose `model` runs.

    config     as Trainer() takes it; None: with `resume` the directory's
    resume     continues the directory's last checkpoint; without it `out` must be new or empty
    progress   True: a line at each evaluation and at the end; or called after each step with the step and its held-out
               loss, None where it was not evaluated
    options    those of Trainer()

    Ctrl-C writes a checkpoint after the steps in flight, one or two, before KeyboardInterrupt leaves.
    """
    run = _Run(pathlib.Path(out), resume)
    try:
        last = run.last_checkpoint() if resume else None
        if config is None:
            if not (run.path / "config.json").exists():
                raise make_error(Status.ERR_ARGUMENT, f"config is None and {run.path} has no config.json to resume")
            config = run.path / "config.json"
        if last is not None:
            options["init"] = last  # its vocabulary
        trainer = Trainer(config, data, **options)
        try:
            run.begin(trainer, last)
            _take_steps(trainer, run, progress)
        except BaseException:
            trainer.close()
            raise
        return trainer
    finally:
        run.close()


def _take_steps(trainer: Trainer, run: _Run, progress: bool | Callable[[Step, float | None], Any]) -> None:
    plan, state = trainer.plan, trainer.state
    begun = state.step

    def is_due(step: int, every: int) -> bool:
        return every > 0 and (step % every == 0 or step == plan.steps)

    def is_evaluated(step: int) -> bool:
        return plan.n_valid_batches > 0 and is_due(step, plan.eval_every)

    def is_over(state: State) -> bool:
        return state.step >= plan.steps or 0 < plan.patience <= state.n_worse

    def take_step() -> Step:
        begin = time.monotonic()
        step = trainer.step()
        run.log(step=step.step, loss=step.loss, grad_norm=step.grad_norm, learning_rate=step.learning_rate,
                tokens_per_s=step.n_tokens / max(time.monotonic() - begin, 1e-9))
        return step
    with _interrupts_wait() as check_interrupt:
        try:
            while not is_over(state):
                following = state.step + 1
                # Begins another step too if nothing needs the weights between the two.
                alone = is_evaluated(following) or is_due(following, plan.checkpoint_every) or following >= plan.steps
                while begun < following + (not alone):
                    trainer._ask(trainer._lib.trainer_begin)
                    begun += 1
                step, loss = take_step(), None
                if is_evaluated(step.step):
                    loss = run.evaluate(trainer)
                state = trainer.state
                if is_over(state) or is_due(step.step, plan.checkpoint_every):
                    run.save(trainer)
                if callable(progress):
                    progress(step, loss)
                elif progress and (loss is not None or is_over(state)):
                    held_out = "" if loss is None else f", held out {loss:.4f}"
                    print(f"step {step.step} of {plan.steps}: loss {step.loss:.4f}{held_out}", file=sys.stderr)
                check_interrupt()
        except KeyboardInterrupt:
            while trainer.state.step < begun:
                take_step()
            run.save(trainer)
            raise


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[Callable[[], None]]:
    """Delays Ctrl-C until the yielded function is called, so that every step taken is in the log."""
    came: list[int] = []
    waits = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def check() -> None:
        if came:
            raise KeyboardInterrupt
    if waits:
        signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield check
    finally:
        if waits:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class _Run:
    """The directory of a training, for this process alone."""

    def __init__(self, path: pathlib.Path, resume: bool):
        self.path, self._saved = path, -1
        if path.exists() and not resume and any(path.iterdir()):
            raise FileExistsError(f"{path} exists; resume=True continues it, or name another directory")
        self._lock = -1
        if resume and path.exists():
            self._lock_directory()  # another process may remove its checkpoints

    def _lock_directory(self) -> None:
        if self._lock >= 0:
            return
        self._lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise BlockingIOError(f"{self.path}: another process trains there") from None

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _checkpoints(self) -> list[tuple[int, pathlib.Path]]:
        found = ((re.fullmatch(r"step-(\d+)\.safetensors", path.name), path) for path in (self.path / "checkpoints").glob("*"))
        return sorted((int(match[1]), path) for match, path in found if match)

    def last_checkpoint(self) -> pathlib.Path | None:
        return max(self._checkpoints(), default=(0, None))[1]

    def begin(self, trainer: Trainer, last: pathlib.Path | None) -> None:
        """Locks the directory, resumes, writes the configuration, and cuts the log after the checkpoint."""
        (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)
        self._lock_directory()
        config = trainer.config
        if (self.path / "config.json").exists():
            self._check_same(_flatten(read_config(self.path / "config.json")), _flatten(config))
        if last is not None:
            trainer.resume(last)
            self._saved = trainer.state.step
        lines = (self.path / "log.jsonl").read_text().splitlines(True) if (self.path / "log.jsonl").exists() else []
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= trainer.state.step]
        self._replace("log.jsonl", "".join(kept))
        self._replace("config.json", json.dumps(config))

    def _check_same(self, was: dict[str, Any], now: dict[str, Any]) -> None:
        for key in [*was, *now]:
            if key not in _MAY_CHANGE and was.get(key) != now.get(key):
                raise make_error(Status.ERR_STATE, f"{self.path / 'config.json'}: {key} is {was.get(key)!r} there and "
                               f"{now.get(key)!r} now; training goes on as it began")

    def _replace(self, name: str, text: str) -> None:
        part = self.path / f"{name}.part"
        part.write_text(text, encoding="utf-8")
        os.replace(part, self.path / name)

    def log(self, **values: float) -> None:
        line = {key: value if isinstance(value, int) else float(f"{value:.9g}") for key, value in values.items()}
        with open(self.path / "log.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def evaluate(self, trainer: Trainer) -> float:
        loss = trainer.evaluate()
        state = trainer.state
        accuracy = {"valid_accuracy": state.accuracy} if math.isfinite(state.accuracy) else {}
        self.log(step=state.step, valid_loss=loss, **accuracy)
        if state.best_step == state.step:
            trainer.save_model(self.path / "best.safetensors")
        return loss

    def save(self, trainer: Trainer) -> None:
        step = trainer.state.step
        if step == self._saved:
            return
        trainer.save(self.path / "checkpoints" / f"step-{step}.safetensors")
        self._saved = step
        trainer.save_model(self.path / "model.safetensors")
        for _, path in self._checkpoints()[:-trainer.plan.keep or None]:
            path.unlink()


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"train": {"steps": 3}} as {"train.steps": 3}."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found.update(_flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value})
    return found
