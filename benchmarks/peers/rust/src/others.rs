//! Text and hashing, where a crate has them.

use dynamo_kv_router::protocols::{BlockHashOptions, compute_block_hash_for_seq, compute_seq_hash_for_block};
use kv_index_2::{StringTree, compute_request_content_hashes, request_prefix_hashes};

use crate::measure::{Report, Stopwatch, live_bytes};
use crate::workloads::*;

/// The text tree answers with one tenant (and up to a cap of others that hold the same depth), not with every replica's depth.
pub fn text(report: &Report, bytes: bool) {
    const REPLICAS: usize = 8;
    let tenants: Vec<String> = (0..REPLICAS).map(|t| format!("replica-{t}")).collect();
    for (count, length) in TEXTS {
        let args = format!("T={REPLICAS} n={count} chars={length}");
        let prompts: Vec<String> = (0..count).map(|i| text_prompt(i, length)).collect();
        let before = live_bytes();
        let tree = StringTree::new();
        let insert = |i: usize| tree.insert_text(&prompts[i], &tenants[text_replica(i, REPLICAS)]);
        if bytes {
            (0..count).for_each(insert);
            let per_char = (live_bytes() - before) as f64 / (count * length) as f64;
            report.value("TEXT", &args, "bytes_per_char", per_char, "B");
            continue;
        }
        let mut watch = Stopwatch::new();
        for i in 0..count {
            watch.once(|| insert(i));
        }
        report.percentiles("TEXT", &format!("op=insert {args}"), &mut watch);
        for prompt in &prompts {
            assert_eq!(tree.match_prefix_with_counts(prompt).matched_char_count, length);
        }
        let mut watch = Stopwatch::new();
        watch.run(|i| &prompts[i % count], |prompt| tree.match_prefix_with_counts(prompt));
        report.percentiles("TEXT", &format!("op=match {args}"), &mut watch);
        report.digest("TEXT", &args, prompts.iter().flat_map(|p| p.bytes()).fold(0, |sum, b| mix(sum ^ u64::from(b))));
    }
}

const TOKENS: usize = 10_000;

pub fn hash_smg(report: &Report) {
    let tokens = some_tokens(TOKENS);
    let mut watch = Stopwatch::new();
    watch.run(|_| &tokens, |t| compute_request_content_hashes(t, 16));
    report.percentiles("HASH", "blocks of 10000 tokens", &mut watch);
    let mut watch = Stopwatch::new();
    watch.run(
        |_| &tokens,
        |t| {
            let blocks = compute_request_content_hashes(t, 16);
            let chain = request_prefix_hashes(&blocks);
            (blocks, chain)
        },
    );
    report.percentiles("HASH", "blocks and chain of 10000 tokens", &mut watch);
    let blocks = compute_request_content_hashes(&tokens, 16);
    let last = request_prefix_hashes(&blocks).last().map_or(0, |h| h.0);
    report.digest("HASH", "chain", last);
}

pub fn hash_dynamo(report: &Report) {
    let tokens = some_tokens(TOKENS);
    let hash = |t: &[u32]| compute_block_hash_for_seq(t, 16, BlockHashOptions::default());
    let mut watch = Stopwatch::new();
    watch.run(|_| &tokens, |t| hash(t));
    report.percentiles("HASH", "blocks of 10000 tokens", &mut watch);
    let mut watch = Stopwatch::new();
    watch.run(
        |_| &tokens,
        |t| {
            let blocks = hash(t);
            let chain = compute_seq_hash_for_block(&blocks);
            (blocks, chain)
        },
    );
    report.percentiles("HASH", "blocks and chain of 10000 tokens", &mut watch);
    let last = compute_seq_hash_for_block(&hash(&tokens)).last().copied().unwrap_or(0);
    report.digest("HASH", "chain", last);
}
