//! Times several kinds of work side by side.
//!
//! A busy machine must not favour one of them, so each round does every kind once, in an order of its own. The first round
//! fills caches and is not counted.

use std::time::{Duration, Instant};

/// One kind of work: does it once, and returns how long that part of it took which counts.
pub(crate) type Kind<'a> = &'a mut dyn FnMut() -> Duration;

/// Returns how long `work` takes.
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Runs each kind `rounds` times, and returns the times of each, sorted.
pub(crate) fn shuffled<const N: usize>(rounds: usize, kinds: &mut [Kind<'_>; N]) -> [Vec<Duration>; N] {
    let mut times = [const { Vec::new() }; N];
    let mut order: [usize; N] = std::array::from_fn(|kind| kind);
    // Marsaglia's xorshift: the same orders in every run.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..=rounds {
        for last in (1..N).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = usize::try_from(random % (last as u64 + 1)).expect("it is an index");
            order.swap(last, other);
        }
        for kind in order {
            let time = kinds[kind]();
            if round > 0 {
                times[kind].push(time);
            }
        }
    }
    for times in &mut times {
        times.sort();
    }
    times
}
