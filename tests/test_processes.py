"""Training in several processes, and going on after a fault: the parameters are those of one undisturbed process."""

import contextlib
import time
import warnings
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models import model_of, some_ids
from processes import together

from utils.batches import make_loader
from utils.training import Checkpoints, evaluate, make_distributed_loader, train
from utils.training.processes import distributed, process_group, rank_and_world_size

__all__ = ["together"]  # a fixture
pytestmark = pytest.mark.usefixtures("one_thread")
IDS = some_ids(37 * 6 + 1)  # 37 windows: in batches of 8 the last one has 5, and two processes have 19 and 18
WINDOWS = {"context_length": 6, "stride": 6, "batch_size": 8}


class Stopped(Exception):
    pass


def trained(dtype=torch.float32, drop_rate=0.0, stop_after=None, folder=None, **settings):
    """Return the parameters, as one array, and the history of 20 steps: four epochs, each with an uneven end.

    Checkpoints are in folder/0 and, for the second process, which should leave it empty, in folder/1.
    """

    def report(step, _):
        if step == stop_after:
            raise Stopped

    with process_group(timeout=20):
        model = model_of(drop_rate=drop_rate, qkv_bias=False).to(dtype)
        rank, _ = rank_and_world_size()
        torch.manual_seed(rank)
        if folder is not None:
            settings["checkpoints"] = Checkpoints(folder / str(rank), 3, {"emb_dim": 12})
        held_out = make_distributed_loader(IDS[:45], **WINDOWS, shuffle=False)
        loader = make_distributed_loader(IDS, **WINDOWS)
        settings = {"lr": 0.01, "held_out": held_out, "evaluate_every": 1, "report": report} | settings
        history = train(distributed(model), loader, **{"steps": 20} | settings)
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).numpy(), history


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=str)
@pytest.mark.parametrize("accumulation", [1, 3])
def test_two_processes_are_one_with_the_same_global_batch(together, dtype, tolerance, accumulation):
    parameters, history = trained(dtype)
    runs = [trained(dtype, accumulation=3), *together(trained, dtype=dtype, accumulation=accumulation)]
    for other, its_history in runs:
        np.testing.assert_allclose(other, parameters, rtol=0, atol=tolerance)
        assert its_history.losses == pytest.approx(history.losses, abs=tolerance)
        assert its_history.held_out == pytest.approx(history.held_out, abs=tolerance)
    assert np.array_equal(runs[1][0], runs[2][0]), "all processes have the same model"


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 4), st.booleans(), st.integers(0, 9))
def test_each_window_counts_once_an_epoch_whatever_the_number_of_processes(
    num_windows, world_size, part, shuffle, epoch
):
    def batches(rank, world_size):
        settings = {"context_length": 2, "stride": 1, "batch_size": part * number, "shuffle": shuffle}
        loader = make_distributed_loader(range(num_windows + 2), **settings, rank=rank, world_size=world_size)
        loader.sampler.set_epoch(epoch)
        assert len(loader) == len(list(loader))
        return [[row[0].item() - 1 for row in target_ids if row[0] != -100] for _, target_ids in loader]

    number = world_size
    alone = batches(0, 1)
    assert sorted(chain(*alone)) == list(range(num_windows))
    parts = [batches(rank, world_size) for rank in range(world_size)]
    assert [sorted(chain(*batch)) for batch in zip(*parts)] == list(map(sorted, alone))


def test_each_epoch_has_an_order_of_its_own():
    loader = make_distributed_loader(IDS, **WINDOWS)
    seen = []

    class Noted(type(loader)):
        def __iter__(self):
            seen.append(list(self.sampler))
            return super().__iter__()

    before = torch.get_rng_state()
    train(model_of(drop_rate=0.0), Noted(loader.windows, 8, loader.sampler), epochs=2, lr=0.01)
    assert seen[0] != seen[1]
    assert sorted(seen[0]) == sorted(seen[1]) == list(range(37))
    assert torch.equal(torch.get_rng_state(), before)


def bare():
    with process_group(timeout=20), pytest.raises(ValueError, match="2 processes would train 2 models"):
        train(model_of(), make_distributed_loader(IDS, **WINDOWS), steps=1, lr=0.01)


def test_a_bare_model_would_be_trained_apart(together):
    together(bare)


def lost():
    with process_group(timeout=1):
        if rank_and_world_size()[0] == 1:
            return time.sleep(3)
        start = time.monotonic()
        with pytest.raises(RuntimeError, match=r"(?i)timed out|timeout"):
            evaluate(distributed(model_of()), make_distributed_loader(IDS, **WINDOWS))
        return time.monotonic() - start


def test_a_lost_process_is_an_error_after_seconds(together):
    assert together(lost)[0] < 2.5


@pytest.mark.parametrize("sizes", [{"batch_size": 7}, {"batch_size": 8, "rank": 2}])
def test_parts_that_cannot_be_are_named(sizes):
    with pytest.raises(ValueError, match=r"batch_size 7 .* 2 processes|rank must be from 0 to 1, not 2"):
        make_distributed_loader(IDS, **WINDOWS | {"world_size": 2} | sizes)


# Checkpoints


def stopped(**settings):
    with contextlib.suppress(Stopped):
        trained(**settings)


@pytest.mark.parametrize("step", [7, 13])
def test_a_run_goes_on_as_if_it_had_not_been_stopped(tmp_path, together, step):
    undisturbed = together(trained, drop_rate=0.3)
    together(stopped, drop_rate=0.3, folder=tmp_path, stop_after=step)
    assert sorted(path.name for path in tmp_path.glob("*/*")) == sorted(f"step_{step - back}.pt" for back in (1, 4))
    again = together(trained, drop_rate=0.3, folder=tmp_path)
    assert not (tmp_path / "1").exists(), "the second process has its own disk, on which nothing is written or read"
    for (parameters, history), (others, other_history) in zip(undisturbed, again):
        assert np.array_equal(parameters, others)
        assert repr(history) == repr(other_history)


@pytest.fixture
def checkpoints(tmp_path):
    """Checkpoints of steps 6 and 9 of a run that was stopped."""
    checkpoints = Checkpoints(tmp_path, 3, {"emb_dim": 12})
    stopped(checkpoints=checkpoints, stop_after=11)
    assert [path.name for path in checkpoints.paths()] == ["step_9.pt", "step_6.pt"]
    return checkpoints


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut, flip, empty])
def test_from_a_damaged_checkpoint_the_run_goes_back_to_the_one_before(checkpoints, damage):
    newest, _ = checkpoints.paths()
    damage(newest)
    with pytest.warns(UserWarning, match=rf"{newest.name} is damaged"):
        again = trained(checkpoints=checkpoints)
    assert np.array_equal(again[0], trained()[0])
    for path in checkpoints.paths():
        damage(path)
    with (
        pytest.warns(UserWarning, match="is damaged"),
        pytest.raises(ValueError, match="all checkpoints are damaged"),
    ):
        trained(checkpoints=checkpoints)


def test_whichever_byte_is_wrong_the_state_is_right_or_the_checkpoint_is_left_out(tmp_path):
    checkpoints = Checkpoints(tmp_path, 1, {})
    for step in (1, 2):
        checkpoints.save({"step": step, "model": torch.arange(3)})
    newest = checkpoints.paths()[0]
    content = newest.read_bytes()
    for place in range(len(content)):
        newest.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        with warnings.catch_warnings(action="ignore"):
            state = checkpoints.load()
        assert state["step"] in (1, 2)
        assert state["model"].tolist() == [0, 1, 2]


def test_what_is_no_checkpoint_does_not_stop_a_run_and_damaged_ones_do_not_push_out_new_ones(checkpoints):
    for step in (11, 12, 15):
        (checkpoints.folder / f"step_{step}.pt").write_bytes(b"")
    torch.save([1], checkpoints.folder / "step_13.pt")
    (checkpoints.folder / "step_x.pt").write_bytes(b"mine")
    (checkpoints.folder / "step_25.pt").mkdir()
    (checkpoints.folder / "step_9.pt.77.part").write_bytes(b"left behind by a killed process")
    with pytest.warns(UserWarning, match="is damaged"):
        stopped(checkpoints=checkpoints, stop_after=13)
    names = {path.name for path in checkpoints.folder.iterdir()}
    damaged = {f"step_{step}.damaged" for step in (11, 12, 13, 15)}
    assert names == {"step_9.pt", "step_12.pt", "step_x.pt", "step_25.pt"} | damaged


def test_another_configuration_is_refused_with_what_differs(checkpoints):
    other = Checkpoints(checkpoints.folder, 3, {"emb_dim": 12, "seed": 1})
    said = r"another run: lr was 0\.01 and is 0\.02; weight_decay was 0\.1 and is 0\.2; seed was None and is 1\."
    with pytest.raises(ValueError, match=said):
        trained(checkpoints=other, lr=0.02, weight_decay=0.2)


def test_another_number_of_processes_is_refused(checkpoints, together):
    with pytest.raises(ValueError, match=r"another run: processes was 1 and is 2\."):
        together(trained, checkpoints=checkpoints)


@contextlib.contextmanager
def full_disk():
    resource = pytest.importorskip("resource")  # not on Windows
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_loses_no_checkpoint(checkpoints):
    files = {path: path.read_bytes() for path in checkpoints.paths()}
    with full_disk(), pytest.raises((OSError, RuntimeError)):
        trained(checkpoints=checkpoints)
    assert {path: path.read_bytes() for path in checkpoints.folder.iterdir()} == files


def test_checkpoints_need_an_order_that_can_be_found_again(tmp_path):
    loader = make_loader(IDS, **WINDOWS)
    with pytest.raises(TypeError, match="loader of make_distributed_loader, not a DataLoader"):
        train(model_of(), loader, steps=1, lr=0.1, checkpoints=Checkpoints(tmp_path, 1, {}))
