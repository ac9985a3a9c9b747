//! Checks the protocol from the command line: `sexton-verify [--large] [--write]`.
//!
//! Without arguments it makes the checks of the test build, with `--large` those that take minutes. `--write` puts
//! the numbers into `verify/numbers.md` and the counterexamples into `verify/traces`; otherwise missing numbers
//! are an error, so that the page cannot drift from the code.

use std::time::Instant;
use std::{env, fs};

use anyhow::{bail, ensure};
use sexton_verify::document::{self, HEAD};
use sexton_verify::explorer::{CheckedProperty, Model, check};
use sexton_verify::flow::Flow;
use sexton_verify::hold::HeldCatchUp;
use sexton_verify::overlap::Job;
use sexton_verify::{hold, protocol};

fn main() -> anyhow::Result<()> {
    let (mut large, mut write) = (false, false);
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--large" => large = true,
            "--write" => write = true,
            other => bail!("unknown argument {other}; there are --large and --write"),
        }
    }
    let (name, table) = if large {
        let protocols = rows(&protocol::scenarios::LARGE)?;
        ("large numbers", protocols + &rows(&hold::scenarios::LARGE.map(HeldCatchUp::new))?)
    } else {
        let protocols = rows(&protocol::scenarios::SMALL)?;
        let holds = rows(&hold::scenarios::SMALL.map(HeldCatchUp::new))?;
        ("numbers", protocols + &rows(&Job::BOTH)? + &rows(&Flow::ALL)? + &holds)
    };
    let table = HEAD.to_owned() + &table;
    if write {
        document::replace(name, &table)?;
        document::write_traces(&protocol::scenarios::mutants())?;
        document::write_traces(&Job::mutants())?;
        document::write_traces(&Flow::mutants())?;
        return Ok(document::write_traces(&hold::scenarios::mutants())?);
    }
    let text = fs::read_to_string(document::path())?;
    ensure!(
        document::block(&text, name) == Some(&table),
        "verify/numbers.md has other numbers; run the same with --write and look at the difference"
    );
    Ok(())
}

/// Checks each model and prints its row as soon as it is known.
fn rows<M: Model>(models: &[M]) -> anyhow::Result<String> {
    let mut table = String::new();
    for model in models {
        let began = Instant::now();
        match check(model) {
            Ok(report) => {
                let row = document::row(model, &report);
                println!("{} ({:.1} s)", row.trim_end(), began.elapsed().as_secs_f64());
                table += &row;
            }
            Err(found) => {
                print!("{}", document::numbered(&model.describe(&found.history)));
                bail!("{}: not so: {}", model.check_name(), found.property.sentence());
            }
        }
    }
    Ok(table)
}
