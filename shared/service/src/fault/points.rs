//! The list of fault points.

mod console;
mod scheduler;
mod worker;

use crate::settings::Program;

/// A place between two effects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// How `FAULT_POINT` names it: the program, a full stop, the place.
    pub name: &'static str,
    /// The program that dies at it.
    pub program: Program,
    /// The last effect before the point: who does what.
    pub after: &'static str,
    /// The next effect, which a crash at the point prevents.
    pub before: &'static str,
    /// What a process that dies here leaves behind, and who continues.
    pub leaves: &'static str,
    /// Whether the death makes a task run once more.
    pub reruns: Reruns,
    /// What must be going on for the point to be passed; empty: jobs that run, some of which fail,
    /// and workers that die.
    pub needs: &'static str,
}

/// How often the effects of a task happen because a process died at a point, for each idempotency key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reruns {
    /// No more often than without: no task had begun, or its end was recorded.
    Never,
    /// Once more: a task had begun, and nobody knew of its end.
    Once,
}

/// All fault points. Each stands once in the source, and a test strikes each.
pub const POINTS: &[Point] = &ALL;

const ALL: [Point; scheduler::POINTS.len() + worker::POINTS.len() + console::POINTS.len()] = {
    let parts = [scheduler::POINTS, worker::POINTS, console::POINTS];
    let mut all = [scheduler::POINTS[0]; _];
    let (mut part, mut from, mut to) = (0, 0, 0);
    while part < parts.len() {
        if from < parts[part].len() {
            all[to] = parts[part][from];
            (from, to) = (from + 1, to + 1);
        } else {
            (part, from) = (part + 1, 0);
        }
    }
    all
};

/// A point whose program is the one that its name begins with.
const fn at(
    name: &'static str,
    reruns: Reruns,
    after: &'static str,
    before: &'static str,
    leaves: &'static str,
    needs: &'static str,
) -> Point {
    let program = match name.as_bytes()[0] {
        b's' => Program::Scheduler,
        b'w' => Program::Worker,
        _ => Program::Console,
    };
    Point { name, program, after, before, leaves, reruns, needs }
}
