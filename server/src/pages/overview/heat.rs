//! The firings of the next day as a table, a row for each hour and a cell for ten minutes, coloured by their number.
//!
//! The numbers stand in the cells, so nobody needs the colours, and a script even less.

use chrono::{DateTime, Timelike as _, Utc};
use sexton_operations::jobs::density::{FiringDay, PART_MINUTES};

use crate::pages::shell::instant::in_address;

/// Parts of an hour.
const CELLS: usize = 60 / PART_MINUTES;
const HOURS: usize = 24;
/// Hours of one of the two tables, which stand side by side where there is room.
const HALF: usize = HOURS / 2;
/// Shades of cells with firings.
const SHADES: u64 = 5;

/// Ten minutes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HeatCell {
    /// Its firings; empty if there is no firing.
    pub(super) text: String,
    /// Its classes in the style sheet.
    pub(super) class: String,
    /// Whether it is the present one; the cells before it are the next day's, or were when they were counted.
    pub(super) is_now: bool,
    /// The value of `from` in the address of its list.
    pub(super) from: String,
}

/// An hour.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HeatRow {
    pub(super) hour: String,
    pub(super) cells: Vec<HeatCell>,
}

/// The first or the last twelve hours of a day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HeatHalf {
    pub(super) name: &'static str,
    pub(super) rows: Vec<HeatRow>,
}

/// Returns the beginnings of the minutes above the cells of an hour.
pub(super) fn minutes() -> Vec<String> {
    (0..CELLS).map(|cell| format!(":{:02}", cell * PART_MINUTES)).collect()
}

/// Lays out a day by the hours of the clock, in UTC. It may have been counted a while before `now`.
pub(super) fn halves(day: &FiringDay, now: DateTime<Utc>) -> [HeatHalf; 2] {
    let most = day.counts.iter().copied().max().unwrap_or(0).max(1);
    let hot: Vec<usize> = day.all_hot.iter().map(|at| place(*at)).collect();
    let (first, present) = (place(day.from), place(now));
    let cell = |at: usize| {
        let part = (at + HOURS * CELLS - first) % (HOURS * CELLS);
        let (firings, begin) = (day.counts[part], day.begin(part));
        let shade = firings.saturating_mul(SHADES).div_ceil(most);
        let mut class = format!("heat-{shade}");
        if hot.contains(&at) {
            class.push_str(" hot");
        }
        HeatCell { text: short(firings), class, is_now: at == present, from: in_address(begin) }
    };
    let row = |hour: usize| HeatRow {
        hour: format!("{hour:02}"),
        cells: (0..CELLS).map(|at| cell(hour * CELLS + at)).collect(),
    };
    [
        HeatHalf { name: "from midnight to noon", rows: (0..HALF).map(row).collect() },
        HeatHalf { name: "from noon to midnight", rows: (HALF..HOURS).map(row).collect() },
    ]
}

/// Returns the place of an instant's cell among those of a day.
fn place(at: DateTime<Utc>) -> usize {
    at.hour() as usize * CELLS + at.minute() as usize / PART_MINUTES
}

/// A number that fits into a cell on a phone.
fn short(firings: u64) -> String {
    match firings {
        0 => String::new(),
        1..10_000 => firings.to_string(),
        10_000..10_000_000 => format!("{}k", firings / 1_000),
        _ => format!("{}M", firings / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_longer_than_five_characters() {
        for (firings, text) in
            [(0, ""), (9_999, "9999"), (10_000, "10k"), (9_999_999, "9999k"), (12_345_678, "12M")]
        {
            assert_eq!(short(firings), text);
        }
    }

    #[test]
    fn every_part_of_the_day_has_its_cell_by_the_clock() {
        let mut day = FiringDay::empty("2026-01-01T22:50:00Z".parse().unwrap());
        // 22:50, 23:00 and, of the next day, 00:00 and 22:40.
        for (part, firings) in [(0, 1), (1, 20), (7, 100), (143, 60)] {
            day.counts[part] = firings;
        }
        day.all_hot = vec!["2026-01-02T00:09:00Z".parse().unwrap()];
        let [first, last] = halves(&day, "2026-01-01T22:59:59Z".parse().unwrap());
        assert_eq!((first.rows.len(), last.rows.len()), (12, 12));
        let midnight = &first.rows[0].cells[0];
        assert_eq!((midnight.text.as_str(), midnight.class.as_str()), ("100", "heat-5 hot"));
        assert_eq!(midnight.from, "2026-01-02T00:00:00Z");
        let ten = &last.rows[10];
        assert_eq!(ten.hour, "22");
        assert_eq!((ten.cells[4].text.as_str(), ten.cells[4].class.as_str()), ("60", "heat-3"));
        assert_eq!(ten.cells[4].from, "2026-01-02T22:40:00Z");
        assert_eq!((ten.cells[5].class.as_str(), ten.cells[5].is_now), ("heat-1", true));
        assert_eq!(last.rows[11].cells[0].class, "heat-1");
        assert_eq!(last.rows[11].cells[1].class, "heat-0");
        let [_, later] = halves(&day, "2026-01-01T23:00:00Z".parse().unwrap());
        assert_eq!((later.rows[10].cells[5].is_now, later.rows[11].cells[0].is_now), (false, true));
        assert_eq!(minutes(), [":00", ":10", ":20", ":30", ":40", ":50"]);
    }
}
