//! The workloads' numbers: the same as benchmarks/prefix_workloads.hpp makes.

use kv_index_2::{ContentHash, SequenceHash, chain_prefix_hash};

pub const CHAIN_BLOCKS: usize = 1024;
/// INGEST: (replica, block) pairs over all replicas, however many these are.
pub const MEMBERSHIPS: usize = 524_288;

pub fn mix(x: u64) -> u64 {
    let mut x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
pub fn local(family: u64, position: u64) -> u64 {
    mix(family << 32 | position)
}

/// A block as an engine reports it: its own hash, and the hash of the chain that ends with it.
#[derive(Clone, Copy)]
pub struct Block {
    pub local: u64,
    pub seq: u64,
}
pub type Path = Vec<Block>;

pub fn append(path: &mut Path, local: u64) {
    let seq = match path.last() {
        None => local,
        Some(last) => chain_prefix_hash(SequenceHash(last.seq), ContentHash(local)).0,
    };
    path.push(Block { local, seq });
}
pub fn chain(family: u64, length: usize) -> Path {
    let mut path = Vec::with_capacity(length);
    for p in 0..length {
        append(&mut path, local(family, p as u64));
    }
    path
}
pub fn digest(paths: &[Path]) -> u64 {
    paths.iter().flatten().fold(0, |sum, b| mix(sum ^ b.local))
}

/// Blocks [first, end) of a path, stored or removed by a replica.
pub struct Op<'a> {
    pub replica: u32,
    pub path: &'a [Block],
    pub first: usize,
}

/// INGEST: even chains are shared by all replicas, odd ones are each replica's own.
pub struct Ingest {
    replicas: usize,
    chains: usize,
    first_replica: u32,
    paths: Vec<Path>,
}

impl Ingest {
    pub fn new(replicas: usize, chains: usize, first_replica: u32) -> Self {
        let mut paths = Vec::new();
        for w in 0..replicas {
            for c in 0..chains {
                let family = if c % 2 == 0 { c } else { 1_000_000 + w * chains + c };
                paths.push(chain(family as u64, CHAIN_BLOCKS));
            }
        }
        Self { replicas, chains, first_replica, paths }
    }
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }
    pub fn path(&self, replica: usize, c: usize) -> &Path {
        &self.paths[replica * self.chains + c]
    }
    pub fn replicas(&self) -> usize {
        self.replicas
    }
    pub fn chains(&self) -> usize {
        self.chains
    }
    pub fn stores<'a>(&'a self, event_blocks: usize) -> impl Iterator<Item = Op<'a>> {
        self.events(event_blocks, false)
    }
    /// Leaf to root.
    pub fn removes<'a>(&'a self, event_blocks: usize) -> impl Iterator<Item = Op<'a>> {
        self.events(event_blocks, true)
    }
    fn events<'a>(&'a self, event_blocks: usize, backwards: bool) -> impl Iterator<Item = Op<'a>> {
        let per_chain = CHAIN_BLOCKS / event_blocks;
        (0..self.chains).flat_map(move |c| {
            (0..per_chain).flat_map(move |k| {
                let k = if backwards { per_chain - 1 - k } else { k };
                (0..self.replicas).map(move |w| Op {
                    replica: self.first_replica + w as u32,
                    path: &self.path(w, c)[..(k + 1) * event_blocks],
                    first: k * event_blocks,
                })
            })
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Query {
    Full,
    Stagger,
    Branchy,
    Miss,
}
pub const QUERIES: [(Query, &str); 4] =
    [(Query::Full, "full"), (Query::Stagger, "stagger"), (Query::Branchy, "branchy"), (Query::Miss, "miss")];

pub struct Prompts {
    pub paths: Vec<Path>,
    /// What is stored of each, with the paths that diverge.
    events: Vec<(u32, Path, usize)>,
    pub kind: Query,
    pub replicas: usize,
}

impl Prompts {
    pub fn new(replicas: usize, length: usize, kind: Query) -> Self {
        let count = match length {
            4096.. => 16,
            625.. => 64,
            _ => 256,
        };
        let paths: Vec<Path> = (0..count).map(|i| chain(5_000_000 + i as u64, length)).collect();
        let mut made = Self { paths, events: Vec::new(), kind, replicas };
        for i in 0..count {
            made.store_prompt(i, length);
        }
        made
    }
    /// units: leading blocks that replica `w` holds of every prompt.
    pub fn depth(&self, w: usize) -> usize {
        let length = self.paths[0].len();
        match self.kind {
            Query::Full => length,
            Query::Stagger | Query::Branchy => length * (w + 1) / self.replicas,
            Query::Miss => 0,
        }
    }
    fn store_prompt(&mut self, i: usize, length: usize) {
        for w in 0..self.replicas {
            let end = self.depth(w);
            for at in (0..end).step_by(64) {
                self.events.push((w as u32, self.paths[i][..(at + 64).min(end)].to_vec(), at));
            }
        }
        if self.kind != Query::Branchy {
            return;
        }
        for (turn, at) in (64..length).step_by(64).enumerate() {
            let w = self.replicas - 1 - turn % (self.replicas / 2).max(1);
            if self.depth(w) < at {
                continue;
            }
            let mut branch = self.paths[i][..at].to_vec();
            for b in 0..8 {
                append(&mut branch, local((9_000_000 + i * 1_000 + turn) as u64, b));
            }
            self.events.push((w as u32, branch, at));
        }
    }
    pub fn stores<'a>(&'a self) -> impl Iterator<Item = Op<'a>> {
        self.events.iter().map(|(replica, path, first)| Op { replica: *replica, path, first: *first })
    }
}

pub const TREE_LEVELS: usize = 10;
/// TREE: 64-block root, binary fan-out each 8 blocks.
pub fn tree_path(forest: u64, leaf: usize) -> Path {
    let mut path = chain(forest << 20, 64);
    for level in 1..=TREE_LEVELS {
        for b in 0..8 {
            let node = forest << 20 | 1 << level | (leaf >> (TREE_LEVELS - level)) as u64;
            append(&mut path, local(node, (64 + level * 8 + b) as u64));
        }
    }
    path
}
/// units: distinct blocks of one such tree.
pub const TREE_BLOCKS: usize = 64 + 8 * ((2 << TREE_LEVELS) - 2);

pub fn text_prompt(i: usize, length: usize) -> String {
    (0..length)
        .map(|k| {
            let group = if k < length / 2 { i % 64 } else { 1_000 + i };
            (b'0' + (mix((group as u64) << 32 | k as u64) % 64) as u8) as char
        })
        .collect()
}
pub fn text_replica(i: usize, replicas: usize) -> usize {
    (i / 64 + i % 64) % replicas
}
pub const TEXTS: [(usize, usize); 3] = [(4096, 1_000), (1024, 10_000), (256, 40_000)];

pub fn some_tokens(count: usize) -> Vec<u32> {
    (0..count).map(|i| (i * 7919 % 151_936) as u32).collect()
}
