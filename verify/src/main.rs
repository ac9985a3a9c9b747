//! Checks the protocol from the command line: `sexton-verify [--large] [--write]`.
//!
//! Without arguments it makes the checks of the test build, with `--large` those that take minutes.
//! `--write` puts the numbers and the counterexamples into `docs/proof.md`; otherwise numbers that
//! are not there are an error, so that the document cannot drift from the code.

use std::time::Instant;
use std::{env, fs};

use anyhow::{bail, ensure};
use sexton_verify::explorer::{CheckedProperty, Model, check};
use sexton_verify::protocol::scenarios::{HEAD, LARGE, SMALL, row};
use sexton_verify::{document, hold, overlap};

fn main() -> anyhow::Result<()> {
    let (mut large, mut write) = (false, false);
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--large" => large = true,
            "--write" => write = true,
            other => bail!("unknown argument {other}; there are --large and --write"),
        }
    }
    let (scenarios, name) =
        if large { (&LARGE[..], "large numbers") } else { (&SMALL[..], "numbers") };
    let mut table = HEAD.to_owned();
    for protocol in scenarios {
        let began = Instant::now();
        match check(protocol) {
            Ok(report) => {
                let row = row(&protocol.bounds, &report);
                println!("{row} ({:.1} s)", began.elapsed().as_secs_f64());
                table += "\n";
                table += &row;
            }
            Err(found) => {
                for line in protocol.describe(&found.history) {
                    println!("  {line}");
                }
                bail!("{}: not so: {}", protocol.bounds.name, found.property.sentence());
            }
        }
    }
    let (bounds, holds_name) =
        if large { (&hold::LARGE[..], "large holds") } else { (&hold::SMALL[..], "holds") };
    let holds = hold::table(bounds).map_err(|broken| {
        anyhow::anyhow!("not so: {}\n{}", broken.property.sentence(), hold::render(&broken))
    })?;
    println!("{holds}");
    if write {
        document::replace(name, &table)?;
        document::replace(holds_name, &holds)?;
        document::replace("hold counterexamples", &hold::counterexamples())?;
        document::replace("hold limit", &hold::limit())?;
        let overlaps = overlap::table().map_err(|broken| anyhow::anyhow!("{broken:?}"))?;
        document::replace("overlaps", &overlaps)?;
        document::replace("overlap counterexamples", &overlap::counterexamples())?;
        return Ok(document::replace("counterexamples", &document::counterexamples())?);
    }
    let text = fs::read_to_string(document::path())?;
    let written = document::block(&text, name).unwrap_or_default();
    let written_holds = document::block(&text, holds_name).unwrap_or_default();
    ensure!(
        written.trim_end() == table && written_holds.trim_end() == holds,
        "docs/proof.md has other numbers; run the same with --write and look at the difference"
    );
    Ok(())
}
