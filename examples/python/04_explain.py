"""Why a decision fell as it did; and an experiment: a cost term of your own."""

import numpy

import warmroute

router = warmroute.Router(clock=lambda: 1_000_000_000)  # a clock of your own: simulations and tests repeat exactly
for name, weight in (("a100-0", 1.0), ("a100-1", 1.0), ("h100-0", 2.0)):
    router.add_replica(name, weight=weight, labels={"zone": "b" if name == "a100-1" else "a"})

system = numpy.arange(4_000, dtype=numpy.uint32)
tickets = [router.route(numpy.append(system, numpy.uint32(i)), max_output_tokens=200) for i in range(6)]  # six in flight

request = numpy.append(system, numpy.arange(500, 600, dtype=numpy.uint32))
explanation = router.explain(request)
print(explanation)  # a notebook shows it as a table
chosen = next(c for c in explanation.to_dict()["candidates"] if c["chosen"])
print("chosen:", chosen["replica"], "at", chosen["cost_ms"], "ms")

# The candidates as arrays: pick anything out of them.
columns = explanation.columns()
print("in flight:", dict(zip(explanation.names, columns["requests"].tolist())))

zones = {replica: spec.labels["zone"] for replica, spec in router.replicas().items()}


def stay_in_zone_b(candidates: warmroute.Columns) -> numpy.typing.NDArray[numpy.int64]:
    """Half a second more for every replica outside zone b."""
    outside = numpy.array([zones[int(replica)] != "b" for replica in candidates["replica"]])
    return outside.astype(numpy.int64) * 500_000_000


with router.route_with(stay_in_zone_b, request) as ticket:
    print("with the cost term:", router.replica(ticket.replica).name, ticket.decision.reason.name)

for open_ticket in tickets:
    open_ticket.finish()
