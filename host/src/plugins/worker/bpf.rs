//! Puts rules for system calls into a program that the kernel takes quickly.
//!
//! The compiler tests one number after the other. When a filter is installed, the kernel runs it through once for each of its some 500
//! calls, to see which are always allowed; with eighty rules in a row that alone took a fifteenth of a worker's start. So the
//! rules are cut into short runs, each a whole program, and what comes first leads to the run in which a number would be.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// Rules by the number of their call.
pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// How many calls' rules stand in one run.
const RUN: usize = 8;

/// Reads a word of the call's description, of which the first is its number.
pub(super) const LOAD: u16 = 0x20;
pub(super) const JUMP_IF_AT_LEAST: u16 = 0x35;
pub(super) const RETURN: u16 = 0x06;
const JUMP: u16 = 0x05;

pub(super) const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Compiles a filter that does `action` for what matches, and allows all else.
///
/// # Errors
///
/// Fails if the rules cannot be put into a program.
pub(super) fn compile(
    mut rules: Rules,
    action: &SeccompAction,
    machine: TargetArch,
) -> Result<BpfProgram, BackendError> {
    let mut runs: Vec<(u32, BpfProgram)> = Vec::new();
    // Also without any rule there is one run, which allows everything.
    while runs.is_empty() || !rules.is_empty() {
        let first = rules.keys().next().map_or(0, |first| u32::try_from(*first).unwrap_or(u32::MAX));
        let rest = rules.keys().nth(RUN).copied().map(|next| rules.split_off(&next)).unwrap_or_default();
        let run = std::mem::replace(&mut rules, rest);
        let run = SeccompFilter::new(run, SeccompAction::Allow, action.clone(), machine)?;
        runs.push((first, run.try_into()?));
    }
    // Where each begins: each tests for itself which machine's numbers these are.
    let mut program = vec![instruction(LOAD, 0, 0, 0)];
    let leading = 1 + 2 * runs.len().saturating_sub(1);
    let mut start = leading + runs.iter().map(|(_, run)| run.len()).sum::<usize>();
    for (first, run) in runs.iter().skip(1).rev() {
        start -= run.len();
        program.push(instruction(JUMP_IF_AT_LEAST, 0, 1, *first));
        let passed = start - program.len() - 1;
        program.push(instruction(JUMP, 0, 0, u32::try_from(passed).unwrap_or(u32::MAX)));
    }
    program.extend(runs.into_iter().flat_map(|(_, run)| run));
    Ok(program)
}

#[cfg(test)]
mod tests {
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition};

    use super::*;

    const X86_64: u32 = 0xc000_003e;
    const ALLOW: u32 = 0x7fff_0000;
    const EPERM: u32 = 0x0005_0001;
    const KILL: u32 = 0x8000_0000;

    /// Runs a program as the kernel does, over a call's description as words.
    fn run(program: &[sock_filter], words: &[u32; 16]) -> (u32, usize) {
        let (mut at, mut value, mut steps) = (0, 0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let to = |jump: bool| usize::from(if jump { jt } else { jf });
            (at, steps) = (at + 1, steps + 1);
            match code {
                LOAD => value = words[usize::try_from(k / 4).unwrap()],
                0x54 => value &= k,
                JUMP => at += usize::try_from(k).unwrap(),
                0x15 => at += to(value == k),
                0x25 => at += to(value > k),
                JUMP_IF_AT_LEAST => at += to(value >= k),
                RETURN => return (k, steps),
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    fn call(number: u32, machine: u32, first_argument: u32) -> [u32; 16] {
        let mut words = [0; 16];
        (words[0], words[1], words[4]) = (number, machine, first_argument);
        words
    }

    #[test]
    fn each_number_meets_its_own_rule_and_few_others() {
        for calls in [0, 1, 7, 8, 9, 40, 83] {
            let one = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, 1).unwrap();
            let mut rules: Rules = (0..calls).map(|call| (3 + call * 5, Vec::new())).collect();
            rules.insert(600, vec![SeccompRule::new(vec![one]).unwrap()]);
            let program = compile(rules.clone(), &SeccompAction::Errno(1), TargetArch::x86_64).unwrap();
            for number in 0..700 {
                let refused = rules.contains_key(&number);
                let number = u32::try_from(number).unwrap();
                let (action, steps) = run(&program, &call(number, X86_64, 1));
                assert_eq!(action, if refused { EPERM } else { ALLOW }, "call {number} of {calls}");
                assert!(steps < 60, "call {number} of {calls}: {steps} steps");
                assert_eq!(run(&program, &call(number, 7, 1)).0, KILL, "another machine's {number}");
            }
            assert_eq!(run(&program, &call(600, X86_64, 2)).0, ALLOW);
        }
        let none = compile(Rules::new(), &SeccompAction::Errno(1), TargetArch::x86_64).unwrap();
        assert_eq!(run(&none, &call(1, X86_64, 1)).0, ALLOW);
    }
}
