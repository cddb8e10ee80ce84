//! Dynamo's two device-tier indexes: the concurrent compressed radix tree, and the one for a single thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::JoinHandle;

use dynamo_kv_router::indexer::{SyncIndexer, WorkerTask};
use dynamo_kv_router::protocols::*;
use dynamo_kv_router::{ConcurrentRadixTreeCompressed, RadixTree};
use tokio::sync::oneshot;

use crate::contender::Contender;
use crate::measure::thread_cpu_ns;
use crate::workloads::{Block, Op};

pub fn store_event(op: &Op) -> RouterEvent {
    let blocks = op.path[op.first..]
        .iter()
        .map(|b| KvCacheStoredBlockData {
            block_hash: ExternalSequenceBlockHash(b.seq),
            tokens_hash: LocalBlockHash(b.local),
            mm_extra_info: None,
        })
        .collect();
    let parent_hash = op.first.checked_sub(1).map(|p| ExternalSequenceBlockHash(op.path[p].seq));
    event(op.replica, KvCacheEventData::Stored(KvCacheStoreData { parent_hash, start_position: None, blocks }))
}
fn remove_event(op: &Op) -> RouterEvent {
    let block_hashes = op.path[op.first..].iter().rev().map(|b| ExternalSequenceBlockHash(b.seq)).collect();
    event(op.replica, KvCacheEventData::Removed(KvCacheRemoveData { block_hashes }))
}
fn event(replica: u32, data: KvCacheEventData) -> RouterEvent {
    RouterEvent::new(replica as u64, KvCacheEvent { event_id: 0, data, dp_rank: 0 })
}
fn locals(path: &[Block]) -> Vec<LocalBlockHash> {
    path.iter().map(|b| LocalBlockHash(b.local)).collect()
}
fn score(scores: &OverlapScores, replica: u32) -> usize {
    scores.scores.get(&WorkerWithDpRank::new(replica as u64, 0)).copied().unwrap_or(0) as usize
}

/// The indexer's thread between two batches: it reports its CPU time and sleeps until the next batch lies in the channel.
/// A flush's reply wakes its waiter on the indexer's thread, so the waiter's waker is where both happen.
struct Gate {
    reached: SyncSender<u64>,
    go: Mutex<Receiver<()>>,
    resumed: AtomicU64,
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        let _ = self.reached.send(thread_cpu_ns());
        let _ = self.go.lock().expect("gate").recv();
        self.resumed.store(thread_cpu_ns(), Ordering::Release);
    }
}

/// Events reach the tree through its own loop (`SyncIndexer::worker`), one thread, as its thread pool drives it.
pub struct Concurrent {
    tree: Arc<ConcurrentRadixTreeCompressed>,
    tasks: flume::Sender<WorkerTask>,
    gate: Arc<Gate>,
    reached: Receiver<u64>,
    go: SyncSender<()>,
    flush: Option<oneshot::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Concurrent {
    #[cfg(feature = "selection")]
    pub fn tree(&self) -> &ConcurrentRadixTreeCompressed {
        &self.tree
    }
    fn push_gate(&mut self) {
        let (reply, mut waiter) = oneshot::channel();
        let waker = Waker::from(self.gate.clone());
        let pending = std::pin::Pin::new(&mut waiter).poll(&mut Context::from_waker(&waker));
        assert!(pending.is_pending());
        self.tasks.send(WorkerTask::Flush(reply)).expect("indexer thread");
        self.flush = Some(waiter);
    }
    fn run(&mut self, tasks: impl Iterator<Item = WorkerTask>) -> u64 {
        for task in tasks {
            self.tasks.send(task).expect("indexer thread");
        }
        self.push_gate();
        self.go.send(()).expect("indexer thread");
        let end = self.reached.recv().expect("indexer thread");
        end - self.gate.resumed.load(Ordering::Acquire)
    }
}

impl Drop for Concurrent {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Concurrent {
    fn stop(&mut self) {
        let _ = self.tasks.send(WorkerTask::Terminate);
        let _ = self.go.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Contender for Concurrent {
    const NAME: &'static str = "dynamo-crtc";
    type Event = RouterEvent;
    type Prompt = Vec<LocalBlockHash>;
    type Ask<'a> = &'a [LocalBlockHash];
    type Answer = OverlapScores;

    fn new() -> Self {
        let tree = Arc::new(ConcurrentRadixTreeCompressed::new());
        let (tasks, inbox) = flume::unbounded();
        let (reached_tx, reached) = sync_channel(1);
        let (go, go_rx) = sync_channel(1);
        let gate = Arc::new(Gate { reached: reached_tx, go: Mutex::new(go_rx), resumed: AtomicU64::new(0) });
        let mut made = Self { tree: tree.clone(), tasks, gate, reached, go, flush: None, thread: None };
        made.push_gate();
        made.thread = Some(std::thread::spawn(move || tree.worker(inbox, None).expect("indexer thread")));
        made.reached.recv().expect("indexer thread");
        made
    }
    fn store_event(&mut self, op: &Op) -> RouterEvent {
        store_event(op)
    }
    fn remove_event(&mut self, op: &Op) -> RouterEvent {
        remove_event(op)
    }
    fn apply(&mut self, events: Vec<RouterEvent>) -> u64 {
        self.run(events.into_iter().map(WorkerTask::Event))
    }
    fn delivery_ns(&mut self, sample: Vec<RouterEvent>) -> f64 {
        let count = sample.len();
        let (sender, inbox) = flume::unbounded();
        for event in sample {
            sender.send(WorkerTask::Event(event)).expect("channel");
        }
        let begin = thread_cpu_ns();
        for _ in 0..count {
            std::mem::forget(std::hint::black_box(inbox.recv()));
        }
        (thread_cpu_ns() - begin) as f64 / count as f64
    }
    fn drop_engine_map(&mut self) -> bool {
        self.stop(); // the map belongs to the loop
        true
    }
    fn upkeep(&mut self) {
        self.run(std::iter::once(WorkerTask::CleanupStaleChildren));
    }
    fn prompt(&self, path: &[Block]) -> Vec<LocalBlockHash> {
        locals(path)
    }
    fn ask(prompt: &Vec<LocalBlockHash>) -> &[LocalBlockHash] {
        prompt
    }
    fn look_up(&self, ask: &[LocalBlockHash]) -> OverlapScores {
        self.tree.find_matches(ask, false)
    }
    fn held(&self, answer: &OverlapScores, replica: u32) -> usize {
        score(answer, replica)
    }
}

/// A look-up takes its hashes by value; the copy is made outside its time, freeing it lies within.
pub struct Single(RadixTree);

impl Contender for Single {
    const NAME: &'static str = "dynamo-radix";
    type Event = RouterEvent;
    type Prompt = Vec<LocalBlockHash>;
    type Ask<'a> = Vec<LocalBlockHash>;
    type Answer = OverlapScores;

    fn new() -> Self {
        Self(RadixTree::new())
    }
    fn store_event(&mut self, op: &Op) -> RouterEvent {
        store_event(op)
    }
    fn remove_event(&mut self, op: &Op) -> RouterEvent {
        remove_event(op)
    }
    fn apply(&mut self, events: Vec<RouterEvent>) -> u64 {
        let begin = thread_cpu_ns();
        for event in events {
            self.0.apply_event(event).expect("event applied");
        }
        thread_cpu_ns() - begin
    }
    fn prompt(&self, path: &[Block]) -> Vec<LocalBlockHash> {
        locals(path)
    }
    fn ask(prompt: &Vec<LocalBlockHash>) -> Vec<LocalBlockHash> {
        prompt.clone()
    }
    fn look_up(&self, ask: Vec<LocalBlockHash>) -> OverlapScores {
        self.0.find_matches(ask, false)
    }
    fn held(&self, answer: &OverlapScores, replica: u32) -> usize {
        score(answer, replica)
    }
}
