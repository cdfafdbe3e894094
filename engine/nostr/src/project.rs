//! Projects (kind 30621, NIP-MP): which events are one, and where a reader shows repositories.

mod placement;

pub use placement::{place, Container, Placement, ProjectHead, RepoHead};

use std::collections::BTreeSet;

use crate::coordinate::Coordinate;
use crate::event::{Event, Tag};
use crate::kind::REPO;

/// The most members of a project.
pub const MAX_MEMBERS: usize = 64;
/// The tags of which there is at most one, and the longest value of each in bytes.
pub const METADATA: [(&str, usize); 4] =
    [("name", 256), ("description", 2_048), ("buzz-channel", 256), ("buzz-visibility", 256)];

/// Why an event is no project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectError {
    /// None or several `d` tags.
    #[error("a project needs exactly one d tag, got {0}")]
    IdentifierCount(usize),
    /// An empty `d` tag.
    #[error("a project's d tag must not be empty")]
    IdentifierEmpty,
    /// Too many members.
    #[error("a project has at most {MAX_MEMBERS} members, got {0}")]
    MemberCount(usize),
    /// A member tag of the wrong length.
    #[error("a member tag has two or three elements, got {0}")]
    MemberElements(usize),
    /// A member that is no repository's coordinate.
    #[error("a member must be {REPO}:<64 lower-case hex>:<identifier>, got {0:?}")]
    Member(String),
    /// A member twice.
    #[error("the member {0} is there twice")]
    MemberTwice(Coordinate),
    /// A tag of which there may be one.
    #[error("a project has at most one {0} tag")]
    MetadataCount(&'static str),
    /// A value that is too long.
    #[error("a project's {name} has at most {limit} bytes, got {got}")]
    MetadataLength {
        /// The tag.
        name: &'static str,
        /// The most bytes.
        limit: usize,
        /// The value's.
        got: usize,
    },
}

impl ProjectError {
    /// The rule's name in NIP-MP.
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::IdentifierCount(_) => "d-cardinality",
            Self::IdentifierEmpty => "d-empty",
            Self::MemberCount(_) => "member-cap",
            Self::MemberElements(_) => "member-tag-arity",
            Self::Member(_) => "member-coordinate-malformed",
            Self::MemberTwice(_) => "member-duplicate",
            Self::MetadataCount(_) => "metadata-cardinality",
            Self::MetadataLength { .. } => "metadata-length",
        }
    }
}

/// Checks the tags of a project and gives its members. Members are counted before they are compared, so that
/// no more than the most are ever held. Unknown tags and the content are not looked at.
pub fn members(event: &Event) -> Result<BTreeSet<Coordinate>, ProjectError> {
    check_identifier(event)?;
    for (name, limit) in METADATA {
        check_metadata(event, name, limit)?;
    }
    let count = event.tags_named("a").count();
    if count > MAX_MEMBERS {
        return Err(ProjectError::MemberCount(count));
    }
    let mut members = BTreeSet::new();
    for tag in event.tags_named("a") {
        let member = member(tag)?;
        if let Some(twice) = members.replace(member) {
            return Err(ProjectError::MemberTwice(twice));
        }
    }
    Ok(members)
}

fn check_identifier(event: &Event) -> Result<(), ProjectError> {
    match event.tags_named("d").count() {
        1 if event.identifier().is_empty() => Err(ProjectError::IdentifierEmpty),
        1 => Ok(()),
        count => Err(ProjectError::IdentifierCount(count)),
    }
}

fn check_metadata(event: &Event, name: &'static str, limit: usize) -> Result<(), ProjectError> {
    if event.tags_named(name).count() > 1 {
        return Err(ProjectError::MetadataCount(name));
    }
    match event.tag_value(name).map_or(0, str::len) {
        got if got > limit => Err(ProjectError::MetadataLength { name, limit, got }),
        _ => Ok(()),
    }
}

fn member(tag: &Tag) -> Result<Coordinate, ProjectError> {
    let ([_, text] | [_, text, _]) = tag.as_slice() else {
        return Err(ProjectError::MemberElements(tag.len()));
    };
    let coordinate: Option<Coordinate> = text.parse().ok();
    coordinate
        .filter(|coordinate| coordinate.kind == REPO && !coordinate.identifier.is_empty())
        .ok_or_else(|| ProjectError::Member(text.chars().take(160).collect()))
}
