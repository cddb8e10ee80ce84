//! SMG's chain index, of both published lines. Its events go to the calling thread; the map from engine hashes to places is the
//! caller's, one per worker, and counts as part of the index. A look-up either returns a map (`find_matches`) or reports into the
//! caller's memory (`score_into`).

use std::collections::HashMap;

use crate::contender::Contender;
use crate::measure::thread_cpu_ns;
use crate::workloads::{Block, Op};

macro_rules! chain_index {
    ($module:ident, $krate:ident, $map_name:literal, $array_name:literal) => {
        pub mod $module {
            use super::*;
            use $krate::{ChainBlockMap, ChainIndex, ContentHash, OverlapScores, SequenceHash, StoredBlock};

            pub enum Event {
                Stored { worker: usize, blocks: Vec<StoredBlock>, parent: Option<SequenceHash> },
                Removed { worker: usize, hashes: Vec<SequenceHash> },
            }

            #[derive(Default)]
            struct Index {
                index: ChainIndex,
                maps: Vec<ChainBlockMap>,
                workers: HashMap<u32, usize>,
            }

            impl Index {
                fn worker(&mut self, replica: u32) -> usize {
                    if let Some(&id) = self.workers.get(&replica) {
                        return id;
                    }
                    let id = self.index.intern_worker(&format!("replica-{replica}")).expect("worker slot") as usize;
                    assert_eq!(id, self.maps.len());
                    self.maps.push(ChainBlockMap::default());
                    self.workers.insert(replica, id);
                    id
                }
                fn store_event(&mut self, op: &Op) -> Event {
                    Event::Stored {
                        worker: self.worker(op.replica),
                        blocks: op.path[op.first..]
                            .iter()
                            .map(|b| StoredBlock { seq_hash: SequenceHash(b.seq), content_hash: ContentHash(b.local) })
                            .collect(),
                        parent: op.first.checked_sub(1).map(|p| SequenceHash(op.path[p].seq)),
                    }
                }
                fn remove_event(&mut self, op: &Op) -> Event {
                    Event::Removed {
                        worker: self.worker(op.replica),
                        hashes: op.path[op.first..].iter().rev().map(|b| SequenceHash(b.seq)).collect(),
                    }
                }
                fn apply(&mut self, events: Vec<Event>) -> u64 {
                    let begin = thread_cpu_ns();
                    for event in &events {
                        match event {
                            Event::Stored { worker, blocks, parent } => self
                                .index
                                .apply_stored(*worker as u32, blocks, *parent, &mut self.maps[*worker])
                                .expect("event applied"),
                            Event::Removed { worker, hashes } => {
                                self.index.apply_removed(*worker as u32, hashes, &mut self.maps[*worker])
                            }
                        }
                    }
                    thread_cpu_ns() - begin
                }
            }
            fn contents(path: &[Block]) -> Vec<ContentHash> {
                path.iter().map(|b| ContentHash(b.local)).collect()
            }

            pub struct Map(Index);
            impl Contender for Map {
                const NAME: &'static str = $map_name;
                type Event = Event;
                type Prompt = Vec<ContentHash>;
                type Ask<'a> = &'a [ContentHash];
                type Answer = OverlapScores;

                fn new() -> Self {
                    Self(Index::default())
                }
                fn store_event(&mut self, op: &Op) -> Event {
                    self.0.store_event(op)
                }
                fn remove_event(&mut self, op: &Op) -> Event {
                    self.0.remove_event(op)
                }
                fn apply(&mut self, events: Vec<Event>) -> u64 {
                    self.0.apply(events)
                }
                fn drop_engine_map(&mut self) -> bool {
                    self.0.maps = Vec::new();
                    true
                }
                fn prompt(&self, path: &[Block]) -> Vec<ContentHash> {
                    contents(path)
                }
                fn ask(prompt: &Vec<ContentHash>) -> &[ContentHash] {
                    prompt
                }
                fn look_up(&self, ask: &[ContentHash]) -> OverlapScores {
                    self.0.index.find_matches(ask, false)
                }
                fn held(&self, answer: &OverlapScores, replica: u32) -> usize {
                    self.0.workers.get(&replica).and_then(|&w| answer.scores.get(&(w as u32))).copied().unwrap_or(0) as usize
                }
            }

            /// The caller's array is zeroed and filled within the look-up's time.
            pub struct Array {
                index: Index,
                scores: std::cell::RefCell<Vec<u32>>,
            }
            impl Contender for Array {
                const NAME: &'static str = $array_name;
                type Event = Event;
                type Prompt = Vec<ContentHash>;
                type Ask<'a> = &'a [ContentHash];
                type Answer = ();

                fn new() -> Self {
                    Self { index: Index::default(), scores: Vec::new().into() }
                }
                fn store_event(&mut self, op: &Op) -> Event {
                    let event = self.index.store_event(op);
                    self.scores.borrow_mut().resize(self.index.maps.len(), 0);
                    event
                }
                fn remove_event(&mut self, op: &Op) -> Event {
                    self.index.remove_event(op)
                }
                fn apply(&mut self, events: Vec<Event>) -> u64 {
                    self.index.apply(events)
                }
                fn drop_engine_map(&mut self) -> bool {
                    self.index.maps = Vec::new();
                    true
                }
                fn prompt(&self, path: &[Block]) -> Vec<ContentHash> {
                    contents(path)
                }
                fn ask(prompt: &Vec<ContentHash>) -> &[ContentHash] {
                    prompt
                }
                fn look_up(&self, ask: &[ContentHash]) {
                    let mut scores = self.scores.borrow_mut();
                    scores.fill(0);
                    self.index.index.score_into(ask, |h| h.0, false, |worker, score| scores[worker as usize] = score);
                    std::hint::black_box(scores.as_slice());
                }
                fn held(&self, _answer: &(), replica: u32) -> usize {
                    self.index.workers.get(&replica).map_or(0, |&w| self.scores.borrow()[w] as usize)
                }
            }
        }
    };
}

chain_index!(v1, kv_index_1, "smg-1.7.0", "smg-1.7.0-array");
chain_index!(v2, kv_index_2, "smg-2.0.0", "smg-2.0.0-array");
