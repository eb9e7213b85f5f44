#!/usr/bin/env python3
"""Saves the graph of a PyTorch module, for `fuseline import graph`.

  python3 scripts/export_block.py --config config.json --output layer.json
      one layer of a model of the transformers library, with the sizes of its config.json;
      no weights are loaded
  python3 scripts/export_block.py --module my_model.blocks:example --output block.json
      a module of your own: example() returns the module and the arguments of its forward(),
      as (module, args) or (module, args, kwargs)

Needs PyTorch 2.5 or later; --config needs transformers too. In a program of your own:
  from export_block import save_graph
  save_graph(module, args, kwargs, "block.json")
"""
import argparse
import importlib
import inspect
import json
import os
import re
import sys

FORMAT = "fuseline.graph/1"
NOT_HERE = 3  # exit status: something that is needed is not here
WRONG_INPUT = 2


def written(value):
    """An argument of a call as JSON: nodes by their names, types and devices as words."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [written(v) for v in value]
    if hasattr(value, "op") and hasattr(value, "name"):
        return {"node": value.name}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        # JSON has no infinities; a mask's lowest number is one.
        return value if value == value and abs(value) != float("inf") else str(value)
    return re.sub(r"^torch\.", "", str(value))


def tensor_of(meta):
    """Shape and type of a traced value. An open size is that of the example."""
    if not hasattr(meta, "shape") or not hasattr(meta, "dtype"):
        return {}
    shape = []
    for size in meta.shape:
        hint = getattr(getattr(size, "node", None), "hint", None)
        shape.append(int(size) if hint is None else int(hint))
    return {"shape": shape, "dtype": written(meta.dtype)}


def from_package_root(file):
    """transformers/models/llama/modeling_llama.py, wherever the packages are installed."""
    return re.sub(r"^.*[/\\](?:site|dist)-packages[/\\]", "", file)


def place_of(trace):
    """File and line of the module, which stand above the library's own."""
    places = [(from_package_root(file), line)
              for file, line in re.findall(r'File "([^"]+)", line (\d+)', trace or "")]
    own = [p for p in places if not re.search(r"(^|[/\\])torch[/\\]", p[0])] or places
    return {"file": own[-1][0], "line": int(own[-1][1])} if own else {}


def target_of(node):
    name = str(getattr(node.target, "__name__", node.target))
    if name == "getitem":
        return name
    # "aten.linear.default" is how an operator of PyTorch writes itself.
    return str(node.target)


def graph_of(program, module_name, torch_version):
    """The graph of a torch.export.ExportedProgram in our own form."""
    signature = program.graph_signature
    owners = {}
    for names, kind in ((signature.inputs_to_parameters, "parameter"),
                        (signature.inputs_to_buffers, "buffer"),
                        (signature.inputs_to_lifted_tensor_constants, "buffer")):
        for name, owner in names.items():
            owners[name] = (kind, owner)
    inputs, nodes, outputs = [], [], []
    for node in program.graph.nodes:
        meta = node.meta.get("val")
        if node.op == "placeholder":
            kind, owner = owners.get(node.name, ("input", None))
            tensor = tensor_of(meta)
            if kind == "input" and not tensor:
                continue  # a number or None: calls that read it hold its value
            entry = {"name": node.name, "kind": kind, **tensor}
            if owner:
                entry["owner"] = owner
            inputs.append(entry)
        elif node.op == "call_function":
            entry = {"name": node.name, "target": target_of(node), "args": written(node.args)}
            if node.kwargs:
                entry["kwargs"] = {k: written(v) for k, v in node.kwargs.items()}
            if hasattr(meta, "node") and not hasattr(meta, "shape"):
                continue  # an open size; what reads it has its own sizes
            nodes.append({**entry, **tensor_of(meta), **place_of(node.meta.get("stack_trace"))})
        elif node.op == "output":
            given = set(signature.user_outputs)
            for value in node.args[0]:
                if hasattr(value, "op") and value.name in given:
                    outputs.append(value.name)
    known = {n["name"] for n in inputs} | {n["name"] for n in nodes}
    for node in nodes:
        node["args"] = without_unknown(node["args"], known)
        if "kwargs" in node:
            node["kwargs"] = without_unknown(node["kwargs"], known)
    return {"format": FORMAT, "module": module_name, "torch": torch_version, "inputs": inputs,
            "nodes": nodes, "outputs": outputs}


def without_unknown(value, known):
    """Open sizes are no nodes of ours: None in their place."""
    if isinstance(value, list):
        return [without_unknown(v, known) for v in value]
    if isinstance(value, dict):
        if set(value) == {"node"}:
            return value if value["node"] in known else None
        return {k: without_unknown(v, known) for k, v in value.items()}
    return value


def save_graph(module, args, kwargs, path):
    """Traces the module in evaluation mode and writes its graph to a file."""
    import torch

    program = torch.export.export(module.eval(), tuple(args), dict(kwargs or {}), strict=False)
    graph = graph_of(program, type(module).__name__, torch.__version__)
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        file.write(text_of(graph))
    os.replace(part, path)


def text_of(graph):
    """JSON with a line for every input and every call."""
    fields = []
    for name, value in graph.items():
        text = json.dumps(value)
        if name in ("inputs", "nodes") and value:
            text = "[\n" + ",\n".join("  " + json.dumps(v) for v in value) + "\n ]"
        fields.append(f" {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def with_one_layer(config):
    """Of lists with an entry for every layer one is left, where the configuration lets us set it."""
    config.num_hidden_layers = 1
    for plural in ("layer_types", "no_rope_layers"):
        if isinstance(getattr(config, plural, None), list):
            try:
                setattr(config, plural, getattr(config, plural)[:1])
            except AttributeError:
                pass  # computed from the number of layers
    config.use_cache = False


def only_layer(modules, is_list):
    """The one layer of the model: the first list of modules that holds one."""
    for module in modules:
        if is_list(module) and len(module) == 1:
            return module[0]
    raise ValueError("the model has no list of one layer; name the layer with --module")


def arguments_by_name(forward, given):
    """What forward() is called with. None is left out where forward() has a default for it."""
    known = inspect.signature(forward).parameters
    required = {name for name, parameter in known.items()
                if parameter.default is inspect.Parameter.empty
                and parameter.kind is not inspect.Parameter.VAR_KEYWORD}
    return {name: value for name, value in given.items()
            if name in required or (value is not None and name != "use_cache"
                                    and not name.startswith("past_key_value"))}


def layer_of_config(path, batch, seq):
    """A layer of a transformers model with random weights, and what the model calls it with."""
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(path)
    with_one_layer(config)
    model = transformers.AutoModel.from_config(config, torch_dtype=torch.bfloat16).eval()
    layer = only_layer(model.modules(), lambda m: isinstance(m, torch.nn.ModuleList))
    seen = {}

    def keep(_, args, kwargs):
        seen["args"], seen["kwargs"] = args, kwargs

    handle = layer.register_forward_pre_hook(keep, with_kwargs=True)
    with torch.no_grad():
        model(input_ids=torch.zeros(batch, seq, dtype=torch.long))
    handle.remove()
    return layer, seen["args"], arguments_by_name(layer.forward, seen["kwargs"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--config", help="config.json of a transformers model, or its folder")
    source.add_argument("--module", help="PACKAGE.MODULE:FUNCTION that gives module and arguments")
    parser.add_argument("--batch", type=int, default=1, help="sequences of the example (1)")
    parser.add_argument("--seq", type=int, default=16, help="tokens of a sequence (16)")
    parser.add_argument("--output", required=True, help="the file to write")
    options = parser.parse_args()
    try:
        if options.config:
            module, args, kwargs = layer_of_config(options.config, options.batch, options.seq)
        else:
            package, _, function = options.module.partition(":")
            if not function:
                parser.error("--module: PACKAGE.MODULE:FUNCTION")
            sys.path.insert(0, os.getcwd())
            made = getattr(importlib.import_module(package), function)()
            module, args, kwargs = made if len(made) == 3 else (*made, {})
        save_graph(module, args, kwargs, options.output)
    except ImportError as error:
        print(f"export_block: not available: {error}", file=sys.stderr)
        return NOT_HERE
    except (AttributeError, OSError, TypeError, ValueError) as error:
        print(f"export_block: error: {error}", file=sys.stderr)
        return WRONG_INPUT
    print(f"export_block: written {options.output}; see fuseline import graph {options.output}",
          file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
