//! A long list of rows in pieces, and where one is in it. Every view but the terminal's is one. Pure.

use std::rc::Rc;

use super::text::Row;

/// Rows that belong together and have a name that stays.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) id: u64,
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Default)]
pub(super) struct Document {
    pieces: Vec<Rc<Piece>>,
    /// The row with which each piece begins.
    starts: Vec<usize>,
    total: usize,
}

/// What is at the top of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scroll {
    /// The end, wherever that is by then.
    End,
    /// A row of a piece; it stays there when things change above and below, or the width does.
    At { piece: u64, row: usize },
}

impl Scroll {
    pub(super) const START: Self = Self::At { piece: 0, row: 0 };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

impl Document {
    pub(super) fn new(pieces: Vec<Rc<Piece>>) -> Self {
        let mut total = 0;
        let starts = pieces.iter().map(|piece| {
            let start = total;
            total += piece.rows.len();
            start
        });
        let starts = starts.collect();
        Self {
            pieces,
            starts,
            total,
        }
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    fn last_top(&self, height: usize) -> usize {
        self.total.saturating_sub(height)
    }

    /// The first row in a window of this height.
    pub(super) fn top(&self, scroll: Scroll, height: usize) -> usize {
        let last = self.last_top(height);
        match scroll {
            Scroll::End => last,
            Scroll::START => 0,
            Scroll::At { piece, row } => {
                let index = self.pieces.iter().position(|known| known.id == piece);
                let after = || self.pieces.partition_point(|known| known.id < piece);
                let index = index.unwrap_or_else(after);
                let Some(found) = self.pieces.get(index) else {
                    return last;
                };
                let row = if found.id == piece {
                    row.min(found.rows.len())
                } else {
                    0
                };
                (self.starts[index] + row).min(last)
            }
        }
    }

    /// Where one is with this row at the top.
    pub(super) fn scroll_to(&self, top: usize, height: usize) -> Scroll {
        if top >= self.last_top(height) {
            return Scroll::End;
        }
        self.anchor(top)
    }

    /// This row, also when it is near the end: what grows below is not followed.
    pub(super) fn anchor(&self, top: usize) -> Scroll {
        let index = self
            .starts
            .partition_point(|start| *start <= top)
            .saturating_sub(1);
        self.pieces.get(index).map_or(Scroll::End, |piece| Scroll::At {
            piece: piece.id,
            row: top - self.starts[index],
        })
    }

    pub(super) fn rows(&self, from: usize, count: usize) -> impl Iterator<Item = (u64, &Row)> {
        let index = self
            .starts
            .partition_point(|start| *start <= from)
            .saturating_sub(1);
        let skip = self
            .starts
            .get(index)
            .map_or(0, |start| from.saturating_sub(*start));
        self.pieces[index.min(self.pieces.len())..]
            .iter()
            .flat_map(|piece| piece.rows.iter().map(|row| (piece.id, row)))
            .skip(skip)
            .take(count)
    }

    /// The rows of a piece.
    pub(super) fn place(&self, id: u64) -> Option<(usize, usize)> {
        let index = self.pieces.iter().position(|piece| piece.id == id)?;
        let start = self.starts[index];
        Some((start, start + self.pieces[index].rows.len()))
    }

    /// The next piece with something to see; without one to go from, the one nearest to the given row.
    pub(super) fn neighbour(&self, of: Option<u64>, near: usize, direction: Direction) -> Option<u64> {
        let visible = |index: &usize| !self.pieces[*index].rows.is_empty();
        let known = of.and_then(|id| self.pieces.iter().position(|piece| piece.id == id));
        let index = match (known, direction) {
            (Some(index), Direction::Down) => (index + 1..self.pieces.len()).find(visible),
            (Some(index), Direction::Up) => (0..index).rev().find(visible),
            (None, _) => {
                let index = self.starts.partition_point(|start| *start <= near);
                (0..index).rev().find(visible)
            }
        };
        index.or(known).map(|index| self.pieces[index].id)
    }

    /// Where a piece is brought into a window.
    pub(super) fn reveal(&self, id: u64, scroll: Scroll, height: usize) -> Scroll {
        let Some((start, end)) = self.place(id) else {
            return scroll;
        };
        let top = self.top(scroll, height);
        if start < top || end - start >= height {
            self.scroll_to(start, height)
        } else if end > top + height {
            self.scroll_to(end - height, height)
        } else {
            scroll
        }
    }

    /// The next row that contains a text, all the way around.
    pub(super) fn find(&self, wanted: &str, from: usize, direction: Direction) -> Option<usize> {
        if wanted.is_empty() || self.total == 0 {
            return None;
        }
        let found: Vec<usize> = self
            .rows(0, self.total)
            .enumerate()
            .filter(|(_, (_, row))| !matches(&row.line.to_string(), wanted).is_empty())
            .map(|(index, _)| index)
            .collect();
        match direction {
            Direction::Down => found.iter().find(|row| **row > from).or(found.first()),
            Direction::Up => found.iter().rev().find(|row| **row < from).or(found.last()),
        }
        .copied()
    }
}

/// Where a text occurs in a line, as byte ranges. Capitals matter only when the wanted text has some.
pub(super) fn matches(line: &str, wanted: &str) -> Vec<std::ops::Range<usize>> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let exact = wanted.chars().any(char::is_uppercase);
    let same = |a: char, b: char| a == b || (!exact && a.to_lowercase().eq(b.to_lowercase()));
    let ends_at = |from: usize| {
        let mut rest = line[from..].char_indices();
        let mut end = from;
        for expected in wanted.chars() {
            let (at, c) = rest.next()?;
            if !same(c, expected) {
                return None;
            }
            end = from + at + c.len_utf8();
        }
        Some(end)
    };
    line.char_indices()
        .filter_map(|(from, _)| ends_at(from).map(|end| from..end))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::text::Line;

    fn document(sizes: &[(u64, usize)]) -> Document {
        let piece = |(id, rows): &(u64, usize)| {
            let rows = (0..*rows).map(|row| Row::from(Line::from(format!("{id}.{row}"))));
            Rc::new(Piece {
                id: *id,
                rows: rows.collect(),
            })
        };
        Document::new(sizes.iter().map(piece).collect())
    }

    #[test]
    fn a_place_stays_when_things_change_around_it() {
        let before = document(&[(0, 10), (1, 10), (2, 10)]);
        let scroll = before.scroll_to(14, 5);
        assert_eq!(scroll, Scroll::At { piece: 1, row: 4 });
        let rewrapped = document(&[(0, 20), (1, 10), (2, 30)]);
        assert_eq!(rewrapped.top(scroll, 5), 24);
        let first_gone = document(&[(1, 10), (2, 30)]);
        assert_eq!(first_gone.top(scroll, 5), 4);
        let it_is_gone = document(&[(2, 30)]);
        assert_eq!(it_is_gone.top(scroll, 5), 0);
    }

    #[test]
    fn the_end_is_the_end_however_long_it_gets() {
        assert_eq!(document(&[(0, 30)]).scroll_to(25, 5), Scroll::End);
        assert_eq!(document(&[(0, 90)]).top(Scroll::End, 5), 85);
        assert_eq!(document(&[]).top(Scroll::End, 5), 0);
        assert_eq!(document(&[(0, 2)]).top(Scroll::START, 5), 0);
    }

    #[test]
    fn rows_are_found_across_pieces() {
        let document = document(&[(3, 2), (4, 0), (7, 3)]);
        let shown: Vec<String> = document
            .rows(1, 3)
            .map(|(id, row)| format!("{id}:{}", row.line))
            .collect();
        assert_eq!(shown, ["3:3.1", "7:7.0", "7:7.1"]);
        assert_eq!(document.place(7), Some((2, 5)));
        assert_eq!(document.neighbour(Some(3), 0, Direction::Down), Some(7));
        assert_eq!(document.neighbour(Some(7), 0, Direction::Down), Some(7));
        assert_eq!(document.neighbour(None, 1, Direction::Up), Some(3));
        assert_eq!(document.neighbour(None, 4, Direction::Up), Some(7));
        assert_eq!(document.find("7.", 2, Direction::Down), Some(3));
        assert_eq!(document.find("7.", 4, Direction::Down), Some(2));
        assert_eq!(document.find("3.1", 4, Direction::Up), Some(1));
        assert_eq!(document.find("nothing", 4, Direction::Up), None);
    }

    #[test]
    fn capitals_matter_when_they_are_asked_for() {
        assert_eq!(matches("Ärger, ÄRGER", "ärger"), [0..6, 8..14]);
        assert_eq!(
            matches("error Error", "Error"),
            std::iter::once(6..11).collect::<Vec<_>>()
        );
        assert_eq!(matches("aaa", "aa"), [0..2, 1..3]);
    }
}
