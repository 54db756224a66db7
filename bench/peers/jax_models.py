"""The reference models in JAX, on PyTorch's parameters by PyTorch's names: what a user of JAX would write, for cpu.py."""
import jax
import jax.numpy as jnp


def linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def layer_norm(p, name, x, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred ** 2).mean(-1, keepdims=True) + epsilon) * p[f"{name}.weight"] + p[f"{name}.bias"]


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def dropout(key, x, rate):
    return x if key is None else jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def keys(key, count):
    return [None] * count if key is None else jax.random.split(key, count)


def attention(q, k, v, heads, key=None, rate=0.0):
    """Of [batch, tokens, width], head by head; written out, since dropout stands between."""
    q, k, v = (t.reshape(*t.shape[:2], heads, -1) for t in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    mixed = jnp.einsum("bhqk,bkhd->bqhd", dropout(key, jax.nn.softmax(scores), rate), v)
    return mixed.reshape(*mixed.shape[:2], -1)


def patches(x, height, width):
    """[batch, channels, rows, columns] -> [batch, patches, channels * height * width]"""
    b, c, rows, columns = x.shape
    x = x.reshape(b, c, rows // height, height, columns // width, width).transpose(0, 2, 4, 1, 3, 5)
    return x.reshape(b, -1, c * height * width)


def timm_vit(model):
    heads, depth, epsilon = model.blocks[0].attn.h, len(model.blocks), model.norm.eps
    side = model.patch_embed.proj.kernel_size[0]

    def apply(p, x, key):
        kernel = p["patch_embed.proj.weight"]
        t = patches(x, side, side) @ kernel.reshape(len(kernel), -1).T + p["patch_embed.proj.bias"]
        t = jnp.concatenate([jnp.broadcast_to(p["cls_token"], (len(x), 1, t.shape[2])), t], 1) + p["pos_embed"]
        for i in range(depth):
            block = f"blocks.{i}"
            q, k, v = jnp.split(linear(p, f"{block}.attn.qkv", layer_norm(p, f"{block}.norm1", t, epsilon)), 3, -1)
            t = t + linear(p, f"{block}.attn.proj", attention(q, k, v, heads))
            t = t + linear(p, f"{block}.mlp.fc2", gelu(linear(p, f"{block}.mlp.fc1", layer_norm(p, f"{block}.norm2", t, epsilon))))
        return linear(p, "head", layer_norm(p, "norm", t[:, 0], epsilon))
    return apply


def cifar_vit(model):
    heads, depth, rate = model.transformer_blocks[0].attention.num_heads, len(model.transformer_blocks), model.p

    def apply(p, x, key):
        t = linear(p, "patch_embed", patches(x, model.patch, model.patch))
        first, *others = keys(key, 1 + 3 * depth)
        t = jnp.concatenate([jnp.broadcast_to(p["cls_token"], (len(x), 1, t.shape[2])), t], 1) + p["pos_embed"]
        t = dropout(first, t, rate)
        for i in range(depth):
            block, drawn = f"transformer_blocks.{i}", others[3 * i:3 * i + 3]
            n = layer_norm(p, f"{block}.norm1", t, 1e-5)
            maps = n @ p[f"{block}.attention.in_proj_weight"].T + p[f"{block}.attention.in_proj_bias"]
            mixed = attention(*jnp.split(maps, 3, -1), heads, drawn[0], rate)
            t = t + linear(p, f"{block}.attention.out_proj", mixed)
            hidden = dropout(drawn[1], linear(p, f"{block}.ffn.linear1", layer_norm(p, f"{block}.norm2", t, 1e-5)), rate)
            t = t + dropout(drawn[2], linear(p, f"{block}.ffn.linear2", gelu(hidden)), rate)
        return linear(p, "head", layer_norm(p, "norm", t, 1e-5)[:, 0])
    return apply


def mnist_vit(model):
    heads, depth = model.blocks[0].mhsa.heads, len(model.blocks)
    table = jnp.asarray(model.positional_embeddings.numpy())

    def sliced(p, name, x):
        parts = jnp.split(x, heads, -1)
        maps = ([linear(p, f"{name}.{which}_mappings.{i}", part) for i, part in enumerate(parts)] for which in "qkv")
        return jnp.concatenate([attention(q, k, v, 1) for q, k, v in zip(*maps)], -1)

    def apply(p, x, key):
        t = linear(p, "linear_mapper", patches(x, model.ph, model.pw))
        t = jnp.concatenate([jnp.broadcast_to(p["class_token"], (len(x), 1, t.shape[2])), t], 1) + table
        for i in range(depth):
            block = f"blocks.{i}"
            t = t + sliced(p, f"{block}.mhsa", layer_norm(p, f"{block}.norm1", t, 1e-5))
            t = t + linear(p, f"{block}.mlp.2", gelu(linear(p, f"{block}.mlp.0", layer_norm(p, f"{block}.norm2", t, 1e-5))))
        return jax.nn.softmax(linear(p, "mlp.0", t[:, 0]))
    return apply


def model(reference):
    """The forward pass of a reference model: a function of parameters, images and a key, None where nothing is dropped."""
    return {"TimmVit": timm_vit, "CifarVit": cifar_vit, "MnistVit": mnist_vit}[type(reference).__name__](reference)


def start(parameters):
    """What a step goes on from: parameters, Adam's two means, the number of steps made."""
    def zeros():
        return {name: jnp.zeros_like(value) for name, value in parameters.items()}
    return parameters, zeros(), zeros(), jnp.zeros((), jnp.int32)


def training_step(apply, rate):
    """A compiled step: softmax cross entropy, gradients, Adam (Kingma and Ba 2015, algorithm 1; its usual constants)."""
    def loss(p, x, labels, key):
        return -jnp.take_along_axis(jax.nn.log_softmax(apply(p, x, key)), labels[:, None], 1).mean()

    def step(state, x, labels):
        p, first, second, count = state
        value, gradients = jax.value_and_grad(loss)(p, x, labels, jax.random.fold_in(jax.random.key(1), count))
        count = count + 1
        first = {name: 0.9 * first[name] + 0.1 * g for name, g in gradients.items()}
        second = {name: 0.999 * second[name] + 0.001 * g * g for name, g in gradients.items()}
        moved = {name: p[name] - rate * (first[name] / (1 - 0.9 ** count)) /
                 (jnp.sqrt(second[name] / (1 - 0.999 ** count)) + 1e-8) for name in p}
        return (moved, first, second, count), value
    return jax.jit(step, donate_argnums=0)
