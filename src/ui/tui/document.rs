//! A scrollable list of rows, grouped into items. Every tab except the terminal shows one. Pure.

use std::rc::Rc;

use super::text::Row;

/// Rows that belong together, with a stable id.
#[derive(Debug, Default)]
pub(super) struct DocumentItem {
    pub(super) id: u64,
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Default)]
pub(super) struct Document {
    items: Vec<Rc<DocumentItem>>,
    /// The first row of each item.
    starts: Vec<usize>,
    total: usize,
}

/// The scroll position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scroll {
    /// The end, also when the document grows.
    End,
    /// This row of an item is at the top, also when other items or the width change.
    At { item: u64, row: usize },
}

impl Scroll {
    pub(super) const START: Self = Self::At { item: 0, row: 0 };
}

/// A search match: its row, and its number among all matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) row: usize,
    pub(super) number: usize,
    pub(super) total: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

impl Document {
    pub(super) fn new(items: Vec<Rc<DocumentItem>>) -> Self {
        let mut total = 0;
        let starts = items.iter().map(|item| {
            let start = total;
            total += item.rows.len();
            start
        });
        let starts = starts.collect();
        Self { items, starts, total }
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    fn last_top(&self, height: usize) -> usize {
        self.total.saturating_sub(height)
    }

    /// Index of the first visible row in a window of this height.
    pub(super) fn top(&self, scroll: Scroll, height: usize) -> usize {
        let last = self.last_top(height);
        match scroll {
            Scroll::End => last,
            Scroll::START => 0,
            Scroll::At { item, row } => {
                let index = self.items.iter().position(|known| known.id == item);
                let after = || self.items.partition_point(|known| known.id < item);
                let index = index.unwrap_or_else(after);
                let Some(found) = self.items.get(index) else {
                    return last;
                };
                let row = if found.id == item {
                    row.min(found.rows.len())
                } else {
                    0
                };
                (self.starts[index] + row).min(last)
            }
        }
    }

    /// The scroll position with this row at the top.
    pub(super) fn scroll_to(&self, top: usize, height: usize) -> Scroll {
        if top >= self.last_top(height) {
            return Scroll::End;
        }
        self.anchor(top)
    }

    /// Like `scroll_to`, but never follows the end.
    pub(super) fn anchor(&self, top: usize) -> Scroll {
        let index = self
            .starts
            .partition_point(|start| *start <= top)
            .saturating_sub(1);
        self.items.get(index).map_or(Scroll::End, |item| Scroll::At {
            item: item.id,
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
        self.items[index.min(self.items.len())..]
            .iter()
            .flat_map(|item| item.rows.iter().map(|row| (item.id, row)))
            .skip(skip)
            .take(count)
    }

    /// The item that contains a row.
    pub(super) fn item_at(&self, row: usize) -> Option<u64> {
        let (id, _) = self.rows(row.min(self.total.saturating_sub(1)), 1).next()?;
        Some(id)
    }

    /// Start and end row of an item.
    pub(super) fn row_range(&self, id: u64) -> Option<(usize, usize)> {
        let index = self.items.iter().position(|item| item.id == id)?;
        let start = self.starts[index];
        Some((start, start + self.items[index].rows.len()))
    }

    /// The next item with rows after `of`; without `of`, the item at or above row `near`.
    pub(super) fn neighbor(&self, of: Option<u64>, near: usize, direction: Direction) -> Option<u64> {
        let visible = |index: &usize| !self.items[*index].rows.is_empty();
        let known = of.and_then(|id| self.items.iter().position(|item| item.id == id));
        let index = match (known, direction) {
            (Some(index), Direction::Down) => (index + 1..self.items.len()).find(visible),
            (Some(index), Direction::Up) => (0..index).rev().find(visible),
            (None, _) => {
                let index = self.starts.partition_point(|start| *start <= near);
                (0..index).rev().find(visible)
            }
        };
        index.or(known).map(|index| self.items[index].id)
    }

    /// The scroll position that makes an item visible.
    pub(super) fn reveal(&self, id: u64, scroll: Scroll, height: usize) -> Scroll {
        let Some((start, end)) = self.row_range(id) else {
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

    /// The next row that contains `wanted`, wrapping around at the ends.
    pub(super) fn find(&self, wanted: &str, from: usize, direction: Direction) -> Option<Found> {
        if wanted.is_empty() || self.total == 0 {
            return None;
        }
        let found: Vec<usize> = self
            .rows(0, self.total)
            .enumerate()
            .filter(|(_, (_, row))| !matches(&row.line.to_string(), wanted).is_empty())
            .map(|(index, _)| index)
            .collect();
        let last = found.len().checked_sub(1)?;
        let index = match direction {
            Direction::Down => found.iter().position(|row| *row > from).unwrap_or(0),
            Direction::Up => found.iter().rposition(|row| *row < from).unwrap_or(last),
        };
        Some(Found {
            row: found[index],
            number: index + 1,
            total: found.len(),
        })
    }
}

/// Byte ranges at which `wanted` occurs in a line. The search ignores case unless `wanted` contains uppercase letters.
pub(super) fn matches(line: &str, wanted: &str) -> Vec<std::ops::Range<usize>> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let case_sensitive = wanted.chars().any(char::is_uppercase);
    let same = |a: char, b: char| a == b || (!case_sensitive && a.to_lowercase().eq(b.to_lowercase()));
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
        let item = |(id, rows): &(u64, usize)| {
            let rows = (0..*rows).map(|row| Row::from(Line::from(format!("{id}.{row}"))));
            Rc::new(DocumentItem {
                id: *id,
                rows: rows.collect(),
            })
        };
        Document::new(sizes.iter().map(item).collect())
    }

    #[test]
    fn scroll_position_survives_changes_of_other_items() {
        let before = document(&[(0, 10), (1, 10), (2, 10)]);
        let scroll = before.scroll_to(14, 5);
        assert_eq!(scroll, Scroll::At { item: 1, row: 4 });
        let rewrapped = document(&[(0, 20), (1, 10), (2, 30)]);
        assert_eq!(rewrapped.top(scroll, 5), 24);
        let first_removed = document(&[(1, 10), (2, 30)]);
        assert_eq!(first_removed.top(scroll, 5), 4);
        let item_removed = document(&[(2, 30)]);
        assert_eq!(item_removed.top(scroll, 5), 0);
    }

    #[test]
    fn scroll_end_follows_a_growing_document() {
        assert_eq!(document(&[(0, 30)]).scroll_to(25, 5), Scroll::End);
        assert_eq!(document(&[(0, 90)]).top(Scroll::End, 5), 85);
        assert_eq!(document(&[]).top(Scroll::End, 5), 0);
        assert_eq!(document(&[(0, 2)]).top(Scroll::START, 5), 0);
    }

    #[test]
    fn rows_and_matches_are_found_across_items() {
        let document = document(&[(3, 2), (4, 0), (7, 3)]);
        let shown: Vec<String> = document
            .rows(1, 3)
            .map(|(id, row)| format!("{id}:{}", row.line))
            .collect();
        assert_eq!(shown, ["3:3.1", "7:7.0", "7:7.1"]);
        assert_eq!(document.row_range(7), Some((2, 5)));
        assert_eq!(document.neighbor(Some(3), 0, Direction::Down), Some(7));
        assert_eq!(document.neighbor(Some(7), 0, Direction::Down), Some(7));
        assert_eq!(document.neighbor(None, 1, Direction::Up), Some(3));
        assert_eq!(document.neighbor(None, 4, Direction::Up), Some(7));
        let find = |wanted: &str, from: usize, direction: Direction| {
            let found = document.find(wanted, from, direction)?;
            Some((found.row, found.number, found.total))
        };
        assert_eq!(find("7.", 2, Direction::Down), Some((3, 2, 3)));
        assert_eq!(find("7.", 4, Direction::Down), Some((2, 1, 3)));
        assert_eq!(find("3.1", 4, Direction::Up), Some((1, 1, 1)));
        assert_eq!(find("nothing", 4, Direction::Up), None);
        assert_eq!(document.item_at(1), Some(3));
        assert_eq!(document.item_at(99), Some(7));
    }

    #[test]
    fn search_uses_smart_case() {
        assert_eq!(matches("Ärger, ÄRGER", "ärger"), [0..6, 8..14]);
        assert_eq!(
            matches("error Error", "Error"),
            std::iter::once(6..11).collect::<Vec<_>>()
        );
        assert_eq!(matches("aaa", "aa"), [0..2, 1..3]);
    }
}
