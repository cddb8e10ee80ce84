"""A conversation of three turns: the replica that computed the start of a prompt gets its continuation."""

import numpy

import warmroute

router = warmroute.Router(warmroute.Policy(block_size=16))
urls = {router.add_replica(name): f"http://{name}:8000" for name in ("gpu-0", "gpu-1", "gpu-2")}

prompt = numpy.arange(1_000, dtype=numpy.uint32)  # token ids; with text, pass the request's body as bytes
for turn in range(1, 4):
    with router.route(prompt, session="chat-17", max_output_tokens=300) as ticket:
        if not ticket:  # no replica, no pool: a verdict, not an exception
            raise SystemExit(f"503: {ticket.decision.verdict.name}")
        decision = ticket.decision
        print(f"turn {turn}: {urls[ticket.replica]}, {decision.cached_tokens} of {decision.input_tokens} tokens cached ({decision.reason.name})")
        ticket.first_token()  # when the first chunk comes: its prefill is over
        ticket.usage(input_tokens=len(prompt), cached_tokens=decision.cached_tokens, output_tokens=250)
    answer = numpy.arange(turn * 10_000, turn * 10_000 + 300, dtype=numpy.uint32)
    prompt = numpy.concatenate([prompt, answer])  # the next turn begins with all of this one

# The flat calls do the same with ints, in about a microsecond.
replica, number = router.route_tokens(prompt, session="chat-17")
print("turn 4:", urls[replica] if replica >= 0 else warmroute.Verdict(-replica).name)
router.finish(number, output_tokens=10)

statistics = router.statistics()
print(f"{statistics.verdicts['routed']} routed, {statistics.tickets_in_flight} in flight")
