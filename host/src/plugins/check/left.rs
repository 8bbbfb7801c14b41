//! What a worker has started and has not seen to its end.
//!
//! Its own children are easily found. What has lost its parent, such as a daemon, has been adopted by the keeper, whatever it has
//! done to its session and its environment; a worker that ends by itself leaves that alive, for it may be meant.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::super::worker::Worker;

/// How long what was started may take to end by itself.
const PARTING: Duration = Duration::from_secs(5);

/// Ends a worker. Returns what is wrong with how it went; then nothing of it is left.
pub(super) fn end(worker: &Worker) -> Result<(), String> {
    let (Some(id), Some(keeper)) = (worker.process_id(), worker.keeper_id()) else {
        worker.part();
        return Ok(());
    };
    let adopted = || -> BTreeSet<u32> { children(keeper).into_iter().filter(|child| *child != id).collect() };
    let left = outlast(&adopted);
    if !left.is_empty() {
        let left = named(&left);
        worker.kill("left processes behind");
        outlast(&|| BTreeSet::from([keeper]));
        return Err(format!("it has left behind {left}"));
    }
    let own: BTreeSet<u32> = children(id).into_iter().chain([id]).collect();
    worker.part();
    let left = outlast(&|| own.clone());
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("still there after {} s: {}", PARTING.as_secs(), named(&left)))
    }
}

/// Waits until none of these is alive, for some time, and returns those that are.
fn outlast(these: &dyn Fn() -> BTreeSet<u32>) -> BTreeSet<u32> {
    let until = Instant::now() + PARTING;
    loop {
        let left: BTreeSet<u32> = these().into_iter().filter(|id| is_alive(*id)).collect();
        if left.is_empty() || Instant::now() >= until {
            return left;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// What has ended and waits for its parent counts as gone.
fn is_alive(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn children(parent: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let listed = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    listed
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Names processes, a few of them.
fn named(ids: &BTreeSet<u32>) -> String {
    const SHOWN: usize = 3;
    let name = |id: &u32| {
        let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        format!("`{}` ({id})", name.trim_end())
    };
    let shown: Vec<String> = ids.iter().take(SHOWN).map(name).collect();
    let more = ids.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
