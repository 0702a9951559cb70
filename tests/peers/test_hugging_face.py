"""The GPT against Hugging Face's GPT-2: random weights in the published format, read by both."""

import pytest
import torch
import torch.nn.functional as F
from models import Bytes
from transformers import GPT2Config, GPT2LMHeadModel

from utils.cache import KeyValueCache
from utils.gpt import generate
from utils.pretrained import load_gpt2
from utils.trace import trace

# emb_dim, n_heads, n_layers, context_length, vocab_size
SIZES = [(48, 4, 3, 64, 256), (8, 1, 1, 64, 300), (60, 12, 5, 80, 257), (128, 2, 2, 128, 1000)]


def published(folder, sizes=SIZES[0], max_shard_size="50GB", **settings):
    """Save a GPT-2 of Hugging Face, of which no parameter is 0 or 1 by default, and return it."""
    emb_dim, n_heads, n_layers, context_length, vocab_size = sizes
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes = {"n_embd": emb_dim, "n_head": n_heads, "n_layer": n_layers, "n_positions": context_length}
        settings |= {"vocab_size": vocab_size, "bos_token_id": None, "eos_token_id": None}
        model = GPT2LMHeadModel(GPT2Config(**sizes, **settings))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.normal_(mean=float(".ln_" in name and name.endswith("weight")), std=0.15)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    return model.eval()


def some_ids(*shape, vocab_size=256):
    return torch.randint(vocab_size, shape, generator=torch.Generator().manual_seed(1))


OTHERS = [(SIZES[0], {"tie_word_embeddings": False}), (SIZES[0], {"max_shard_size": "100KB"})]


@pytest.mark.parametrize(("sizes", "settings"), [*((sizes, {}) for sizes in SIZES), *OTHERS], ids=str)
@torch.no_grad()
def test_logits_are_the_same(tmp_path, sizes, settings):
    peer = published(tmp_path, sizes, **settings)
    assert len(list(tmp_path.glob("*.safetensors"))) > (3 if "max_shard_size" in settings else 0), "numbered parts"
    model, ids = load_gpt2(tmp_path), some_ids(3, sizes[3], vocab_size=sizes[4])
    expected = peer(ids).logits
    assert expected.std() > 0.3  # logits that all models share would prove nothing
    torch.testing.assert_close(model(ids), expected, rtol=0, atol=1e-4)
    torch.testing.assert_close(model.double()(ids), peer.double()(ids).logits, rtol=0, atol=1e-10)


@pytest.fixture
def pair(tmp_path):
    """The same weights twice, in float64: our model and Hugging Face's."""
    peer = published(tmp_path)
    return load_gpt2(tmp_path).double(), peer.double()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("num_tokens", [1, 7, 14])
def test_greedy_continuations_of_fifty_tokens_are_identical(pair, dtype, num_tokens):
    model, peer = (each.to(dtype) for each in pair)
    ids = some_ids(3, num_tokens)  # up to 64 tokens, which fit: Hugging Face does not crop
    written = peer.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=50)
    assert written.shape == (3, num_tokens + 50)
    assert all(len(set(text[num_tokens:])) > 3 for text in written.tolist())
    # The best token is ahead of the second by more than rounding, so no machine may say otherwise.
    best, second = peer(written).logits[:, num_tokens - 1 : -1].topk(2).values.unbind(-1)
    assert (best - second).min() > 1e-4
    assert torch.equal(generate(model, ids, 50), written)


@torch.no_grad()
def test_hidden_states_are_the_same_block_by_block(pair):
    model, peer = pair
    text = "Every effort moves you, and every day holds a surprise."
    last_block = []
    hook = peer.transformer.h[-1].register_forward_hook(lambda module, inputs, output: last_block.append(output))
    ids = torch.tensor([list(text.encode())])
    theirs = peer(ids, output_hidden_states=True)
    hook.remove()
    output = last_block[0][0] if isinstance(last_block[0], tuple) else last_block[0]
    # Hugging Face's last hidden state is taken after the final norm.
    expected = dict(zip(["input_embeddings", "block_1", "block_2", "final_norm"], theirs.hidden_states, strict=True))
    expected |= {"block_3": output, "logits": theirs.logits}
    stations = trace(model, text, Bytes())
    assert torch.equal(stations["batch"], ids)
    for name, station in expected.items():
        torch.testing.assert_close(stations[name], station, rtol=0, atol=1e-10)
        assert station.std() > 0.1, name


@torch.no_grad()
def test_kept_keys_and_values_give_the_logits_of_the_whole(pair):
    model, peer = pair
    ids, cache = some_ids(2, 40), KeyValueCache()
    logits = torch.cat([model(piece, cache) for piece in ids.split([9, 1, 13, 1, 16], dim=1)], dim=1)
    torch.testing.assert_close(logits, peer(ids).logits, rtol=0, atol=1e-10)


def test_gradients_of_the_loss_are_the_same(pair):
    model, peer = pair
    ids = some_ids(2, 20)
    for logits in (model(ids), peer(ids).logits):
        F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    # The table's gradient takes part in both of its roles; the first layer's comes through all others.
    tables = model.embedding.token_embedding.weight.grad, peer.transformer.wte.weight.grad
    layers = model.blocks[0].attention.W_key.weight.grad.T, peer.transformer.h[0].attn.c_attn.weight.grad[:, 48:96]
    for ours, theirs in (tables, layers):
        assert theirs.abs().max() > 1e-4
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
