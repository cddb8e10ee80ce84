//! Dynamo's worker selection: alone, from overlaps and loads that are given; and as one decision, from prepared block hashes:
//! look-up, overlaps from its scores, loads from the requests in flight, selection.

use std::collections::{HashMap, HashSet};

use dynamo_kv_router::indexer::SyncIndexer;
use dynamo_kv_router::protocols::{OverlapScores, RoutingConstraints, WorkerConfigLike, WorkerId, WorkerWithDpRank};
use dynamo_kv_router::scheduling::{OverlapSignals, ScheduleMode};
use dynamo_kv_router::{
    ActiveSequencesMultiWorker, DefaultWorkerSelector, KvRouterConfig, NoopSequencePublisher, SchedulingRequest, SequenceRequest,
    WorkerSelectionInput, WorkerSelector,
};
use tokio::time::Instant;

use crate::contender::Contender;
use crate::dynamo::Concurrent;
use crate::measure::{Report, Stopwatch};
use crate::workloads::*;

const BLOCK: u32 = 16;
const PATH_BLOCKS: usize = 625;
const PROMPTS: usize = 64;

#[derive(Default)]
struct Worker {
    taints: HashSet<String>,
}

impl WorkerConfigLike for Worker {
    fn data_parallel_start_rank(&self) -> u32 {
        0
    }
    fn data_parallel_size(&self) -> u32 {
        1
    }
    fn max_num_batched_tokens(&self) -> Option<u64> {
        None
    }
    fn total_kv_blocks(&self) -> Option<u64> {
        Some(1_000_000)
    }
    fn taints(&self) -> &HashSet<String> {
        &self.taints
    }
}

fn signals(scores: OverlapScores) -> OverlapSignals {
    let mut signals = OverlapSignals::default();
    for (&worker, &blocks) in &scores.scores {
        signals.effective_overlap_blocks.insert(worker, f64::from(blocks));
        signals.effective_cached_tokens.insert(worker, (blocks * BLOCK) as usize);
        signals.tier_overlap_blocks.device.insert(worker, blocks as usize);
    }
    signals
}

fn request() -> SchedulingRequest {
    SchedulingRequest {
        mode: ScheduleMode::QueryOnly { request_id: None },
        token_seq: None,
        isl_tokens: PATH_BLOCKS * BLOCK as usize,
        lora_name: None,
        expected_output_tokens: None,
        affinity_target: None,
        pinned_worker: None,
        allowed_worker_ids: None,
        routing_constraints: RoutingConstraints { required_taints: HashSet::new(), preferred_taints: Default::default() },
        router_config_override: None,
        track_prefill_tokens: true,
        priority_jump: 0.0,
        strict_priority: 0,
        policy_class: None,
        session_context: None,
        overlap: OverlapSignals::default(),
        kv_transfer_candidates: None,
        retain_kv_transfer_chain: false,
        shared_cache_hits: None,
        worker_loads: Default::default(),
        resp_tx: None,
    }
}

/// Four requests in flight per worker.
fn loads(workers: usize) -> ActiveSequencesMultiWorker<NoopSequencePublisher> {
    let ranks = (0..workers as WorkerId).map(|id| (id, (0, 1))).collect();
    let sequences = ActiveSequencesMultiWorker::new(NoopSequencePublisher, BLOCK as usize, ranks, false, 0, "peers");
    for i in 0..workers * 4 {
        let blocks = (1_000 + mix(i as u64) as usize % 8_000) / BLOCK as usize;
        let added = sequences.add_request(
            SequenceRequest {
                request_id: format!("request-{i}"),
                token_sequence: Some(chain(8_000_000 + i as u64, blocks).iter().map(|b| b.seq).collect()),
                track_prefill_tokens: true,
                expected_output_tokens: None,
                prefill_load_hint: None,
                worker: WorkerWithDpRank::new((i % workers) as u64, 0),
                lora_name: None,
            },
            Instant::now(),
        );
        assert!(added.is_ok());
    }
    sequences
}

/// 10^6 blocks of others, and the prompts, each held by one worker.
fn fill(workers: usize, prompts: &[Path]) -> Concurrent {
    let mut index = Concurrent::new();
    let others = (0..1_000).map(|c| chain(c, 1_000));
    for (i, path) in others.chain(prompts.iter().cloned()).enumerate() {
        let event = index.store_event(&Op { replica: (i % workers) as u32, path: &path, first: 0 });
        index.apply(vec![event]);
    }
    index
}

pub fn select(report: &Report) {
    for count in [8, 64, 1_024] {
        let workers: HashMap<WorkerId, Worker> = (0..count as WorkerId).map(|id| (id, Worker::default())).collect();
        let selector = DefaultWorkerSelector::new(Some(KvRouterConfig::default()), "prefill");
        let paths: Vec<Path> = (0..PROMPTS).map(|i| chain(5_000_000 + i as u64, PATH_BLOCKS)).collect();
        let index = fill(count, &paths);
        let prompts: Vec<_> = paths.iter().map(|p| index.prompt(p)).collect();
        let sequences = loads(count);
        let choose = |request: &SchedulingRequest| {
            let input = WorkerSelectionInput::configured(&workers, request, request.eligibility(), BLOCK);
            selector.select_worker(input).expect("a worker")
        };

        let mut given = request();
        given.overlap = signals(index.look_up(&prompts[0]));
        given.worker_loads = sequences.project_worker_loads(None, Instant::now());
        assert_eq!(given.worker_loads.len(), count);
        let mut watch = Stopwatch::new();
        watch.run(|_| &given, choose);
        report.percentiles("SELECT", &format!("op=select W={count}"), &mut watch);

        let mut built = request();
        let mut watch = Stopwatch::new();
        watch.run(
            |i| &prompts[i % PROMPTS],
            |prompt| {
                built.overlap = signals(index.tree().find_matches(prompt, false));
                built.worker_loads = sequences.project_worker_loads(None, Instant::now());
                choose(&built)
            },
        );
        report.percentiles("SELECT", &format!("op=decide W={count} L={PATH_BLOCKS}"), &mut watch);
        report.digest("SELECT", &format!("W={count}"), digest(&paths));
    }
}
