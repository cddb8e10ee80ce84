"""Block hashes: the case file, array rules, bad input."""

from __future__ import annotations

import array

import numpy
import pytest
from conftest import cases

import warmroute

SIZES = (1, 4, 16, 32, 61, 64, 512)


def numbers(texts: list[str]) -> list[int]:
    return [int(text) for text in texts]


def tokens_of(case: dict) -> numpy.ndarray:
    if "tokens_gen" in case:
        gen = case["tokens_gen"]
        return numpy.array([(gen["start"] + gen["step"] * i) % gen["mod"] for i in range(gen["count"])], dtype=numpy.uint32)
    return numpy.array(case["tokens"], dtype=numpy.uint32)


def test_every_dynamo_vector_is_met() -> None:
    seen = 0
    for case in cases("hash_vectors.jsonl"):
        if case["engine"] != "dynamo" or case.get("error"):
            continue
        seen += 1
        seed = warmroute.block_seed(adapter=case["lora_name"] or "", cache_salt=case["cache_namespace"] or "")
        ids = tokens_of(case)
        if case["mm_hashes"]:
            objects = [numbers(block or []) for block in case["mm_hashes"]]
            blocks = warmroute.hash_multimodal_blocks(ids, objects, case["block_size"], seed, case["is_eagle"])
        elif case["is_eagle"]:
            blocks = warmroute.hash_eagle_blocks(ids, case["block_size"], seed)
        else:
            blocks = warmroute.hash_token_blocks(ids, case["block_size"], seed)
        assert blocks.dtype == numpy.uint64
        assert blocks.tolist() == numbers(case["local"]), case["id"]
        assert warmroute.sequence_hashes(blocks).tolist() == numbers(case["sequence"]), case["id"]
    assert seen == 70


def test_chained_form_gives_both_answers() -> None:
    ids = numpy.arange(1_300, dtype=numpy.uint32) * 7_919
    for size in SIZES:
        blocks, chain = warmroute.hash_token_blocks_chained(ids, size, 7)
        assert blocks.tolist() == warmroute.hash_token_blocks(ids, size, 7).tolist()
        assert chain.tolist() == warmroute.sequence_hashes(blocks).tolist()
        assert len(blocks) == 1_300 // size


def test_long_inputs_are_hashed_without_the_gil_to_the_same() -> None:
    ids = numpy.arange(100_000, dtype=numpy.uint32)
    parts = [warmroute.hash_token_blocks(ids[i : i + 1_600]) for i in range(0, 100_000, 1_600)]
    assert warmroute.hash_token_blocks(ids).tolist() == numpy.concatenate(parts).tolist()


def test_text_blocks_of_different_spaces_never_match() -> None:
    text = b"x" * 200
    seeds = [
        warmroute.block_seed(text=True),
        warmroute.block_seed(),
        warmroute.block_seed(text=True, adapter="l"),
        warmroute.block_seed(text=True, cache_salt="l"),
        warmroute.block_seed(text=True, isolation_key="l"),
        warmroute.block_seed(99, text=True),
    ]
    assert len({warmroute.hash_text_blocks(text, seed)[0] for seed in seeds}) == len(seeds)
    assert len(warmroute.hash_text_blocks(text, 1)) == 200 // warmroute.TEXT_BLOCK_BYTES
    assert warmroute.hash_text_blocks("x" * 200, 1).tolist() == warmroute.hash_text_blocks(text, 1).tolist()


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda raw: array.array("I", raw), lambda raw: numpy.frombuffer(raw, dtype="<u4")])
def test_every_kind_of_buffer_gives_the_same_hashes(make) -> None:
    ids = numpy.arange(160, dtype=numpy.uint32)
    assert warmroute.hash_token_blocks(make(ids.tobytes())).tolist() == warmroute.hash_token_blocks(ids).tolist()


@pytest.mark.parametrize(
    "bad",
    [
        [1, 2, 3],
        (1, 2),
        range(4),
        "text",
        5,
        numpy.arange(32),
        numpy.arange(32, dtype=numpy.int32),
        numpy.arange(32, dtype=numpy.uint8),
        numpy.arange(32, dtype=">u4"),
        numpy.arange(32, dtype=numpy.float32),
        numpy.arange(64, dtype=numpy.uint32)[::2],
        numpy.zeros((4, 4), dtype=numpy.uint32),
        array.array("i", [1]),
        memoryview(numpy.zeros((4, 4), dtype=numpy.uint32)),
    ],
)
def test_what_is_no_uint32_array_is_refused_and_nothing_is_converted(bad) -> None:
    with pytest.raises(TypeError):
        warmroute.hash_token_blocks(bad)
    with pytest.raises(TypeError):
        warmroute.Router().route_tokens(bad)


def test_odd_and_misaligned_buffers_are_value_errors() -> None:
    with pytest.raises(ValueError, match="whole number"):
        warmroute.hash_token_blocks(b"12345")
    with pytest.raises(ValueError, match="aligned"):
        warmroute.hash_token_blocks(memoryview(bytes(129))[1:])
    assert len(warmroute.hash_token_blocks(b"")) == 0
    assert len(warmroute.hash_token_blocks(memoryview(bytes(129))[1:1])) == 0


@pytest.mark.parametrize("size", [0, 513])
def test_block_sizes_outside_1_to_512_are_refused(size) -> None:
    for call in (warmroute.hash_token_blocks, warmroute.hash_eagle_blocks, warmroute.hash_token_blocks_chained):
        with pytest.raises(warmroute.Error) as caught:
            call(numpy.arange(32, dtype=numpy.uint32), size)
        assert caught.value.code == "invalid_argument"
