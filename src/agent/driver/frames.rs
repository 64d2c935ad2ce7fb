//! Parses the output of the host script: NUL-terminated fields, grouped into frames. Counts in the data are not
//! trusted.

/// One message of the host script.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Hello {
        bash: String,
    },
    /// The named hook, or the script itself (`source`), is about to run.
    Begin(String),
    Text {
        hook: String,
        status: u32,
        text: Vec<u8>,
    },
    Flag {
        hook: String,
        status: u32,
    },
    Done {
        hook: String,
        status: u32,
    },
    Has(String),
    Missing(String),
    Array {
        name: String,
        items: Vec<Vec<u8>>,
    },
    End,
}

/// Parses all complete frames. Stops at a truncated or unknown frame.
pub(super) fn parse(bytes: &[u8]) -> Vec<Frame> {
    let mut parser = FrameParser { rest: bytes };
    let mut frames = Vec::new();
    while let Some(frame) = parser.frame() {
        frames.push(frame);
    }
    frames
}

struct FrameParser<'a> {
    rest: &'a [u8],
}

impl<'a> FrameParser<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.rest)?;
        let field = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(field)
    }

    fn word(&mut self) -> Option<String> {
        self.next()
            .map(|field| String::from_utf8_lossy(field).into_owned())
    }

    fn number(&mut self) -> Option<u32> {
        self.word()?.parse().ok()
    }

    fn frame(&mut self) -> Option<Frame> {
        Some(match self.next()? {
            b"ralph-driver" => {
                self.next().filter(|version| *version == b"1")?;
                Frame::Hello { bash: self.word()? }
            }
            b"begin" => Frame::Begin(self.word()?),
            b"text" => Frame::Text {
                hook: self.word()?,
                status: self.number()?,
                text: self.next()?.to_vec(),
            },
            b"flag" => Frame::Flag {
                hook: self.word()?,
                status: self.number()?,
            },
            b"done" => Frame::Done {
                hook: self.word()?,
                status: self.number()?,
            },
            b"has" => Frame::Has(self.word()?),
            b"missing" => Frame::Missing(self.word()?),
            b"array" => {
                let name = self.word()?;
                let count = self.number()?;
                let items: Option<Vec<_>> = (0..count).map(|_| self.next().map(<[u8]>::to_vec)).collect();
                Frame::Array { name, items: items? }
            }
            b"end" => Frame::End,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_frames_are_parsed_and_a_truncated_one_is_dropped() {
        let bytes = b"ralph-driver\x001\x005.2\0begin\0source\0array\0A\x002\0x\0\0text\0h\x000\0\xff\n\0arr";
        let frames = parse(bytes);
        assert_eq!(frames.len(), 4);
        assert_eq!(
            frames[2],
            Frame::Array {
                name: "A".into(),
                items: vec![b"x".to_vec(), Vec::new()]
            }
        );
        assert_eq!(
            frames[3],
            Frame::Text {
                hook: "h".into(),
                status: 0,
                text: b"\xff\n".to_vec()
            }
        );
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn item_count_is_not_trusted(count: u32) {
            let bytes = format!("array\0A\0{count}\0x\0");
            let frames = parse(bytes.as_bytes());
            proptest::prop_assert_eq!(frames.len(), usize::from(count <= 1));
        }
    }
}
