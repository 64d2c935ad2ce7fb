//! Agents that draw their own screen: it is displayed, and none of their control sequences reach the terminal.

use super::terminal::Terminal;
use crate::sandbox::Sandbox;

/// Cursor addressing, alternate screen, wide characters, true color and erasing.
const DRAWING: &str = concat!(
    "print \\x1b[?1049h\\x1b[2J\\x1b[3;5H\\x1b[38;2;10;200;30mgreen\\x1b[0m",
    "\\x1b[5;10H\\xe6\\x97\\xa5\\xe6\\x9c\\xac\\xe8\\xaa\\x9e!",
    "\\x1b[7;1Hgone\\x1b[7;1H\\x1b[Kstays\\x1b[1m\\x1b[48;5;21m bold\\x1b[0m\\x1b[1;1H\n",
);

/// Title, clipboard, terminal queries, alternate screen, keyboard modes, colors and reset.
const HOSTILE: &str = concat!(
    "print \\x1b]0;EVILTITLE\\x07\\x1b]2;EVILTITLE\\x1b\\\\\\x1b]52;c;RVZJTA==\\x07\\x1b[c\\x1b[>c\\x1b[6n\\x1b[5n\\x1b[?6n",
    "\\x1b]11;?\\x07\\x1b]4;1;?\\x07\\x1bP+q544e\\x1b\\\\\\x1b_Ga=q\\x1b\\\\\\x1b[18t\\x1b[21t\\x1b[8;5;5t\\x1b[?1000h\\x1b[?1003h\\x1b[>1u",
    "\\x1b[?1049l\\x1bc\\xc2\\x9b6n\\xc2\\x9d0;EVILTITLE\\x07evil was here\\n\n",
);

fn drawing_agent(steps: &str) -> Sandbox {
    Sandbox::new()
        .with_agent("artist")
        .with_script("default", &format!("{steps}hang\n"))
}

#[test]
fn agent_screen_is_displayed_unchanged() {
    let sandbox = drawing_agent(DRAWING);
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go", "--agent-cmd", "artist"], (100, 60));
    terminal.expect("working");
    terminal.keys("8");
    terminal.expect("stays bold");
    let (row, column) = terminal.with_screen(|screen| {
        let rows = screen.rows(0, 100).collect::<Vec<_>>();
        let row = rows.iter().position(|row| row.contains("green")).expect("a row");
        (row, rows[row].find("green").expect("a column"))
    });
    assert_eq!(column, 4, "at the column of the cursor");
    terminal.with_screen(|screen| {
        let at = |down: usize, right: usize| {
            let row = u16::try_from(row + down).expect("a row");
            screen
                .cell(row, u16::try_from(right).expect("a column"))
                .expect("a cell")
        };
        assert_eq!(at(0, 4).fgcolor(), vt100::Color::Rgb(10, 200, 30));
        assert_eq!(at(2, 9).contents(), "日");
        assert!(at(2, 9).is_wide() && at(2, 10).is_wide_continuation());
        assert_eq!(at(2, 11).contents(), "本");
        assert_eq!(at(2, 15).contents(), "!");
        assert_eq!(at(4, 0).contents(), "s");
        assert!(at(4, 6).bold());
        assert_eq!(at(4, 6).bgcolor(), vt100::Color::Idx(21));
    });
    assert!(!terminal.screen().contains("gone"));
    terminal.keys("\x03");
    terminal.ends("exit status: 130");
}

#[test]
fn control_sequences_of_an_agent_do_not_reach_the_terminal() {
    let sandbox = drawing_agent(&format!(
        "{HOSTILE}err \\x1b]0;EVILTITLE\\x07\\x1b[6nbeside\nprint {}",
        &HOSTILE[6..]
    ));
    let terminal = Terminal::start(&sandbox, &["run", "-p", "go", "--agent-cmd", "artist"], (100, 30));
    terminal.expect("evil was here");
    for view in ["1", "o", "2", "3", "4", "5", "6", "1"] {
        terminal.keys(view);
        terminal.wait_until_stable();
    }
    terminal.keys("8");
    terminal.expect("evil was here");
    terminal.keys("\x03");
    terminal.ends("exit status: 130");
    // The only query is ralph's own, for the color of the background.
    let query = b"\x1b]11;?\x07";
    let bytes = terminal.bytes();
    let start = bytes.windows(query.len()).position(|bytes| bytes == query);
    let start = start.expect("the query");
    let bytes = [&bytes[..start], &bytes[start + query.len()..]].concat();
    let forbidden = [
        &b"\x1b]"[..],
        b"\x1bP",
        b"\x1b_",
        b"\x1bc",
        b"\x1b^",
        b"\x1bX",
        b"\xc2\x9b",
        b"\xc2\x9d",
    ];
    for sequence in forbidden {
        let found = bytes.windows(sequence.len()).any(|bytes| bytes == sequence);
        assert!(!found, "{sequence:?}");
    }
    let allowed = b"HmJKlhsr";
    for (kind, sequence) in sequences(&bytes) {
        assert!(allowed.contains(&kind), "unexpected sequence: {sequence:?}");
    }
}

/// Every control sequence with its final byte.
fn sequences(bytes: &[u8]) -> Vec<(u8, String)> {
    let mut found = Vec::new();
    let starts = bytes.windows(2).enumerate().filter(|(_, two)| two == b"\x1b[");
    for (start, _) in starts {
        let rest = &bytes[start + 2..];
        let length = rest.iter().position(|byte| !matches!(byte, 0x20..=0x3f));
        let length = length.expect("a whole sequence");
        let text = String::from_utf8_lossy(&rest[..=length]).into_owned();
        found.push((rest[length], text));
    }
    found
}
