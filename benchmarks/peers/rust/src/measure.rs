//! Clocks, percentiles, live bytes and the output: what the C++ program beside this one (../ours.cpp) does in the same way.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// Counts bytes asked and not yet given back, but only when `count_bytes` was called: timed runs pay one predicted branch.
pub struct Counting;

static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicI64 = AtomicI64::new(0);

fn count(bytes: i64) {
    if COUNTING.load(Ordering::Relaxed) {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
    }
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        unsafe { System.dealloc(p, layout) }
    }
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        unsafe { System.realloc(p, layout, size) }
    }
}

pub fn count_bytes() {
    COUNTING.store(true, Ordering::Relaxed);
}
pub fn live_bytes() -> i64 {
    LIVE.load(Ordering::Relaxed)
}

/// units: nanoseconds of CPU that the calling thread has used.
pub fn thread_cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Wall time of single calls; the clock's own cost (median of empty calls) is taken off.
pub struct Stopwatch {
    own_ns: f64,
    samples: Vec<f64>,
}

/// Samples per figure, and the time after which fewer must do.
const SAMPLES: usize = 200_000;
const LONGEST: Duration = Duration::from_millis(300);
const GROUP: usize = 64;

fn preemptions() -> i64 {
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut used) };
    used.ru_nivcsw
}

impl Stopwatch {
    pub fn new() -> Self {
        let mut idle: Vec<f64> = (0..10_000)
            .map(|_| {
                let begin = Instant::now();
                begin.elapsed().as_nanos() as f64
            })
            .collect();
        Self { own_ns: percentile(&mut idle, 0.5), samples: Vec::with_capacity(SAMPLES) }
    }
    /// What `call` returns is freed within its time.
    pub fn once<R>(&mut self, call: impl FnOnce() -> R) {
        let begin = Instant::now();
        drop(black_box(call()));
        let ns = begin.elapsed().as_nanos() as f64 - self.own_ns;
        self.samples.push(ns.max(0.0));
    }
    /// Times `call(prepare(i))` for i = 0, 1, ...; `prepare` is not timed.
    /// In groups; those in which another process took the core are measured again, as far as the time allows.
    pub fn run<P, R>(&mut self, mut prepare: impl FnMut(usize) -> P, mut call: impl FnMut(P) -> R) {
        let start = Instant::now();
        let mut i = 0;
        while self.samples.len() + GROUP <= SAMPLES && start.elapsed() < LONGEST {
            let kept = self.samples.len();
            let preempted = preemptions();
            for _ in 0..GROUP {
                let input = prepare(i);
                self.once(|| call(black_box(input)));
                i += 1;
            }
            if preemptions() != preempted && kept >= GROUP {
                self.samples.truncate(kept);
            }
        }
    }
    /// units: nanoseconds.
    pub fn percentile(&mut self, p: f64) -> f64 {
        percentile(&mut self.samples, p)
    }
    /// Makes `count` inputs, then calls for all of them between two readings of the clock. returns: the median of 200 such means;
    /// for calls near the clock's step.
    pub fn mean<P, R>(count: usize, mut prepare: impl FnMut(usize) -> P, mut call: impl FnMut(P) -> R) -> f64 {
        let mut means: Vec<f64> = (0..200)
            .map(|_| {
                let inputs: Vec<P> = (0..count).map(&mut prepare).collect();
                let begin = Instant::now();
                for input in inputs {
                    drop(black_box(call(black_box(input))));
                }
                begin.elapsed().as_nanos() as f64 / count as f64
            })
            .collect();
        percentile(&mut means, 0.5)
    }
}

fn percentile(v: &mut [f64], p: f64) -> f64 {
    if v.is_empty() {
        return 0.0;
    }
    let at = (p * (v.len() - 1) as f64) as usize;
    *v.select_nth_unstable_by(at, f64::total_cmp).1
}

/// One line per figure. The strings are this program's own and need no escaping.
pub struct Report {
    pub contender: &'static str,
}

impl Report {
    pub fn value(&self, workload: &str, args: &str, metric: &str, value: f64, unit: &str) {
        println!(
            "{{\"contender\":\"{}\",\"workload\":\"{workload}\",\"args\":\"{args}\",\"metric\":\"{metric}\",\"value\":{value:.4},\"unit\":\"{unit}\"}}",
            self.contender
        );
    }
    pub fn percentiles(&self, workload: &str, args: &str, watch: &mut Stopwatch) {
        self.value(workload, args, "p50", watch.percentile(0.5), "ns");
        self.value(workload, args, "p99", watch.percentile(0.99), "ns");
    }
    /// What the workload consists of: equal for every contender, or the figures are not comparable.
    pub fn digest(&self, workload: &str, args: &str, digest: u64) {
        self.value(workload, args, "digest", (digest >> 16) as f64, "");
    }
}
