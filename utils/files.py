"""Files that are whole or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file to write in, which gets the name `path` only when all of it is on the disk.

    Until then its name ends in .part. When an error or an interrupt ends the block, it is removed; a killed process
    leaves it behind. In both cases, what had the name `path` is as it was.
    """
    path = path.resolve()  # behind a link, the file
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # before the new name, or after a power cut the name may belong to an empty file
        part.replace(path)
        if os.name == "posix":  # the new name, too, is on the disk only when its folder is
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
