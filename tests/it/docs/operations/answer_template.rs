//! Whether an answer is the one that is shown.

/// How it is written, and what may stand there.
type Hole = (&'static str, fn(char) -> bool);

/// What a row of bars is drawn with, from nothing to the most.
pub(in crate::docs) const BARS: &str = "·▁▂▃▄▅▆▇█";

/// What stands for something that differs each time, and what may stand there.
const HOLES: [Hole; 5] = [
    ("<id>", |c| c.is_ascii_hexdigit() || c == '-'),
    ("<time>", |c| c.is_ascii_alphanumeric() || " -:.".contains(c)),
    ("<any>", |_| true),
    ("<n>", |c| c.is_ascii_digit() || c == '.'),
    ("<bars>", |c| BARS.contains(c)),
];

/// How `said` differs from what is shown; `None`: it does not.
pub(super) fn differs(shown: &[String], output: &str) -> Option<String> {
    let output: Vec<String> = output.lines().map(plain).filter(|line| !line.is_empty()).collect();
    let shown: Vec<String> =
        shown.iter().map(|line| plain(line)).filter(|line| !line.is_empty()).collect();
    (!lines_fit(&shown, &output)).then(|| {
        let other = shown
            .iter()
            .find(|line| *line != "…" && !output.iter().any(|output| fits(line, output)));
        match other {
            Some(line) => format!("nothing answers to: {line}"),
            None => "there is more in the answer, or in another order".to_owned(),
        }
    })
}

/// Blanks count as one.
fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lines_fit(shown: &[String], output: &[String]) -> bool {
    match shown.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=output.len()).any(|skipped| lines_fit(rest, &output[skipped..]))
        }
        Some((first, rest)) => output
            .split_first()
            .is_some_and(|(one, more)| fits(first, one) && lines_fit(rest, more)),
    }
}

/// Whether a line is as it is shown, with its holes filled.
fn fits(shown: &str, output: &str) -> bool {
    let next =
        HOLES.iter().filter_map(|hole| Some((shown.find(hole.0)?, *hole))).min_by_key(|it| it.0);
    let Some((at, (hole, may_stand))) = next else { return shown == output };
    let Some(output) = output.strip_prefix(&shown[..at]) else { return false };
    let rest = &shown[at + hole.len()..];
    let filled = output.char_indices().take_while(|(_, c)| may_stand(*c));
    let ends: Vec<usize> = filled.map(|(at, c)| at + c.len_utf8()).collect();
    ends.into_iter().rev().any(|end| fits(rest, &output[end..]))
}

#[test]
fn an_answer_matches_its_template_with_placeholders_filled() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let fit = "<id> failed <time> ago\n…\n<n> in all";
    assert_eq!(differs(&shown(fit), "019a-77 failed  3 m 5 s ago\nx\ny\n12 in all\n"), None);
    assert_eq!(differs(&shown(fit), "019a-77 failed 3 s ago\n12 in all"), None);
    for other in
        ["019a failed now\n12 in all", "zzz failed 3 s ago\n12 in all", "019a failed 3 s ago"]
    {
        assert!(differs(&shown(fit), other).is_some(), "{other}");
    }
    assert!(differs(&[], "something").is_some(), "silence is an answer");
}
