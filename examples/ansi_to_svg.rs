//! Converts a terminal screen with colors (the output of `tmux capture-pane -pe` on stdin) to SVG on stdout. The argument is
//! the number of columns (default 110).

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::num::NonZeroU16;

const COLUMN: f32 = 8.4;
const ROW: f32 = 18.0;
const MARGIN: f32 = 14.0;
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d6d9e0";
/// The eight base colors, chosen for this background.
const COLORS: [&str; 8] = [
    "#3b4048", "#f07178", "#a3d977", "#f2c55c", "#82aaff", "#c792ea", "#6fd3e3", "#d6d9e0",
];

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let rows = text.lines().count().max(1);
    let columns = std::env::args().nth(1).and_then(|columns| columns.parse().ok());
    let columns: usize = columns.unwrap_or(110);
    let size =
        |number: usize| NonZeroU16::new(u16::try_from(number).unwrap_or(80)).unwrap_or(NonZeroU16::MIN);
    let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
    parser.process(text.trim_end_matches('\n').replace('\n', "\r\n").as_bytes());
    std::io::stdout().write_all(svg(parser.screen(), rows, columns).as_bytes())
}

#[expect(clippy::cast_precision_loss, reason = "a screen is small")]
fn svg(screen: &vt100::Screen, rows: usize, columns: usize) -> String {
    let (width, height) = (
        columns as f32 * COLUMN + 2.0 * MARGIN,
        rows as f32 * ROW + 2.0 * MARGIN,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\">\n<title>ralph</title>\n<rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"{BACKGROUND}\"/>\n"
    );
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            let style = |column: usize| cell(screen, row, column).map(cell_style);
            let from = column;
            let mut piece = String::new();
            while column < columns && style(column) == style(from) {
                let contents = cell(screen, row, column)
                    .map(vt100::Cell::contents)
                    .unwrap_or_default();
                piece.push_str(if contents.is_empty() { " " } else { contents });
                column += 1;
            }
            if let Some(style) = style(from) {
                draw(&mut svg, &piece, style, (from, row));
            }
        }
    }
    svg + "</svg>\n"
}

fn cell(screen: &vt100::Screen, row: usize, column: usize) -> Option<&vt100::Cell> {
    screen.cell(u16::try_from(row).ok()?, u16::try_from(column).ok()?)
}

#[derive(Clone, Copy, PartialEq)]
struct CellStyle {
    color: &'static str,
    bold: bool,
    dim: bool,
    italic: bool,
    reversed: bool,
}

fn cell_style(cell: &vt100::Cell) -> CellStyle {
    let color = match cell.fgcolor() {
        vt100::Color::Idx(index) => COLORS[usize::from(index % 8)],
        vt100::Color::Default | vt100::Color::Rgb(..) => FOREGROUND,
    };
    CellStyle {
        color,
        bold: cell.bold(),
        dim: cell.dim(),
        italic: cell.italic(),
        reversed: cell.inverse(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a screen is small")]
fn draw(svg: &mut String, text: &str, cell: CellStyle, (column, row): (usize, usize)) {
    let columns = text.chars().count() as f32;
    let (x, y) = (MARGIN + column as f32 * COLUMN, MARGIN + row as f32 * ROW);
    if cell.reversed {
        let width = columns * COLUMN;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{ROW}\" fill=\"{}\"/>",
            cell.color
        );
    }
    let shown = text.trim_end();
    if shown.is_empty() {
        return;
    }
    let indent = shown.chars().take_while(|c| *c == ' ').count();
    let shown = shown
        .trim_start()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let x = x + indent as f32 * COLUMN;
    let length = (text.trim_end().chars().count() - indent) as f32 * COLUMN;
    let mut style = format!("fill=\"{}\"", if cell.reversed { BACKGROUND } else { cell.color });
    for (on, attribute) in [
        (cell.bold, " font-weight=\"bold\""),
        (cell.dim, " opacity=\"0.6\""),
        (cell.italic, " font-style=\"italic\""),
    ] {
        style.push_str(if on { attribute } else { "" });
    }
    let baseline = y + 13.5;
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{baseline:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" {style}>{shown}</text>"
    );
}
