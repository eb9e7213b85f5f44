"""scripts/export_block.py: the form that it writes is what `fuseline import graph` reads.

  export_block_test.py form FUSELINE   on a program that is made by hand, without PyTorch
  export_block_test.py real FUSELINE   on real modules; exit status 77 (skipped) without PyTorch
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from types import SimpleNamespace

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import export_block  # noqa: E402

SKIPPED = 77


class Target:
    """Writes itself as an operator of PyTorch does."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


def fake_program():
    def value(*shape):
        return SimpleNamespace(shape=shape, dtype=Target("torch.bfloat16"))

    def node(op, name, target=None, args=(), kwargs=None, val=None, trace=None):
        return SimpleNamespace(op=op, name=name, target=target, args=args, kwargs=kwargs or {},
                               meta={"val": val, "stack_trace": trace})

    trace = ('  File "/home/me/mlp.py", line 7, in forward\n    y = self.up(x)\n'
             '  File "/usr/lib/python3/site-packages/torch/nn/modules/linear.py", line 125, in f\n')
    w = node("placeholder", "p_up_weight", val=value(24, 16))
    x = node("placeholder", "x", val=value(1, 5, 16))
    scale = node("placeholder", "scale", val=3)
    up = node("call_function", "linear", Target("aten.linear.default"), (x, w),
              val=value(1, 5, 24), trace=trace)
    act = node("call_function", "gelu", Target("aten.gelu.default"), (up,),
               {"approximate": "tanh"}, val=value(1, 5, 24), trace=trace)
    out = node("output", "output", args=((act,),))
    signature = SimpleNamespace(inputs_to_parameters={"p_up_weight": "up.weight"},
                                inputs_to_buffers={}, inputs_to_lifted_tensor_constants={},
                                user_outputs=["gelu"])
    return SimpleNamespace(graph=SimpleNamespace(nodes=[w, x, scale, up, act, out]),
                           graph_signature=signature)


def imported(fuseline, path):
    run = subprocess.run([fuseline, "import", "graph", path], capture_output=True, text=True,
                         check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def check_layers():
    """What layers of the library ask for that a plain decoder layer does not."""
    def forward(hidden, alibi, attention_mask, layer_past=None, past_key_values=None, use_cache=False):
        return hidden, alibi, attention_mask, layer_past, past_key_values, use_cache

    kept = export_block.arguments_by_name(
        forward, {"alibi": None, "attention_mask": None, "layer_past": None,
                  "past_key_values": 1, "use_cache": True})
    assert kept == {"alibi": None, "attention_mask": None}, kept

    class Computed:
        num_hidden_layers = 3

        @property
        def layer_types(self):
            return ["mamba"] * self.num_hidden_layers

    computed = Computed()
    export_block.with_one_layer(computed)
    assert computed.layer_types == ["mamba"] and computed.use_cache is False
    plain = SimpleNamespace(num_hidden_layers=2, layer_types=["a", "b"])
    export_block.with_one_layer(plain)
    assert plain.layer_types == ["a"]

    def is_list(module):
        return isinstance(module, list)

    assert export_block.only_layer([1, ["a", "b"], ["layer"]], is_list) == "layer"
    try:
        export_block.only_layer([1, ["a", "b"]], is_list)
        raise AssertionError("a model without a layer was taken")
    except ValueError as error:
        assert "--module" in str(error)

    # Packages below a folder called torch are not PyTorch's own files.
    trace = ('  File "/srv/torch/lib/site-packages/transformers/models/llama/modeling_llama.py", '
             'line 254, in forward\n'
             '  File "/srv/torch/lib/site-packages/torch/nn/modules/linear.py", line 134, in f\n')
    assert export_block.place_of(trace) == {
        "file": "transformers/models/llama/modeling_llama.py", "line": 254}


def check_form(fuseline, folder):
    check_layers()
    graph = export_block.graph_of(fake_program(), "Mlp", "2.7.1")
    assert [i["name"] for i in graph["inputs"]] == ["p_up_weight", "x"]
    assert graph["inputs"][0]["owner"] == "up.weight"
    assert graph["nodes"][0] == {
        "name": "linear", "target": "aten.linear.default",
        "args": [{"node": "x"}, {"node": "p_up_weight"}], "shape": [1, 5, 24],
        "dtype": "bfloat16", "file": "/home/me/mlp.py", "line": 7}
    path = os.path.join(folder, "mlp.json")
    written = export_block.text_of(graph)
    assert json.loads(written) == graph and len(written.splitlines()) == 14, written
    pathlib.Path(path).write_text(written, encoding="utf-8")
    text = imported(fuseline, path)
    assert "gateup/up: up = linear(x, w_up[F, D])" in text, text
    assert "y = gelu(up)" in text, text


def check_real(fuseline, folder):
    try:
        import torch
    except ImportError:
        print("skipped: PyTorch is not installed")
        return SKIPPED

    class Mlp(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(16, 24)
            self.down = torch.nn.Linear(24, 16)

        def forward(self, x):
            return x + self.down(torch.nn.functional.gelu(self.up(x), approximate="tanh"))

    path = os.path.join(folder, "mlp.json")
    export_block.save_graph(Mlp(), (torch.zeros(2, 5, 16),), {}, path)
    assert "y = x + dn" in imported(fuseline, path)
    try:
        import transformers
    except ImportError:
        print("transformers is not installed: its layers are not tried")
        return 0
    small = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4,
             "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 64,
             "max_position_embeddings": 64}
    for kind, words in (("llama", "rope/rope_k"), ("qwen3", "qknorm/norm_q"), ("gpt2", "gelu")):
        config = dict(small, model_type=kind)
        if kind == "gpt2":
            config = {"model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 2,
                      "vocab_size": 64, "n_positions": 64}
        if kind == "qwen3":
            config["head_dim"] = 16
        where = pathlib.Path(folder, kind)
        where.mkdir()
        (where / "config.json").write_text(json.dumps(config), encoding="utf-8")
        module, args, kwargs = export_block.layer_of_config(str(where), 1, 5)
        path = os.path.join(folder, kind + ".json")
        export_block.save_graph(module, args, kwargs, path)
        text = imported(fuseline, path)
        assert words in text and "qkv: qkv = linear" in text, text
        print(f"{kind} of transformers {transformers.__version__}: imported")
    return 0


def main():
    what, fuseline = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        return (check_form if what == "form" else check_real)(fuseline, folder) or 0


if __name__ == "__main__":
    sys.exit(main())
