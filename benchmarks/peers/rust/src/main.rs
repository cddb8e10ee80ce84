//! warmroute-peers CONTENDER WORKLOAD time|bytes: one figure per line, as JSON. See ../README.md.

mod contender;
mod dynamo;
mod measure;
mod others;
mod runs;
#[cfg(feature = "selection")]
mod selection;
mod smg;
mod workloads;

use measure::Report;

#[global_allocator]
static ALLOCATOR: measure::Counting = measure::Counting;

const CONTENDERS: [&str; 6] = ["dynamo-crtc", "dynamo-radix", "smg-1.7.0", "smg-1.7.0-array", "smg-2.0.0", "smg-2.0.0-array"];
const INDEX_WORKLOADS: [&str; 4] = ["INGEST", "QUERY", "TREE", "CHURN"];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["--list"] => list(),
        [contender, workload, "time"] => run(contender, workload, false),
        [contender, workload, "bytes"] => {
            measure::count_bytes();
            run(contender, workload, true);
        }
        _ => fail("usage: warmroute-peers --list | CONTENDER WORKLOAD time|bytes"),
    }
}

fn list() {
    for contender in CONTENDERS {
        println!("{contender} {}", INDEX_WORKLOADS.join(" "));
    }
    println!("smg-2.0.0 TEXT HASH");
    println!("dynamo HASH");
    if cfg!(feature = "selection") {
        println!("dynamo SELECT");
    }
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2);
}

fn run(contender: &str, workload: &str, bytes: bool) {
    match (contender, workload) {
        ("smg-2.0.0", "TEXT") => others::text(&Report { contender: "smg-2.0.0" }, bytes),
        ("smg-2.0.0", "HASH") => others::hash_smg(&Report { contender: "smg-2.0.0" }),
        ("dynamo", "HASH") => others::hash_dynamo(&Report { contender: "dynamo" }),
        #[cfg(feature = "selection")]
        ("dynamo", "SELECT") => selection::select(&Report { contender: "dynamo" }),
        ("dynamo-crtc", _) => runs::index::<dynamo::Concurrent>(workload, bytes),
        ("dynamo-radix", _) => runs::index::<dynamo::Single>(workload, bytes),
        ("smg-1.7.0", _) => runs::index::<smg::v1::Map>(workload, bytes),
        ("smg-1.7.0-array", _) => runs::index::<smg::v1::Array>(workload, bytes),
        ("smg-2.0.0", _) => runs::index::<smg::v2::Map>(workload, bytes),
        ("smg-2.0.0-array", _) => runs::index::<smg::v2::Array>(workload, bytes),
        _ => fail("no such contender or workload; --list shows them"),
    }
}
