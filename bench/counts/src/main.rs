//! `counts compare`, `counts record`: `make counts` and `make counts-record`, from the root of the repository.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use sexton_counts::baseline::Baseline;
use sexton_counts::circumstances::Circumstances;
use sexton_counts::{callgrind, cases, page, verdict};

const BASELINE: &str = "bench/counts/baseline.toml";
const PAGE: &str = "bench/measured.md";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["compare"] => compare(),
        ["record"] => record(),
        ["run", name] => run(name),
        _ => bail!("say `compare` or `record`; `run CASE` is what valgrind is given"),
    }
}

fn compare() -> Result<ExitCode> {
    let recorded = Baseline::read(Path::new(BASELINE))?;
    let report = verdict::compare(&recorded, &count()?);
    print!("{}", report.text);
    Ok(if report.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The page is written last: a run that is killed between the two leaves a page that a test finds.
fn record() -> Result<ExitCode> {
    let counts = count()?;
    if let Ok(recorded) = Baseline::read(Path::new(BASELINE)) {
        print!("{}", verdict::compare(&recorded, &counts).text);
    }
    let text = fs::read_to_string(PAGE).with_context(|| format!("{PAGE}: run it from the root"))?;
    let text = page::with_section(&text, &counts).context(PAGE)?;
    fs::write(BASELINE, counts.to_text()).context(BASELINE)?;
    fs::write(PAGE, text).context(PAGE)?;
    println!("recorded in {BASELINE} and {PAGE}: commit both, and say why");
    Ok(ExitCode::SUCCESS)
}

fn count() -> Result<Baseline> {
    let made = Circumstances::here()?;
    let program = std::env::current_exe().context("find this program")?;
    let folder = program.with_extension("callgrind");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let one = |case: cases::Case| {
        let count = callgrind::per_call(&program, &folder, case.name)?;
        Ok((case.name.to_owned(), count))
    };
    let instructions = cases::all().into_iter().map(one).collect::<Result<_>>()?;
    Ok(Baseline { made, instructions })
}

fn run(name: &str) -> Result<ExitCode> {
    let case = cases::find(name).with_context(|| format!("there is no case {name:?}"))?;
    callgrind::run(&mut (case.prepare)());
    Ok(ExitCode::SUCCESS)
}
