"""A training run on the disk, from which it goes on after it was stopped."""

import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from utils.arguments import as_integer
from utils.files import replacing
from utils.training.processes import rank_and_world_size


class Checkpoints:
    """The last two states of a run, in a folder. Process 0 alone writes and reads; the others get what it has read.

    Args:
        folder: made when the first checkpoint is written.
        every: steps from one checkpoint to the next.
        settings: plain values by name; a run whose settings differ does not go on from these checkpoints, nor one
            with another number of processes.
    """

    def __init__(self, folder: str | Path, every: int, settings: dict[str, Any]):
        self.folder, self.settings = Path(folder), dict(settings)
        self.every = as_integer("every", every, at_least=1)

    def paths(self) -> list[Path]:
        """Return the files, the newest first."""
        files = [path for path in self.folder.glob("step_*.pt") if path.stem[5:].isdecimal() and path.is_file()]
        return sorted(files, key=lambda path: int(path.stem[5:]), reverse=True)

    def save(self, state: dict[str, Any], **settings: Any) -> None:
        """Write a state, which has its number of steps under "step"; all others but the one before it are removed.

        Raises:
            OSError, RuntimeError: it cannot be written, on a full disk say; what is there stays there.
        """
        if rank_and_world_size()[0] == 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            for path in self.folder.glob("step_*.part"):  # which a killed process left behind
                path.unlink(missing_ok=True)
            with replacing(self.folder / f"step_{state['step']}.pt") as file:
                torch.save(state | {"settings": self._all_settings(settings)}, file)
            for path in self.paths()[2:]:
                path.unlink(missing_ok=True)

    def load(self, **settings: Any) -> dict[str, Any] | None:
        """Return the newest state that is whole, or None if there are no checkpoints.

        A damaged one is a warning, and gets the ending .damaged, so that it does not count as one of the two.

        Args:
            settings: further ones, which must be the same as when `save` was called.

        Raises:
            ValueError: all checkpoints are damaged, or they are of a run with other settings.
        """
        states = [self._load(settings) if rank_and_world_size()[0] == 0 else None]
        if dist.is_initialized():
            dist.broadcast_object_list(states)
        return states[0]

    def _all_settings(self, further: dict[str, Any]) -> dict[str, Any]:
        return self.settings | further | {"processes": rank_and_world_size()[1]}  # each has its own random state

    def _load(self, settings: dict[str, Any]) -> dict[str, Any] | None:
        damaged = []
        for path in self.paths():
            try:
                state = _read(path)
                before = {**state["settings"]}
            except Exception as error:  # of many kinds, depending on which byte is wrong
                warnings.warn(f"{path} is damaged and is left out: {error!r}", stacklevel=2)
                damaged.append(path)
                continue
            if differences := _differences(before, self._all_settings(settings)):
                raise ValueError(
                    f"{self.folder} has checkpoints of another run: {'; '.join(differences)}. "
                    "Take its settings, or another folder"
                )
            for path in damaged:
                path.replace(path.with_suffix(".damaged"))
            return state
        if damaged:
            raise ValueError(f"{self.folder}: all checkpoints are damaged. Without them the run begins again")
        return None


def _read(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as file:  # what torch.save writes; torch.load does not compare the checksums in it
        if name := file.testzip():
            raise zipfile.BadZipFile(f"the checksum of {name} is wrong")
    return torch.load(path, map_location="cpu", weights_only=True)


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    names = [name for name in before | now if before.get(name) != now.get(name)]
    return [f"{name} was {before.get(name)} and is {now.get(name)}" for name in names]
