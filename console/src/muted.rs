//! Says what a filter leaves out because its groups are muted.

use sexton_store::failures::MutedMatches;

/// Groups that are named.
const MAX_NAMED: usize = 5;

/// What is left out, in one sentence; `None`: nothing.
pub(crate) fn describe_muted(left_out: &MutedMatches) -> Option<String> {
    let MutedMatches { count, more, groups } = left_out;
    if *count == 0 {
        return None;
    }
    let at_least = if *more { "at least " } else { "" };
    let executions = if *count == 1 { "execution" } else { "executions" };
    let noun = if groups.len() == 1 { "a muted group" } else { "muted groups" };
    let mut names: Vec<String> = groups
        .iter()
        .take(MAX_NAMED)
        // Of a part of them the counts say nothing.
        .map(|(name, count)| if *more { name.clone() } else { format!("{name}: {count}") })
        .collect();
    if groups.len() > MAX_NAMED {
        names.push(format!("and {} more", groups.len() - MAX_NAMED));
    }
    let names = names.join(", ");
    Some(format!(
        "{at_least}{count} {executions} of {noun} ({names}); --muted selects them as well"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_counts_what_is_left_out_and_names_the_largest_groups() {
        let mut all = MutedMatches::default();
        assert_eq!(describe_muted(&all), None);
        all = MutedMatches { count: 1, more: false, groups: vec![("aa".to_owned(), 1)] };
        assert_eq!(
            describe_muted(&all).unwrap(),
            "1 execution of a muted group (aa: 1); --muted selects them as well"
        );
        all.groups = (0..7).map(|n| (format!("g{n}"), 10 - n)).collect();
        all.count = 49;
        assert!(
            describe_muted(&all)
                .unwrap()
                .contains("49 executions of muted groups (g0: 10, g1: 9, ")
        );
        all.more = true;
        assert_eq!(
            describe_muted(&all).unwrap(),
            "at least 49 executions of muted groups (g0, g1, g2, g3, g4, and 2 more); --muted selects them \
             as well"
        );
    }
}
