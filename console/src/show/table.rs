//! Tables without lines, in the manner of the usual command-line tools, and lists of named values.

use comfy_table::{
    Attribute, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table as Grid, presets,
};

use sexton_operations::text::line;

/// The most characters of one cell.
const MAX_CELL_CHARS: usize = 240;
/// A clipped last column keeps as many characters on any terminal.
const MIN_LAST_CHARS: usize = 24;

/// What a text says, as a colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// Nothing in particular.
    Plain,
    /// All is well.
    Good,
    /// Under way.
    Busy,
    /// To be watched.
    Warning,
    /// Something failed.
    Bad,
    /// Of less interest.
    Faint,
}

/// A cell: text on one line, made safe.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
    right: bool,
}

impl Cell {
    /// A plain text.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// A text with a tone.
    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: line(text.as_ref(), MAX_CELL_CHARS), tone, right: false }
    }

    /// A number, aligned to the right; zero is faint.
    pub fn number(number: i64) -> Self {
        let tone = if number == 0 { Tone::Faint } else { Tone::Plain };
        Self { right: true, ..Self::toned(number.to_string(), tone) }
    }

    /// Nothing to say.
    pub fn none() -> Self {
        Self::toned("-", Tone::Faint)
    }

    /// The state of an execution.
    pub fn state(state: &str) -> Self {
        let tone = match state {
            "succeeded" => Tone::Good,
            "running" => Tone::Busy,
            "retrying" => Tone::Warning,
            "failed" => Tone::Bad,
            "discarded" | "cancelled" | "skipped" => Tone::Faint,
            _ => Tone::Plain,
        };
        Self::toned(state, tone)
    }

    fn styled(&self, color: bool) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(&self.text);
        let cell = if self.right { cell.set_alignment(CellAlignment::Right) } else { cell };
        if !color {
            return cell;
        }
        match self.tone {
            Tone::Plain => cell,
            Tone::Good => cell.fg(Color::Green),
            Tone::Busy => cell.fg(Color::Cyan),
            Tone::Warning => cell.fg(Color::Yellow),
            Tone::Bad => cell.fg(Color::Red),
            Tone::Faint => cell.add_attribute(Attribute::Dim),
        }
    }
}

/// Rows under headings.
#[derive(Debug)]
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    whole: Vec<usize>,
    clipped: bool,
}

impl Table {
    /// Without rows yet.
    pub fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new(), whole: Vec::new(), clipped: false }
    }

    /// Never breaks this column (counted from 0), however narrow the terminal: people copy it.
    #[must_use]
    pub fn unclipped(mut self, column: usize) -> Self {
        self.whole.push(column);
        self
    }

    /// Keeps each row on one line: the last column ends where the terminal does. On one that is
    /// narrower than the other columns the terminal breaks the lines.
    #[must_use]
    pub fn single_line_rows(mut self) -> Self {
        self.clipped = true;
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn render(mut self, color: bool, terminal: bool) -> String {
        let mut grid = grid(color, terminal);
        if let Some(width) = grid.width().filter(|_| self.clipped) {
            grid.set_content_arrangement(ContentArrangement::Disabled);
            self.clip_last(width.into());
        }
        let right = |index: usize| {
            self.rows.first().is_some_and(|row| row.get(index).is_some_and(|cell| cell.right))
        };
        grid.set_header(self.headings.iter().enumerate().map(|(index, heading)| {
            let cell = comfy_table::Cell::new(heading);
            let cell = if right(index) { cell.set_alignment(CellAlignment::Right) } else { cell };
            if color { cell.add_attribute(Attribute::Bold) } else { cell }
        }));
        for row in &self.rows {
            grid.add_row(row.iter().map(|cell| cell.styled(color)));
        }
        finish(grid, &self.whole)
    }

    fn clip_last(&mut self, width: usize) {
        let last = self.headings.len().saturating_sub(1);
        let wide = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let cells = cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0);
            cells.max(self.headings[index].len()) + 2
        };
        let others: usize = (0..last).map(wide).sum();
        // One for the ellipsis, two for the padding.
        let room = width.saturating_sub(others + 3).max(MIN_LAST_CHARS);
        for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(last)) {
            cell.text = line(&cell.text, room);
        }
    }
}

/// Named values, one a line.
#[derive(Debug, Default)]
pub struct Facts(Vec<(&'static str, Cell)>);

impl Facts {
    /// Adds a value.
    pub fn add(&mut self, name: &'static str, value: impl AsRef<str>) {
        self.cell(name, Cell::new(value));
    }

    /// Adds a value if there is one.
    pub fn add_optional(&mut self, name: &'static str, value: Option<impl AsRef<str>>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Adds a value with a tone.
    pub fn cell(&mut self, name: &'static str, cell: Cell) {
        self.0.push((name, cell));
    }

    pub(super) fn render(self, color: bool, terminal: bool) -> String {
        let mut grid = grid(color, terminal);
        for (name, cell) in &self.0 {
            grid.add_row([Cell::toned(name, Tone::Faint).styled(color), cell.styled(color)]);
        }
        finish(grid, &[0])
    }
}

fn grid(color: bool, terminal: bool) -> Grid {
    let mut grid = Grid::new();
    grid.load_preset(presets::NOTHING);
    if terminal {
        grid.set_content_arrangement(ContentArrangement::Dynamic);
    } else {
        grid.force_no_tty();
    }
    if color {
        grid.enforce_styling();
    }
    grid
}

fn finish(mut grid: Grid, whole: &[usize]) -> String {
    for column in grid.column_iter_mut() {
        column.set_padding((0, 2));
        if whole.contains(&column.index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let lines: Vec<String> = grid.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}
