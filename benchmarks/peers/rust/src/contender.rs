//! What every index under test can do, in its own words.

use crate::workloads::{Block, Op};

pub trait Contender {
    const NAME: &'static str;
    /// One engine event in the form that the index takes.
    type Event;
    /// A prompt's hashes in the form that a look-up takes, made once.
    type Prompt;
    /// What one look-up consumes.
    type Ask<'a>;
    /// The whole per-replica result.
    type Answer;

    fn new() -> Self;
    fn store_event(&mut self, op: &Op) -> Self::Event;
    /// Names the blocks leaf to root.
    fn remove_event(&mut self, op: &Op) -> Self::Event;
    /// Returns when look-ups see all of the events. returns: nanoseconds of CPU.
    fn apply(&mut self, events: Vec<Self::Event>) -> u64;
    /// units: nanoseconds of CPU that handing one event over costs by itself, which `apply` includes; 0 = a plain call.
    fn delivery_ns(&mut self, _sample: Vec<Self::Event>) -> f64 {
        0.0
    }
    /// Drops the map from engine hashes to places, after which only look-ups may follow. returns: whether it can be told apart.
    fn drop_engine_map(&mut self) -> bool {
        false
    }
    /// Upkeep that the owner would call now and then.
    fn upkeep(&mut self) {}

    fn prompt(&self, path: &[Block]) -> Self::Prompt;
    fn ask(prompt: &Self::Prompt) -> Self::Ask<'_>;
    fn look_up(&self, ask: Self::Ask<'_>) -> Self::Answer;
    /// returns: leading blocks of the prompt that the replica holds.
    fn held(&self, answer: &Self::Answer, replica: u32) -> usize;
}
