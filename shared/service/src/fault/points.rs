//! The list of fault points.

mod console;
mod scheduler;
mod worker;

use crate::settings::Program;

/// A place between two effects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// Its name in `FAULT_POINT`: the program, a full stop, the place.
    pub name: &'static str,
    /// The program that dies there.
    pub program: Program,
    /// The last effect before the point: subject, verb and object.
    pub after: &'static str,
    /// The next effect, which a crash at the point prevents.
    pub before: &'static str,
    /// The state that a crash here leaves behind, and the process that continues, unless a rule at the top of
    /// `docs/internals/fault-points.md` names it.
    pub leaves: &'static str,
    /// Whether the crash makes a task run once more.
    pub reruns: Reruns,
    /// The condition under which the point is passed; empty: jobs that run, some of which fail, and workers that die.
    pub needs: &'static str,
}

/// How often a crash at a point repeats the effects of a task, for each idempotency key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reruns {
    /// Never: no task had begun, or its end was recorded.
    Never,
    /// Once: a task had begun, and its end was not recorded.
    Once,
}

/// All fault points. Each appears once in the source, and a test strikes each.
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

/// Makes a point of the program with which its name begins.
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
