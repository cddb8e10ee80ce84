//! The index workloads, the same for every contender.

use crate::contender::Contender;
use crate::measure::{Report, Stopwatch, live_bytes};
use crate::workloads::*;

/// Events are made just before they are applied, as if just decoded; few at a time where bytes are counted, so that what the
/// hand-over keeps is small.
const BATCH_BLOCKS: usize = 8_192;

pub fn index<C: Contender>(workload: &str, bytes: bool) {
    let report = Report { contender: C::NAME };
    match (workload, bytes) {
        ("INGEST", false) => ingest_time::<C>(&report),
        ("INGEST", true) => ingest_bytes::<C>(&report),
        ("QUERY", false) => query::<C>(&report),
        ("TREE", _) => tree::<C>(&report, bytes),
        ("CHURN", _) => churn::<C>(&report, bytes),
        _ => crate::fail("no such workload; --list shows them"),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Store,
    Remove,
}

/// returns: nanoseconds of CPU, and events.
fn apply_all<'a, C: Contender>(
    index: &mut C,
    kind: Kind,
    ops: impl Iterator<Item = Op<'a>>,
    batch_blocks: usize,
) -> (u64, usize) {
    let (mut ns, mut count, mut blocks) = (0, 0, 0);
    let mut events = Vec::new();
    for op in ops {
        blocks += op.path.len() - op.first;
        events.push(match kind {
            Kind::Store => index.store_event(&op),
            Kind::Remove => index.remove_event(&op),
        });
        if blocks >= batch_blocks {
            count += events.len();
            ns += index.apply(std::mem::take(&mut events));
            blocks = 0;
        }
    }
    count += events.len();
    ns += index.apply(events);
    (ns, count)
}

/// Completion-correct: panics unless look-ups see exactly what was stored.
fn check<C: Contender>(index: &C, path: &[Block], expected: impl Iterator<Item = (u32, usize)>) {
    let prompt = index.prompt(path);
    let answer = index.look_up(C::ask(&prompt));
    for (replica, blocks) in expected {
        assert_eq!(index.held(&answer, replica), blocks, "{}: replica {replica} of {} blocks", C::NAME, path.len());
    }
}

fn check_held<C: Contender>(index: &C, work: &Ingest) {
    for w in [0, work.replicas() - 1] {
        for c in 0..work.chains() {
            check(index, work.path(w, c), std::iter::once((w as u32, CHAIN_BLOCKS)));
        }
    }
}

fn ingest_time<C: Contender>(report: &Report) {
    for replicas in [8, 64] {
        let work = Ingest::new(replicas, MEMBERSHIPS / CHAIN_BLOCKS / replicas, 0);
        for event_blocks in [1, 16, 64] {
            let mut index = C::new();
            let (store_ns, events) = apply_all(&mut index, Kind::Store, work.stores(event_blocks), BATCH_BLOCKS);
            check_held(&index, &work);
            let (remove_ns, _) = apply_all(&mut index, Kind::Remove, work.removes(event_blocks), BATCH_BLOCKS);
            for w in [0, replicas - 1] {
                for c in 0..work.chains() {
                    check(&index, work.path(w, c), (0..replicas).map(|w| (w as u32, 0)));
                }
            }
            // what removing put off is paid here
            let (again_ns, _) = apply_all(&mut index, Kind::Store, work.stores(event_blocks), BATCH_BLOCKS);
            check_held(&index, &work);
            let sample: Vec<_> = work.stores(event_blocks).take(8_192).map(|op| index.store_event(&op)).collect();
            let delivery = index.delivery_ns(sample) * events as f64;
            let turnover_ns = remove_ns + again_ns;
            // deliveries per block: a turnover has two
            for (op, ns, events) in [
                ("store", store_ns, 1.0),
                ("remove", remove_ns, 1.0),
                ("store-again", again_ns, 1.0),
                ("turnover", turnover_ns, 2.0),
            ] {
                let args = format!("op={op} W={replicas} ev={event_blocks}");
                let per_block = |ns: f64| ns / MEMBERSHIPS as f64;
                report.value("INGEST", &args, "cpu_per_block", per_block(ns as f64 - delivery * events).max(0.0), "ns");
                if delivery > 0.0 {
                    report.value("INGEST", &args, "delivery_per_block", per_block(delivery * events), "ns");
                }
            }
        }
        report.digest("INGEST", &format!("W={replicas}"), digest(work.paths()));
    }
}

fn memory<C: Contender>(report: &Report, workload: &str, args: &str, index: &mut C, before: i64, memberships: usize) {
    let per_membership = || (live_bytes() - before) as f64 / memberships as f64;
    report.value(workload, args, "bytes_with_engine_map", per_membership(), "B");
    if index.drop_engine_map() {
        report.value(workload, args, "bytes_without_engine_map", per_membership(), "B");
    }
}

fn ingest_bytes<C: Contender>(report: &Report) {
    for replicas in [1, 8, 64] {
        let work = Ingest::new(replicas, MEMBERSHIPS / CHAIN_BLOCKS / replicas, 0);
        let args = format!("W={replicas}");
        let before = live_bytes();
        let mut index = C::new();
        apply_all(&mut index, Kind::Store, work.stores(64), 64);
        memory(report, "INGEST", &args, &mut index, before, MEMBERSHIPS);
        let before = live_bytes();
        let mut index = C::new();
        apply_all(&mut index, Kind::Store, work.stores(64), 64);
        apply_all(&mut index, Kind::Remove, work.removes(64), 64);
        index.upkeep();
        report.value("INGEST", &args, "bytes_after_remove", (live_bytes() - before) as f64, "B");
    }
}

fn time_look_ups<C: Contender>(report: &Report, workload: &str, args: &str, index: &C, paths: &[Path]) {
    let prompts: Vec<C::Prompt> = paths.iter().map(|p| index.prompt(p)).collect();
    for prompt in prompts.iter().cycle().take(3 * prompts.len()) {
        index.look_up(C::ask(prompt));
    }
    let mut watch = Stopwatch::new();
    watch.run(|i| C::ask(&prompts[i % prompts.len()]), |ask| index.look_up(ask));
    report.percentiles(workload, args, &mut watch);
    let mean = Stopwatch::mean(prompts.len(), |i| C::ask(&prompts[i]), |ask| index.look_up(ask));
    report.value(workload, args, "mean", mean, "ns");
}

fn query<C: Contender>(report: &Report) {
    let ballast = Ingest::new(8, 64, 1_000);
    for replicas in [8, 64] {
        for length in [64, 625, 4096] {
            for (kind, name) in QUERIES {
                let args = format!("kind={name} W={replicas} L={length}");
                let work = Prompts::new(replicas, length, kind);
                let mut index = C::new();
                apply_all(&mut index, Kind::Store, ballast.stores(64), BATCH_BLOCKS);
                apply_all(&mut index, Kind::Store, work.stores(), BATCH_BLOCKS);
                for path in &work.paths {
                    check(&index, path, (0..replicas).map(|w| (w as u32, work.depth(w))));
                }
                time_look_ups(report, "QUERY", &args, &index, &work.paths);
                report.digest(
                    "QUERY",
                    &args,
                    digest(&work.paths) ^ (0..replicas).map(|w| mix(work.depth(w) as u64)).fold(0, |a, b| a ^ b),
                );
            }
        }
    }
}

fn tree<C: Contender>(report: &Report, bytes: bool) {
    for replicas in [1, 8, 64] {
        let forests = 64 / replicas as u64;
        let args = format!("W={replicas}");
        let before = live_bytes();
        let mut index = C::new();
        for forest in 0..forests {
            for leaf in 0..1 << TREE_LEVELS {
                let path = tree_path(forest, leaf);
                let ops = (0..replicas).map(|w| Op { replica: w, path: &path, first: 0 });
                apply_all(&mut index, Kind::Store, ops, if bytes { 1 } else { BATCH_BLOCKS });
            }
        }
        if bytes {
            memory(report, "TREE", &args, &mut index, before, TREE_BLOCKS * 64);
            continue;
        }
        let paths: Vec<Path> = (0..64).map(|n| tree_path(0, (mix(n) % (1 << TREE_LEVELS)) as usize)).collect();
        for path in &paths {
            check(&index, path, (0..replicas).map(|w| (w, path.len())));
        }
        time_look_ups(report, "TREE", &args, &index, &paths);
        report.digest("TREE", &args, digest(&paths));
    }
}

fn churn<C: Contender>(report: &Report, bytes: bool) {
    const ROUNDS: u64 = 40_000;
    let base = chain(1, CHAIN_BLOCKS);
    let before = live_bytes();
    let mut index = C::new();
    apply_all(&mut index, Kind::Store, std::iter::once(Op { replica: 0, path: &base, first: 0 }), 1);
    // one look-up before: what the index keeps for its readers is part of the base
    check(&index, &base, [(0, CHAIN_BLOCKS)].into_iter());
    let base_bytes = live_bytes() - before;
    if !bytes {
        time_look_ups(report, "CHURN", "base look-up first", &index, std::slice::from_ref(&base));
    }
    let rounds_per_batch = if bytes { 1 } else { 8 };
    let mut ns = 0;
    for r in (0..ROUNDS).step_by(rounds_per_batch) {
        let mut events = Vec::new();
        for r in r..r + rounds_per_batch as u64 {
            let mut path = base[..16 + (37 * r % 1000) as usize].to_vec();
            for b in 0..64 {
                append(&mut path, local(7_000_000 + r, b));
            }
            let op = Op { replica: 1, path: &path, first: 0 };
            events.push(index.store_event(&op));
            events.push(index.remove_event(&op));
        }
        ns += index.apply(events);
    }
    check(&index, &base, [(0, CHAIN_BLOCKS), (1, 0)].into_iter());
    if bytes {
        report.value("CHURN", "", "bytes_base", base_bytes as f64, "B");
        report.value("CHURN", "", "bytes_growth", (live_bytes() - before - base_bytes) as f64, "B");
        index.upkeep();
        report.value("CHURN", "", "bytes_growth_after_upkeep", (live_bytes() - before - base_bytes) as f64, "B");
    } else {
        report.value("CHURN", "store + remove", "cpu_per_round", ns as f64 / ROUNDS as f64, "ns");
        time_look_ups(report, "CHURN", "base look-up after", &index, std::slice::from_ref(&base));
        index.upkeep();
        time_look_ups(report, "CHURN", "base look-up after upkeep", &index, std::slice::from_ref(&base));
    }
}
