"""Router with its friendly calls: `with router.route(body) as ticket:` releases what it booked on every path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypedDict, Union

import numpy
import numpy.typing

from ._core import BlockKind, BodyApi, Decision, Explanation, ParsedBody, Request
from ._core import Router as CoreRouter
from ._statistics import Recording, RouterStatistics, statistics_from
from ._ticket import Ticket

if TYPE_CHECKING:
    from typing_extensions import Unpack

Columns = dict[str, numpy.typing.NDArray[numpy.int64]]
"""The eligible candidates of one request, see Explanation.columns."""

CostTerm = Callable[[Columns], Union[numpy.typing.NDArray[Any], int]]
"""Of Router.route_with: an extra cost in ns per candidate, or the index of the one to take."""

Prompt = Union[
    bytes,
    bytearray,
    memoryview,
    str,
    numpy.typing.NDArray[numpy.uint32],
    numpy.typing.NDArray[numpy.uint64],
    Request,
    ParsedBody,
]
"""A body (JSON bytes or str), token ids (uint32), block hashes (uint64), a Request or a ParsedBody."""


class RequestKeywords(TypedDict, total=False):
    """What route, peek and explain take beside the prompt; it beats what a body or a Request says.

    Counts are tokens, -1 = unknown. tenant: from the verified caller, never from the body.
    excluded: replicas that a retry has tried. pinned: the only choice.
    """

    model: str
    session: str
    tenant: str
    adapter: str
    cache_salt: str
    block_kind: BlockKind | str
    input_tokens: int
    prompt_bytes: int
    max_output_tokens: int
    class_id: int
    priority: int
    deadline_ns: int
    stream: bool
    excluded: Iterable[int]
    pinned: int | None


class Router(CoreRouter):
    __doc__ = CoreRouter.__doc__

    def route(
        self, prompt: Prompt, now_ns: int | None = None, *, api: BodyApi | str = "chat", **request: Unpack[RequestKeywords]
    ) -> Ticket:
        """Picks a replica, books the request there, and gives a Ticket: `with` or `async with` releases it on every path.

        api: which wire format a body is in. A ticket that was not routed is false; its decision has the verdict.
        errors: Error, as BodyParser.parse; TypeError for other prompts.
        """
        return Ticket(self, self._decide(prompt, now_ns, api, **request))

    def peek(
        self, prompt: Prompt, now_ns: int | None = None, *, api: BodyApi | str = "chat", **request: Unpack[RequestKeywords]
    ) -> Decision:
        """The decision that route would make, without booking anything."""
        return self._peek(prompt, now_ns, api, **request)

    def explain(
        self, prompt: Prompt, now_ns: int | None = None, *, api: BodyApi | str = "chat", **request: Unpack[RequestKeywords]
    ) -> Explanation:
        """The decision that route would make, with every candidate's terms; prints as a table."""
        return self._explain(prompt, now_ns, api, **request)

    def route_with(
        self,
        term: CostTerm,
        prompt: Prompt,
        now_ns: int | None = None,
        *,
        api: BodyApi | str = "chat",
        **request: Unpack[RequestKeywords],
    ) -> Ticket:
        """route with a cost term of your own, for experiments: slow (it explains, allocates and calls Python; 20 us and more).

        term: called with the eligible candidates' columns (int64 arrays, one entry each: 'replica', 'cached_tokens',
        'requests', 'wait_ns', 'prefill_ns', ..., 'total_ns'; see Explanation.columns). It gives either an array of costs in
        ns to add to 'total_ns' (the least sum wins, the first of equals), or the index of the candidate to take.
        The request is then routed pinned to that one. Without eligible candidates, term is not called.
        errors: as route; ValueError for an answer of another shape, IndexError for an index outside.
        """
        columns = self._explain(prompt, now_ns, api, **request).columns()
        replicas = columns["replica"]
        if len(replicas) == 0:
            return self.route(prompt, now_ns, api=api, **request)
        answer = term(columns)
        if isinstance(answer, (int, numpy.integer)) and not isinstance(answer, bool):
            choice = int(answer)
            if not 0 <= choice < len(replicas):
                raise IndexError(f"the cost term chose candidate {choice} of {len(replicas)}")
        else:
            extra = numpy.asarray(answer)
            if extra.shape != replicas.shape:
                raise ValueError(f"the cost term gave shape {extra.shape} for {len(replicas)} candidates")
            choice = int(numpy.argmin(columns["total_ns"] + extra))
        request["pinned"] = int(replicas[choice])
        return self.route(prompt, now_ns, api=api, **request)

    def statistics(self) -> RouterStatistics:
        """What this router has done so far: consistent per number, not across numbers."""
        return statistics_from(self._statistics())

    @property
    def recording(self) -> Recording | None:
        """How the decision log stands; None: this router does not record."""
        raw = self._recording()
        return None if raw is None else Recording(**raw)
