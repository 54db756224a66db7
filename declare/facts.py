#!/usr/bin/env python3
"""Writes declare/facts.txt: what only the name of an architecture of timm tells, read from timm's source, which is parsed
and not run (no PyTorch is needed).
Usage: facts.py TIMM     the folder of the package, as `pip download --no-deps timm` has it in its wheel"""
import ast
import os
import sys

# module -> what its models are where a function says nothing else: pooling
MODULES = {"vision_transformer": "token", "deit": "token", "eva": "avg", "beit": "avg", "vision_transformer_relpos": "avg",
           "cait": "token", "swin_transformer": "avg", "swin_transformer_v2": "avg",
           "vision_transformer_sam": "avg"}


def registered(tree):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any("register_model" in ast.unparse(d) for d in node.decorator_list):
            yield node


def arguments(function, shared):
    """The keywords of the dict of model arguments and of the call that makes the model; of a function in `shared` that makes
    the dict for several, those of its dict as the call has them."""
    found = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in shared:
            given = {k.arg: ast.unparse(k.value) for k in node.keywords}
            found.update({k: given.get(v, v) for k, v in arguments(shared[ast.unparse(node.func)], {}).items()})
        if isinstance(node, ast.Call) and (ast.unparse(node.func) == "dict" or "_create" in ast.unparse(node.func)):
            found.update({k.arg: ast.unparse(k.value) for k in node.keywords if k.arg})
    return found


def rope(a):
    if a.get("use_rot_pos_emb") != "True" or a.get("rope_type") == "'mixed'":
        return ""
    fields = []
    if a.get("rope_type") == "'dinov3'":
        fields += [f".temperature = {float(a.get('rope_temperature', '100')):g}"]
        if a.get("rope_rotate_half") == "True":
            fields += [".pairs = RopePairs::halves"]
        fields += [".places = RopePlaces::centres"]
    elif float(a.get("rope_temperature", "10000")) != 10000:
        fields += [f".temperature = {float(a['rope_temperature']):g}"]
    if a.get("rope_grid_indexing") == "'xy'":
        fields += [".columns_first = true"]
    if float(a.get("rope_grid_offset", "0")):
        fields += [f".offset = {float(a['rope_grid_offset']):g}"]
    if "ref_feat_shape" in a:
        rows, columns = ast.literal_eval(a["ref_feat_shape"])
        fields += [f".rows = {rows}, .columns = {columns}"]
    return "{" + ", ".join(fields) + "}"


def facts(module, a):
    if not a.get("num_heads", "").startswith("("):  # of stages, which shapes tell
        yield "heads", a.get("num_heads", "12")
    pool = a.get("global_pool", repr(MODULES[module])).split(", ")[-1].strip("')")
    yield "pool", pool
    norm = a.get("norm_layer", "")
    if "eps=" in norm:
        yield "epsilon", norm.split("eps=")[1].rstrip(")")
    act = a.get("act_layer", "").strip("'").replace("nn.", "").lower()
    if act not in ("", "gelu"):
        yield "activation", {"gelutanh": "gelu_tanh", "quickgelu": "quick_gelu"}.get(act, act)
    if "SwiGLU" in a.get("mlp_layer", "") or a.get("swiglu_mlp") == "True":
        yield "gate", "silu"
    elif "Glu" in a.get("mlp_layer", ""):
        yield "gate", act or "sigmoid"
    if "ResPostBlock" in a.get("block_fn", "") or "ResPost" in a.get("block_fn", "") or a.get("use_post_norm") == "True":
        yield "norms", "after"
    start = a.get("init_values", {"cait": "1e-4", "vision_transformer_relpos": "1e-6"}.get(module, "None"))
    if start != "None":
        yield "layer_scale", start
    if a.get("attn_only_layer_scale") == "True":
        yield "scales", "attention"
    if "attn_pool_num_heads" in a:
        yield "pooling_heads", a["attn_pool_num_heads"]
    if pool == "map" and (module == "eva" or a.get("pool_include_prefix") == "True"):
        yield "attends", "all"
    turned = rope(a)
    if turned:
        yield "rope", turned.replace(" ", "")
    if module == "swin_transformer_v2":  # of Swin Transformers before it, tables tell it
        yield "window", a["window_size"]
        if "pretrained_window_sizes" in a:
            yield "pretrained_windows", a["pretrained_window_sizes"].strip("()").replace(" ", "")


def main(timm):
    lines = []
    for module in MODULES:
        with open(os.path.join(timm, "models", module + ".py"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
            shared = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.endswith("_args")}
            for function in registered(tree):
                row = [f"{k}={v}" for k, v in facts(module, arguments(function, shared))]
                lines.append(" ".join([function.name] + row))
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "facts.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(sorted(lines)) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
