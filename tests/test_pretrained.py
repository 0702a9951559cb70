"""utils.pretrained against its contract: where each published tensor goes, and what is refused; without the hub."""

import json
import re
import subprocess
import sys
import threading
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_model, save_file, save_model

from utils import pretrained
from utils.gpt import GPTConfig, GPTModel
from utils.pretrained import load_gpt2

# What config.json of the published GPT-2 says, with sizes of our own.
SETTINGS = """{
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
    "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2", "n_ctx": 6, "n_embd": 8, "n_head": 2, "n_layer": 2, "n_positions": 6, "resid_pdrop": 0.1,
    "vocab_size": 11
}"""
OURS = {
    "ln_1": ["norm1"],
    "ln_2": ["norm2"],
    "attn.c_attn": ["attention.W_query", "attention.W_key", "attention.W_value"],
    "attn.c_proj": ["attention.out_proj"],
    "mlp.c_fc": ["feed_forward.widen"],
    "mlp.c_proj": ["feed_forward.narrow"],
}


def shapes(n_layers=2, emb_dim=8, vocab_size=11, context_length=6):
    """Return the names and shapes of the published tensors, in order; layers are (in, out)."""
    one, three, four = emb_dim, 3 * emb_dim, 4 * emb_dim
    block = dict(zip(OURS, [(one,), (one,), (one, three), (one, one), (one, four), (four, one)]))
    found = {"wte.weight": (vocab_size, emb_dim), "wpe.weight": (context_length, emb_dim)}
    for n in range(n_layers):
        for name, shape in block.items():
            found |= {f"h.{n}.{name}.weight": shape, f"h.{n}.{name}.bias": shape[-1:]}
    return {**found, "ln_f.weight": (emb_dim,), "ln_f.bias": (emb_dim,)}


@pytest.fixture
def tensors():
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes().items()}


@pytest.fixture
def write(tmp_path):
    def write(tensors, file="model.safetensors", **settings):
        if tensors is not None:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, tmp_path / file)
        settings = {name: value for name, value in (json.loads(SETTINGS) | settings).items() if value != "left out"}
        (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture(autouse=True)
def hub(monkeypatch):
    """Replace the hub by something that notes the requests, and cannot be reached unless it has a folder."""
    hub = SimpleNamespace(asked=[], folder=None)

    def snapshot_download(repo_id, allow_patterns):
        hub.asked.append((repo_id, allow_patterns))
        if hub.folder is None:  # what the hub's own client raises without network, and nothing from an earlier time
            raise huggingface_hub.errors.LocalEntryNotFoundError("check your internet connection")
        return str(hub.folder)

    monkeypatch.setattr(pretrained, "snapshot_download", snapshot_download)
    return hub


def same(model, tensors):
    """Tell whether a model has just these weights, in float32."""
    state = dict(model.named_parameters(remove_duplicate=False))
    expected = {
        "embedding.token_embedding.weight": tensors["wte.weight"],
        "embedding.position_embedding.weight": tensors["wpe.weight"],
        "final_norm.weight": tensors["ln_f.weight"],
        "final_norm.bias": tensors["ln_f.bias"],
        "out_head.weight": tensors.get("lm_head.weight", tensors["wte.weight"]),
    }
    for n, (theirs, ours) in product(range(2), OURS.items()):
        weight, bias = tensors[f"h.{n}.{theirs}.weight"].t(), tensors[f"h.{n}.{theirs}.bias"]
        for part, rows, entries in zip(ours, weight.chunk(len(ours)), bias.chunk(len(ours)), strict=True):
            expected |= {f"blocks.{n}.{part}.weight": rows, f"blocks.{n}.{part}.bias": entries}
    assert {parameter.dtype for parameter in state.values()} == {torch.float32}
    return state.keys() == expected.keys() and all(torch.equal(state[name], expected[name]) for name in expected)


def test_each_published_tensor_becomes_its_parameter(write, tensors, hub):
    before = torch.get_rng_state()
    model = load_gpt2(write(tensors))
    assert same(model, tensors)
    assert not any(module.training for module in model.modules())
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert model.out_head.weight is model.embedding.token_embedding.weight
    assert model.config == GPTConfig(11, 6, 8, 2, 2, drop_rate=0.1, qkv_bias=True, tie_weights=True)
    assert torch.equal(torch.get_rng_state(), before)
    assert hub.asked == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("old", [False, True])
def test_every_published_layout_gives_the_same_model(write, tensors, old, dtype):
    tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    file = {"transformer." + name: tensor for name, tensor in tensors.items()}
    if old:  # with the buffers of the causal mask, and a second copy of the table
        masks = {f"h.{n}.attn.{name}": torch.ones(1, 1, 6, 6) for n in range(2) for name in ("bias", "masked_bias")}
        file = {**tensors, **masks, "lm_head.weight": tensors["wte.weight"].clone()}
    assert same(load_gpt2(str(write(file))), {name: tensor.float() for name, tensor in tensors.items()})


def test_numbered_parts_are_put_together(write, tensors):
    names = list(tensors)
    for part in range(3):
        folder = write({name: tensors[name] for name in names[part::3]}, f"model-0000{part + 1}-of-00003.safetensors")
    assert same(load_gpt2(folder), tensors)
    (folder / "model-00003-of-00003.safetensors").unlink()
    with pytest.raises(ValueError, match=f"{names[2]} is missing"):
        load_gpt2(folder)


def test_an_untied_head_is_read(write, tensors):
    tensors["lm_head.weight"] = torch.ones(11, 8)
    model = load_gpt2(write(tensors, tie_word_embeddings=False))
    assert same(model, tensors)
    assert model.config.tie_weights is False
    del tensors["lm_head.weight"]
    with pytest.raises(ValueError, match=r"lm_head\.weight is missing"):
        load_gpt2(write(tensors, tie_word_embeddings=False))


def test_loaded_weights_are_plain_parameters_and_the_file_may_go_away(write, tensors, tmp_path):
    folder = write(tensors)
    model = load_gpt2(folder)
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-400, 2)
        file.write(bytes(400))
    assert same(model, tensors)
    assert all(parameter.is_contiguous() for parameter in model.parameters())
    assert torch.nn.utils.parameters_to_vector(model.parameters()).numel() == sum(t.numel() for t in tensors.values())
    save_file(dict(model.named_parameters()), tmp_path / "parameters.safetensors")
    save_model(model, tmp_path / "saved.safetensors")  # save_file refuses the state_dict of any tied model
    twin = GPTModel(model.config)
    load_model(twin, tmp_path / "saved.safetensors")
    assert same(twin, tensors)


SIZES = ("", "-medium", "-large", "-xl")
ADVICE = r"(?s){}.*network.*HF_ENDPOINT.*HF_TOKEN.*HTTPS_PROXY.*local folder"


def test_a_published_name_is_asked_of_the_hub_without_pickles(write, tensors, hub):
    with pytest.raises(OSError, match=ADVICE.format("internet connection")):
        load_gpt2()
    hub.folder = write(tensors)
    for size in SIZES[1:]:
        assert same(load_gpt2("gpt2" + size), tensors)
    assert [repo_id for repo_id, _ in hub.asked] == [f"openai-community/gpt2{size}" for size in SIZES]
    files = {"pytorch_model.bin", "tf_model.h5", "rust_model.ot", "64.tflite", "config.json", "model.safetensors"}
    fetched = {file for file in files for pattern in hub.asked[0][1] if fnmatch(file, pattern)}
    assert fetched == {"config.json", "model.safetensors"}


class Portal(BaseHTTPRequestHandler):
    """A server that answers all questions in the same way."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.page)))
        self.end_headers()
        self.wfile.write(self.server.page)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def portal(monkeypatch, tmp_path):
    """The hub's own client again, on the way to a server of this machine."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr(pretrained, "snapshot_download", huggingface_hub.snapshot_download)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        server.page = b"{}"
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        huggingface_hub.close_session()
        yield server
        huggingface_hub.close_session()  # it has read the proxy variables
        server.shutdown()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *[("page", page) for page in (b"<html>Log in</html>", b"{}", b"[]", b"null", b"\xff\xfe\x00")],
        *[("endpoint", url) for url in ("huggingface.co", "ftp://127.0.0.1", "http://", "http://127.0.0.1\n")],
        *[("HTTP_PROXY", f"{scheme}://127.0.0.1:1") for scheme in ("http", "socks4", "socks5")],
        ("HTTP_PROXY", "http://127.0.0.1:port"),
        *[("HF_TOKEN", token) for token in ("hf_é", "hf_a\nb")],
    ],
    ids=repr,
)
def test_what_stands_between_here_and_the_hub_is_an_os_error(portal, monkeypatch, kind, value):
    if kind == "page":
        portal.page = value
    elif kind == "endpoint":
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", value)
    else:
        monkeypatch.setenv(kind, value)
    with pytest.raises(OSError, match=ADVICE.format("gpt2")) as caught:
        load_gpt2("gpt2")
    assert f"({type(caught.value.__cause__).__name__}: " in str(caught.value)


@pytest.mark.parametrize("name", ["gpt3", "openai-community/gpt2", "no/such/folder"])
def test_an_unknown_name_is_refused_before_the_hub_is_asked(name, hub):
    with pytest.raises(ValueError, match=rf"{name}.*gpt2-xl"):
        load_gpt2(name)
    assert hub.asked == []


FOREIGN = ("h.2.ln_1.weight", "h.0.attn.lora.weight", "score.weight", "h.0.crossattention.bias")
LAYERS = {name: shape for name, shape in shapes().items() if len(set(shape)) == 2}
WRONG = [
    *(({name: None}, f"{name} is missing") for name in shapes()),
    *(({name: torch.ones(size[::-1])}, f"{name} has shape {size[::-1]}, not {size}") for name, size in LAYERS.items()),
    *(({name: torch.ones(8)}, f"{name} is unknown") for name in FOREIGN),
    ({"transformer.wpe.weight": torch.ones(6, 8)}, "wpe.weight is there twice"),
    ({"ln_f.bias": torch.ones(8, dtype=torch.int64)}, "ln_f.bias holds torch.int64"),
    # Hugging Face's model computes with such a head, although the configuration says that it is tied.
    ({"lm_head.weight": torch.ones(11, 8)}, "lm_head.weight is not wte.weight"),
    ({"lm_head.weight": torch.ones(8, 11)}, "lm_head.weight has shape (8, 11), not (11, 8)"),
    # The first of several is named.
    ({"h.0.mlp.c_fc.bias": torch.ones(31), "h.1.ln_1.bias": None, "foreign": torch.ones(1)}, "h.0.mlp.c_fc.bias has"),
]


@pytest.mark.parametrize(("changed", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_tensor_that_is_wrong_is_named(write, tensors, changed, said):
    folder = write({name: tensor for name, tensor in (tensors | changed).items() if tensor is not None})
    with pytest.raises(ValueError, match=re.escape(said)):
        load_gpt2(folder)


@pytest.mark.parametrize("left", [slice(-1), slice(100), b"", b"<html>" * 99, b"\xff" * 99, b"[]", b"null"], ids=repr)
@pytest.mark.parametrize("file", ["model.safetensors", "model-00001-of-00001.safetensors", "config.json"])
def test_a_damaged_file_is_named(write, tensors, file, left):
    path = write(tensors, file) / file
    path.write_bytes(path.read_bytes()[left] if isinstance(left, slice) else left)
    with pytest.raises(ValueError, match=f"{file}( is damaged)?: "):
        load_gpt2(path.parent)


UNLIKE = {"model_type": "gpt_neo", "activation_function": "gelu", "layer_norm_epsilon": 1e-6}
SWITCHES = {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True, "add_cross_attention": True}
RATES = {"attn_pdrop": 0.0, "embd_pdrop": 0.2, "resid_pdrop": "0.1"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        *((name, value, f"{name} is {value!r}, where GPTModel has") for name, value in (UNLIKE | SWITCHES).items()),
        *((name, "left out", f"'{name}' is missing") for name in ("vocab_size", "n_head")),
        *((name, value, f"'{name}': {value!r}.* differ") for name, value in RATES.items()),
        ("n_inner", 24, "n_inner is 24, where GPTModel has 4 · n_embd = 32"),
        *(("n_layer", 0, "n_layers must be"), ("n_embd", "8", "emb_dim must be")),
        *(("n_positions", None, "context_length must be"), ("tie_word_embeddings", "no", "tie_weights must be")),
    ],
)
def test_a_setting_that_gpt_model_does_not_compute_is_named(write, tensors, name, value, said):
    with pytest.raises(ValueError, match=rf"config\.json: .*{said}"):
        load_gpt2(write(tensors, **{name: value}))


@pytest.mark.parametrize(
    ("settings", "drop_rate"),
    [
        ({"n_inner": 32, "scale_attn_weights": True, "activation_function": "gelu_pytorch_tanh"}, 0.1),
        ({"n_inner": None, "activation_function": "left out", "attn_pdrop": "left out"}, 0.1),
        ({"attn_pdrop": 0.25, "embd_pdrop": 0.25, "resid_pdrop": 0.25}, 0.25),
    ],
)
def test_settings_that_change_nothing_are_taken(write, tensors, settings, drop_rate):
    model = load_gpt2(write(tensors, **settings))
    assert same(model, tensors)
    assert model.config.drop_rate == drop_rate


def test_a_missing_file_is_named_and_no_pickle_is_read(write, tensors):
    folder = write(None)
    torch.save(tensors, folder / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        load_gpt2(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        load_gpt2(folder)


MEASURED = """
import sys
from pathlib import Path
from utils.pretrained import load_gpt2

def kilobytes(name):
    return int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0])

tiny, large = sys.argv[1:]
load_gpt2(tiny)  # what torch and safetensors need at their first use is not the weights'
before = kilobytes("VmRSS")
load_gpt2(large)
print(1024 * (kilobytes("VmHWM") - before))
"""


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the peak of memory is read from Linux' /proc")
def test_loading_needs_no_second_copy_of_the_weights(write, tensors, tmp_path):
    tiny = write(tensors).rename(tmp_path.with_name("tiny"))
    tmp_path.mkdir()
    sizes = {"vocab_size": 5000, "n_positions": 1024, "n_embd": 768, "n_head": 12, "n_layer": 4}
    zeros = {name: torch.zeros(shape) for name, shape in shapes(4, 768, 5000, 1024).items()}
    file = write(zeros, **sizes) / "model.safetensors"
    command = [sys.executable, "-c", MEASURED, tiny, tmp_path]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 0.9 < grown / file.stat().st_size < 1.25
    file.unlink()
