"""Bodies: the case file, tokenizers, buffers, errors."""

from __future__ import annotations

import base64
import gc
import json
import threading
import weakref

import numpy
import pytest
from conftest import cases

import warmroute
from warmroute import BodyParser, Error

CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "tell me of tides " * 20}]}).encode()


def body_of(case: dict) -> bytes:
    if "body_gen" in case:
        return "".join(piece.get("lit", "") + piece.get("repeat", "") * piece.get("times", 0) for piece in case["body_gen"]).encode()
    if case.get("body_encoding") == "base64":
        return base64.b64decode(case["body"])
    return case["body"].encode("utf-8", "surrogatepass")


def ids_of(case: dict) -> list[list[int]]:
    if "token_ids_gen" in case:
        return [[i for piece in case["token_ids_gen"] for i in piece["ids"] * piece["times"]]]
    ids = case["expect"]["token_ids"]
    if not ids:
        return []
    return ids if isinstance(ids[0], list) else [ids]


def test_every_case_gives_what_the_file_says() -> None:
    parser = BodyParser()
    lines = cases("request_cases.jsonl")
    assert len(lines) >= 157
    for case in lines:
        expect = case["expect"]
        body = body_of(case)
        if expect["error"]:
            with pytest.raises(Error) as caught:
                parser.parse(body, case["api"])
            error = caught.value
            assert error.code.replace("value_out_of_range", "out_of_range") == expect["error"], case["id"]
            assert error.offset is None or error.offset <= len(body)
            continue
        parsed = parser.parse(body, case["api"])
        for member in ("model", "session", "user", "adapter", "cache_salt", "stream", "max_output_tokens"):
            assert getattr(parsed, member) == expect[member], (case["id"], member)
        assert parsed.kind.name == expect["prompt_kind"] and parsed.prompt_count == expect["n_prompts"]
        ids = ids_of(case)
        flat = [i for prompt in ids for i in prompt]
        assert parsed.all_token_ids.tolist() == flat
        assert parsed.prompt_ends.tolist() == numpy.cumsum([len(prompt) for prompt in ids]).tolist()
        assert parsed.input_tokens == (len(flat) or None) and parsed.ids_from_body == bool(flat)


def test_related_bodies_share_what_the_file_says() -> None:
    equal = prefix = 0
    for case in cases("request_relations.jsonl"):
        if "a_gen" in case or "b_gen" in case or case["relation"] not in ("equal", "a_is_prefix_of_b"):
            continue
        a, b = (
            BodyParser().parse(case[side], case[f"api_{side}"], **{k: v for k, v in case.get(f"opts_{side}", {}).items()}).blocks.tolist()
            for side in ("a", "b")
        )
        assert a == b[: len(a)], case.get("id")
        equal += case["relation"] == "equal"
        prefix += case["relation"] != "equal"
    assert equal > 5 and prefix > 5


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: memoryview(bytearray(b)), lambda b: b.decode()])
@pytest.mark.parametrize("times", [1, 200])
def test_every_kind_of_buffer_gives_the_same_blocks(kind, times) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "tell me of tides " * 20 * times}]}).encode()
    blocks = BodyParser().parse(body).blocks
    assert len(blocks) > 3 and BodyParser().parse(kind(body)).blocks.tolist() == blocks.tolist()


def test_parsed_arrays_are_read_only_and_outlive_parser_and_body() -> None:
    parser = BodyParser()
    parsed = parser.parse(CHAT)
    blocks = parsed.blocks
    copy = blocks.tolist()
    parser.parse(CHAT.replace(b"tides", b"ships"))
    del parsed, parser
    gc.collect()
    assert blocks.tolist() == copy
    with pytest.raises(ValueError):
        blocks[0] = 1


@pytest.mark.parametrize("result", [lambda n: numpy.arange(n, dtype=numpy.uint32), lambda n: list(range(n)), lambda n: numpy.arange(n, dtype=numpy.uint32).tobytes().__class__ and memoryview(numpy.arange(n, dtype=numpy.uint32))])
@pytest.mark.parametrize("count", [0, 5, 40_000])
def test_a_tokenizer_supplies_ids(result, count) -> None:
    seen: list[bytes] = []

    def tokenizer(prompt: bytes):
        seen.append(prompt)
        return result(count)

    parsed = BodyParser(tokenizer).parse(CHAT)
    assert seen == [warmroute.canonical_prompt(CHAT)]
    assert parsed.all_token_ids.tolist() == list(range(count))
    if count:
        assert parsed.token_blocks and parsed.input_tokens == count
        assert parsed.blocks.tolist() == warmroute.hash_token_blocks(numpy.arange(count, dtype=numpy.uint32)).tolist()


@pytest.mark.parametrize("times", [1, 2_000])
def test_what_a_tokenizer_raises_comes_through(times) -> None:
    class Stop(Exception):
        pass

    def tokenizer(prompt: bytes):
        raise Stop(len(prompt))

    body = json.dumps({"prompt": "words " * times}).encode()
    for call in (lambda: BodyParser(tokenizer).parse(body, "completions"), lambda: warmroute.Router(tokenizer=tokenizer).route_body(body, api="completions")):
        with pytest.raises(Stop):
            call()


@pytest.mark.parametrize("answer", ["text", [-1], [2**32], [1.5], None, numpy.arange(3)])
def test_what_is_no_list_of_ids_is_refused(answer) -> None:
    with pytest.raises(TypeError):
        BodyParser(lambda prompt: answer).parse(CHAT)


def test_a_tokenizer_may_use_the_parser_itself() -> None:
    parser: BodyParser

    def tokenizer(prompt: bytes):
        return [] if prompt.startswith(b"inner") else parser.parse(b'{"prompt":"inner words"}', "completions").blocks.size * [1] or [7, 8]

    parser = BodyParser(tokenizer)
    assert parser.parse(b'{"prompt":"outer words"}', "completions").all_token_ids.tolist() == [7, 8]


def test_a_parser_that_its_tokenizer_refers_to_is_collected() -> None:
    class Holder:
        pass

    holder = Holder()
    holder.parser = BodyParser(lambda prompt, holder=holder: [1])
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_one_parser_serves_many_threads() -> None:
    parser = BodyParser(lambda prompt: numpy.frombuffer(prompt[: len(prompt) // 4 * 4], dtype=numpy.uint32).copy())
    bodies = [json.dumps({"prompt": f"{i} " * 3_000}).encode() for i in range(4)]
    expected = [parser.parse(body, "completions").blocks.tolist() for body in bodies]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(30):
            if parser.parse(bodies[i], "completions").blocks.tolist() != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i % 4,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_options_count() -> None:
    assert BodyParser(block_size=64, tokenizer=lambda p: list(range(640))).parse(CHAT).blocks.size == 10
    plain = BodyParser().parse(CHAT).blocks[0]
    assert BodyParser(hash_seed=5).parse(CHAT).blocks[0] != plain
    assert BodyParser().parse(CHAT, tenant="t").blocks[0] != plain
    assert BodyParser(isolation="none").parse(CHAT, tenant="t").blocks[0] == plain
    assert BodyParser().parse(CHAT, adapter="l").adapter == "l"
    with pytest.raises(Error) as caught:
        BodyParser(max_bytes=10).parse(CHAT)
    assert caught.value.code == "too_large"
    with pytest.raises(TypeError):
        BodyParser(tokenizer=5)
    with pytest.raises(TypeError):
        BodyParser().parse(17)
    with pytest.raises(ValueError, match="no BodyApi"):
        BodyParser().parse(CHAT, "chatter")
    assert warmroute.api_for_path("/v1/messages?beta=true") is warmroute.BodyApi.messages
    with pytest.raises(Error) as caught:
        warmroute.api_for_path("/nothing")
    assert caught.value.code == "not_found"
