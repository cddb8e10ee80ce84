#!/usr/bin/env python3
"""Writes a small model with random weights in llama.cpp's format, for ./dev demo --engine llama. Needs the package gguf (and numpy).

It says nothing sensible, but costs what a model of its size costs. Its tokenizer knows the words of the replay client, three letters and a
space, one token each; it answers in such words alone, so that an answer is read back in the next turn as the tokens that it was.
"""
import argparse
import itertools

import gguf
import numpy

CONSONANTS = "bcdfghjklmnprstvwxz"  # of the client's words
SPACE = "\u2581"  # how SentencePiece spells a space
TEMPLATE = ("{% for m in messages %}<|{{ m['role'] }}|> {{ m['content'] | trim }}{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{% endif %}")


def vocabulary():
    """returns: (piece, score, type) of every token, and the index of the first whole word; words come last."""
    kinds = gguf.TokenType
    tokens = [("<unk>", 0.0, kinds.UNKNOWN), ("<s>", 0.0, kinds.CONTROL), ("</s>", 0.0, kinds.CONTROL)]
    tokens += [(f"<|{role}|>", 0.0, kinds.CONTROL) for role in ("system", "user", "assistant")]
    tokens += [(f"<0x{byte:02X}>", 0.0, kinds.BYTE) for byte in range(256)]
    tokens += [(letter, -9.0, kinds.NORMAL) for letter in "abcdefghijklmnopqrstuvwxyz" + SPACE]
    syllables = ["".join(s) for s in itertools.product(CONSONANTS, "aeiou")]
    tokens += [(s, -1.0, kinds.NORMAL) for s in syllables]
    tokens += [(SPACE + s, -2.0, kinds.NORMAL) for s in syllables]
    first_word = len(tokens)
    tokens += [(SPACE + s + c, -3.0, kinds.NORMAL) for s in syllables for c in CONSONANTS]
    return tokens, first_word


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file")
    options.add_argument("--width", type=int, default=384)
    options.add_argument("--layers", type=int, default=8)
    options.add_argument("--context", type=int, default=8192)
    options = options.parse_args()
    width, heads = options.width, options.width // 64
    inner = 4 * width
    tokens, first_word = vocabulary()

    writer = gguf.GGUFWriter(options.file, "llama")
    writer.add_name("random words")
    writer.add_context_length(options.context)
    writer.add_embedding_length(width)
    writer.add_block_count(options.layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_rope_dimension_count(64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([piece for piece, _, _ in tokens])
    writer.add_token_scores([score for _, score, _ in tokens])
    writer.add_token_types([kind for _, _, kind in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)

    random = numpy.random.default_rng(1)

    def matrix(rows, columns, scale=1.0):
        return (random.standard_normal((rows, columns), dtype=numpy.float32) * scale / columns**0.5).astype(numpy.float16)

    ones = numpy.ones(width, dtype=numpy.float32)
    writer.add_tensor("token_embd.weight", matrix(len(tokens), width, width**0.5))
    for layer in range(options.layers):
        name = f"blk.{layer}."
        writer.add_tensor(name + "attn_norm.weight", ones)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"{name}{part}.weight", matrix(width, width))
        writer.add_tensor(name + "ffn_norm.weight", ones)
        writer.add_tensor(name + "ffn_gate.weight", matrix(inner, width))
        writer.add_tensor(name + "ffn_up.weight", matrix(inner, width))
        writer.add_tensor(name + "ffn_down.weight", matrix(width, inner))
    writer.add_tensor("output_norm.weight", ones)
    output = matrix(len(tokens), width)
    output[:first_word] = 0  # the best of the words is always above zero
    writer.add_tensor("output.weight", output)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
