//! The request to start a child, as it is sent over the control line.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::wire::ControllingTerminal;
use super::{Confinement, ProcessSpec, Supervisors};

/// A program, its arguments, environment and working directory. The streams are sent beside it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SpawnRequest {
    pub(super) terminal: ControllingTerminal,
    /// The fields of the confinement; empty without one.
    pub(super) confinement: Vec<OsString>,
    pub(super) cwd: OsString,
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    /// The complete environment.
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl SpawnRequest {
    pub(super) fn new(spec: &ProcessSpec, terminal: ControllingTerminal, supervisors: &Supervisors) -> Self {
        let changed = &spec.environment;
        let inherited = supervisors.environment().iter();
        let mut environment: Vec<(OsString, OsString)> = inherited
            .filter(|(name, _)| {
                let set = changed.set.iter().any(|(other, _)| other == name);
                !set && !changed.remove.contains(name)
            })
            .cloned()
            .collect();
        environment.extend(changed.set.iter().cloned());
        environment.extend(supervisors.orphans().variable());
        Self {
            terminal,
            confinement: spec
                .confinement
                .as_ref()
                .map(|rules| rules.to_fields())
                .unwrap_or_default(),
            cwd: spec.cwd.clone().into(),
            program: spec.program.clone().into(),
            args: spec.args.clone(),
            environment,
        }
    }

    /// The rules for the child; an error if they are malformed.
    pub(super) fn rules(&self) -> io::Result<Option<Confinement>> {
        match &*self.confinement {
            [] => Ok(None),
            fields => match Confinement::from_fields(fields) {
                Some(rules) => Ok(Some(rules)),
                None => Err(io::ErrorKind::InvalidData.into()),
            },
        }
    }

    /// Encodes the request. A NUL byte is an error, because it ends a string in every system call.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let variables = self.environment.iter().flat_map(|(name, value)| [name, value]);
        let mut texts = [&self.cwd, &self.program]
            .into_iter()
            .chain(&self.args)
            .chain(&self.confinement)
            .chain(variables);
        if texts.any(|text| text.as_bytes().contains(&0)) {
            let why = "nul byte found in provided data";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut bytes = vec![u8::from(self.terminal == ControllingTerminal::Stdout)];
        put_all(&mut bytes, &self.confinement);
        put(&mut bytes, &self.cwd);
        put(&mut bytes, &self.program);
        put_all(&mut bytes, &self.args);
        for (name, value) in &self.environment {
            put(&mut bytes, name);
            put(&mut bytes, value);
        }
        Ok(bytes)
    }

    /// Decodes a request; `None` if it is malformed.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (terminal, mut rest) = bytes.split_first()?;
        let rest = &mut rest;
        let terminal = match terminal {
            0 => ControllingTerminal::None,
            1 => ControllingTerminal::Stdout,
            _ => return None,
        };
        let confinement = texts(rest)?;
        let (cwd, program) = (text(rest)?, text(rest)?);
        let args = texts(rest)?;
        let mut environment = Vec::new();
        while !rest.is_empty() {
            environment.push((text(rest)?, text(rest)?));
        }
        Some(Self {
            terminal,
            confinement,
            cwd,
            program,
            args,
            environment,
        })
    }
}

/// Appends a list, preceded by its length.
fn put_all(bytes: &mut Vec<u8>, texts: &[OsString]) {
    bytes.extend((texts.len() as u64).to_le_bytes());
    texts.iter().for_each(|text| put(bytes, text));
}

/// Appends a string, preceded by its length.
fn put(bytes: &mut Vec<u8>, text: &OsStr) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

fn texts(rest: &mut &[u8]) -> Option<Vec<OsString>> {
    (0..number(rest)?).map(|_| text(rest)).collect()
}

fn text(rest: &mut &[u8]) -> Option<OsString> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(OsString::from_vec(text.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_can_be_decoded_and_a_truncated_one_cannot() {
        let odd = OsString::from_vec(vec![0xff, b'\n', b'x']);
        let request = SpawnRequest {
            terminal: ControllingTerminal::Stdout,
            confinement: vec!["open".into()],
            cwd: "/w".into(),
            program: "sh".into(),
            args: vec!["".into(), odd.clone()],
            environment: vec![("A".into(), odd), ("B".into(), "".into())],
        };
        let bytes = request.encode().unwrap();
        assert_eq!(SpawnRequest::decode(&bytes).as_ref(), Some(&request));
        let prefixes = (0..bytes.len()).filter(|end| SpawnRequest::decode(&bytes[..*end]).is_some());
        // A prefix is complete only if nothing but variables is missing.
        assert_eq!(prefixes.count(), 2);
        assert_eq!(SpawnRequest::decode(b"\x02"), None);
    }
}
