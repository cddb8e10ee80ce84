#!/usr/bin/env python3
"""Prints microseconds per token of a prompt and per token of an answer of the llama.cpp server on a port, as it says itself."""
import json
import sys
import urllib.request


def ask(words):
    body = {"messages": [{"role": "user", "content": words}], "max_tokens": 32}
    request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/v1/chat/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))["timings"]


ask("bab " * 200)  # the first one also pays for memory that was never touched
timings = ask("cat " * 800)
print(round(timings["prompt_per_token_ms"] * 1000), round(timings["predicted_per_token_ms"] * 1000))
