"""What does not end, or takes too much memory, is stopped: no answer may cost a learner the notebook."""

import contextlib
import contextvars
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import psutil
import torch

SECONDS = 5.0  # of work; something that only waits, for input say, is stopped after three times as long
GIBIBYTES = 2.0


class Stopped(BaseException):
    """Raised inside what is stopped; where a bare `except` hides it, it is raised again on the next line."""

    def __init__(self) -> None:
        frame = sys._getframe(1)
        sys.settrace(_stop_again)  # for this thread, in which the exception is made when it is raised
        while frame and frame.f_code.co_filename != __file__:
            frame.f_trace, frame = _stop_again, frame.f_back


def _stop_again(frame: FrameType, event: str, argument: object) -> None:
    if event == "line":
        raise Stopped


_RUNNING = contextvars.ContextVar("running", default=False)
_LOCK = threading.Lock()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let one check run at a time, since it sets what the process shares; a check within an answer is part of it."""
    with contextlib.nullcontext() if _RUNNING.get() else _LOCK:
        yield


def limited(work: Callable[[], Any]) -> Any:
    """Return what `work` returns, or raise what it raises.

    The work runs in a thread of its own: it can be stopped and left alone there, in every front end and system.
    What Python does within a single call of its own, such as sum(itertools.count()), no thread can stop.

    Raises:
        TimeoutError: it has not ended in time; says what may be the cause.
        MemoryError: it takes too much memory; the same.
    """
    if _RUNNING.get():
        return work()
    done: dict[str, Any] = {}
    over = threading.Event()  # not is_alive(): after Ctrl+C in a join, Python 3.11 takes the thread for ended

    def run() -> None:
        _RUNNING.set(True)
        torch.set_num_threads(1)  # for this thread: on a busy machine more would make small tensors slow
        with contextlib.suppress(Stopped):  # it may be raised once more when the work is over
            try:
                done["result"] = work()
            except BaseException as error:
                done["error"] = error
            finally:
                over.set()

    # In a copy of the context, so that a notebook shows what the work prints under its own cell.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
    with _address_space_limited():
        thread.start()
        try:
            _wait(over)
        finally:
            _stop(thread, over)
    if "error" in done:
        raise done["error"]
    return done["result"]


def _wait(over: threading.Event) -> None:
    """Return when the work is over; a timeout while waiting keeps Ctrl+C working on every system."""
    errors: list[Exception] = []
    ended = threading.Event()
    # In a thread of its own: Ctrl+C reaches the main thread alone, and must not leave a file of the system open.
    threading.Thread(target=_watch, args=(over, errors, ended), daemon=True).start()
    while not ended.wait(0.05):
        pass
    if errors:
        raise errors[0]


def _watch(over: threading.Event, errors: list[Exception], ended: threading.Event) -> None:
    """Wait until the work is over; what it exceeds is noted as an error."""
    try:
        process, start, work = psutil.Process(), time.monotonic(), time.process_time()
        memory = process.memory_info().rss
        while not over.wait(0.05):
            if process.memory_info().rss - memory > GIBIBYTES * 2**30:
                text = f"took more than {GIBIBYTES:g} GiB of memory and was stopped: does something grow without end?"
                raise MemoryError(text)
            # On a busy machine little work is done in a second: that does not make a loop endless.
            worked, waited = time.process_time() - work, time.monotonic() - start
            if waited > SECONDS and worked > SECONDS / 2:
                text = f"had not ended after {waited:.0f} seconds and was stopped: does one of its loops never end?"
                raise TimeoutError(text)
            if waited > 3 * SECONDS:
                raise TimeoutError(f"had not ended after {waited:.0f} seconds: does it wait for something?")
    except Exception as error:
        errors.append(error)
    finally:
        ended.set()


def _stop(thread: threading.Thread, over: threading.Event) -> None:
    """Raise Stopped in the thread, again where a bare `except` hides it; leave it alone if that does not help."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda error: None if error.exc_type is Stopped else hook(error)
    try:
        for _ in range(20):
            if over.is_set():
                break
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Stopped))
            over.wait(0.05)
        thread.join(1)  # it may have much to free
    finally:
        sys.unraisablehook = hook


@contextlib.contextmanager
def _address_space_limited() -> Iterator[None]:
    """Let one huge allocation fail at once, on Linux: nothing can watch while it lasts."""
    if sys.platform != "linux":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    ceiling = psutil.Process().memory_info().vms + int(2 * GIBIBYTES * 2**30)
    known = [limit for limit in before if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([ceiling, *known]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
