//! The beginning and the end of a long output.

/// The beginning and the end of an output of any length.
#[derive(Default)]
pub(super) struct Excerpt {
    head: Vec<u8>,
    tail: Vec<u8>,
    omitted: u64,
}

/// How much of each end is kept.
const EXCERPT: usize = 32 * 1024;

impl Excerpt {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (to_head, rest) = bytes.split_at(bytes.len().min(EXCERPT - self.head.len()));
        self.head.extend_from_slice(to_head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * EXCERPT {
            let gone = self.tail.len() - EXCERPT;
            self.tail.drain(..gone);
            self.omitted += gone as u64;
        }
    }

    pub(super) fn text(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        match self.omitted {
            0 => format!("{head}{tail}"),
            bytes => format!("{head}\n[… {bytes} bytes omitted …]\n{tail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept_and_the_gap_is_named() {
        let mut excerpt = Excerpt::default();
        excerpt.push(b"first\n");
        for _ in 0..100 {
            excerpt.push(&[b'x'; 10_000]);
        }
        excerpt.push(b"\nlast");
        let text = excerpt.text();
        assert!(text.starts_with("first\n") && text.ends_with("\nlast"));
        assert!(text.contains("bytes omitted") && text.len() < 4 * EXCERPT);
    }
}
