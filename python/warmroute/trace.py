"""Traces of requests, logs of decisions that play again, and a fleet under a virtual clock.

    from warmroute import trace

    for record in trace.TraceReader("conversation_trace.jsonl.gz"):       # six published forms, told by the first line
        print(record.arrival_us, record.input_tokens, len(record.blocks))

    router = warmroute.Router(record="calls.decisions")                    # every call is logged, hashes under a key
    ...
    print(trace.replay("calls.decisions").identical)                       # the same decisions, call by call
    print(trace.replay("calls.decisions", change={"gamma": 0.1}).first_other_choice)

    workload = trace.Workload.open_loop(trace.TraceReader("conversation_trace.jsonl")).at_load(0.9, "70b-8xh100", 8)
    print(trace.simulate(workload, profile="70b-8xh100", replicas=8).ttft.mean_us)
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

from ._core import (
    Decision,
    DecisionCall,
    DecisionRecord,
    Policy,
    TraceFormat,
    TraceRecord,
    Workload,
    detect_trace_format,
    hardware_profiles,
    replay_decision_log,
    routing_rules,
    simulate_fleet,
    simulation_views,
)
from ._core import DecisionLog as CoreDecisionLog
from ._core import TraceReader as CoreTraceReader
from ._core import TraceWriter as CoreTraceWriter

if TYPE_CHECKING:
    from typing_extensions import Self

Path = Union[str, "os.PathLike[str]"]


class TraceReader(CoreTraceReader):
    """Iterates over a trace's records in the file's order, plain or gzip; memory is bounded by a line, a record and max_chats.

    path, or text (str or bytes) instead. weka: conversation i starts at i * conversation_gap_us; share_system_prompts: equal
    lengths of tools and system are the same blocks; block_salt gives all other blocks other ids. max_...: what is beyond is a
    broken record.
    errors of next(): Error with "<file>:<line>: ..." and the offset of that line; one may go on with the next line, except after io
    and unsupported (the first line is of no known form).
    """


class TraceWriter(CoreTraceWriter):
    """Writes the Mooncake form, gzip where the name ends in ".gz"; `with` closes it. An existing file is replaced.

    What is written reads back as the same records where blocks are of 512 tokens; smaller ones that divide 512 are joined.
    Nothing is made anonymous. errors: Error io.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, where: TracebackType | None) -> None:
        self.close()


class DecisionLog(CoreDecisionLog):
    """Iterates over the records of a log that Router(record=path) writes, also while it does.

    A record that was not written out whole is cut off (torn_bytes). errors: Error io, malformed (no log, or a damaged record),
    unsupported (of another version); nothing comes behind one.
    """


@dataclasses.dataclass(frozen=True)
class Difference:
    """Where a replay and its log part. recorded, replayed: of a routing call; of others, whose result differed, None."""

    record: int
    call: DecisionCall
    now_ns: int
    recorded: Decision | None
    replayed: Decision | None


@dataclasses.dataclass(frozen=True)
class Replay:
    """What came of playing a log. differing: decisions that differ in any member; other_choices: of these, in verdict or replica;
    other_results: other calls that ended otherwise.
    """

    records: int
    decisions: int
    differing: int
    other_choices: int
    other_results: int
    torn_bytes: int
    first_difference: Difference | None
    first_other_choice: Difference | None

    @property
    def identical(self) -> bool:
        """Whether every call ended as it did."""
        return self.differing == 0 and self.other_results == 0


def _difference(raw: dict[str, Any] | None) -> Difference | None:
    return None if raw is None else Difference(**raw)


def replay(path: Path, *, change: Mapping[str, Any] | str = "", max_records: int = 0) -> Replay:
    """Plays a decision log from its start on a fresh router.

    change: members of a policy's JSON form, put over every policy in the log: what would other knobs have decided? Behind the first
    other choice the rest of the log answers another question. max_records 0: all.
    errors: Error io, malformed, unsupported; invalid_json, invalid_argument (change).
    """
    raw = replay_decision_log(path, change if isinstance(change, str) else json.dumps(dict(change)), max_records)
    raw["first_difference"] = _difference(raw["first_difference"])
    raw["first_other_choice"] = _difference(raw["first_other_choice"])
    return Replay(**raw)


@dataclasses.dataclass(frozen=True)
class Latency:
    """By nearest rank, in us."""

    mean_us: float
    p50_us: int
    p90_us: int
    p99_us: int
    max_us: int


@dataclasses.dataclass(frozen=True)
class Figures:
    """What a simulation came to; warmroute/trace/simulator.hpp says what each is.

    goodput: share of requests within the objectives. bound_ratio: the hit ratio of one infinite cache. Imbalances: max / mean over
    replicas. dollars 0: the profile has no price.
    """

    requests: int
    completed: int
    rejected: int
    sent_again: int
    unplaced: int
    ttft: Latency
    itl: Latency
    e2e: Latency
    goodput: float
    goodput_rate: float
    pairs: int
    transferred_tokens: int
    transfer: Latency
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    hit_ratio: float
    bound_ratio: float
    busy_imbalance: float
    prefill_imbalance: float
    token_imbalance: float
    utilisation: float
    spill_ratio: float
    duplicates: float
    evictions: int
    preemptions: int
    makespan_us: int
    dollars: float
    tokens_per_dollar: float

    def to_dict(self) -> dict[str, Any]:
        """The same as nested dicts, for JSON or a data frame."""
        return dataclasses.asdict(self)


def simulate(
    workload: Workload | Iterable[TraceRecord],
    *,
    profile: str,
    replicas: int = 8,
    rule: str = "warmroute",
    policy: Policy | None = None,
    capacities: Sequence[int] = (),
    view: str = "perfect",
    snapshot_us: int = 100_000,
    event_delay_us: int = 50_000,
    event_loss: float = 0.0,
    waiting_tokens: bool = False,
    routers: int = 1,
    pin_conversations: bool = False,
    gateway_ring: bool = False,
    forward_us: int = 500,
    share_loads_us: int = 0,
    share_placements: bool = False,
    prefill_replicas: int = 0,
    decode_replicas: int = 0,
    transfer_token_ps: int = 0,
    transfer_latency_us: int = 5_000,
    churn: str = "",
    seed: int = 1,
    warm_up_us: int = 0,
    horizon_us: int = 0,
    slo_ttft_us: int = 2_000_000,
    slo_itl_us: int = 0,
) -> Figures:
    """A fleet of replica models behind a routing rule under a virtual clock: equal arguments give equal figures.

    workload: a Workload, or records at their own times. profile: of hardware_profiles(). rule: of routing_rules(), with options;
    policy: of the rule warmroute. capacities: KV tokens of the replicas in turn, where they differ. view: of simulation_views(), what the
    rule may know: loads each snapshot_us, events event_delay_us late, a share event_loss of them never, in steps of 0.001 (of views
    such as "stale-fix"; "perfect" sees all at once); waiting_tokens: loads say how many prompt tokens are still to compute. routers: requests are sprayed over so many; pin_conversations: these keep
    theirs; gateway_ring: whoever gets another's request forwards it, in forward_us; share_loads_us > 0: they tell one another at
    such intervals what they have in flight, share_placements: and sent where. churn: "100 remove 3, 150 add".
    slo_...: the objectives of goodput; 0: none. Releases the GIL; some 0.3 s for 12,000 requests on 8 replicas.
    errors: Error invalid_argument; ValueError (no such profile or view).
    """
    work = workload if isinstance(workload, Workload) else Workload.open_loop(workload)
    raw = simulate_fleet(
        work,
        profile=profile,
        replicas=replicas,
        rule=rule,
        policy=policy,
        capacities=list(capacities),
        view=view,
        snapshot_us=snapshot_us,
        event_delay_us=event_delay_us,
        event_loss=event_loss,
        waiting_tokens=waiting_tokens,
        routers=routers,
        pin_conversations=pin_conversations,
        gateway_ring=gateway_ring,
        forward_us=forward_us,
        share_loads_us=share_loads_us,
        share_placements=share_placements,
        prefill_replicas=prefill_replicas,
        decode_replicas=decode_replicas,
        transfer_token_ps=transfer_token_ps,
        transfer_latency_us=transfer_latency_us,
        churn=churn,
        seed=seed,
        warm_up_us=warm_up_us,
        horizon_us=horizon_us,
        slo_ttft_us=slo_ttft_us,
        slo_itl_us=slo_itl_us,
    )
    for name in ("ttft", "itl", "e2e", "transfer"):
        raw[name] = Latency(**raw[name])
    return Figures(**raw)


__all__ = [
    "DecisionCall",
    "DecisionLog",
    "DecisionRecord",
    "Difference",
    "Figures",
    "Latency",
    "Replay",
    "TraceFormat",
    "TraceReader",
    "TraceRecord",
    "TraceWriter",
    "Workload",
    "detect_trace_format",
    "hardware_profiles",
    "replay",
    "routing_rules",
    "simulate",
    "simulation_views",
]
