//! Where a reader shows repositories: in the projects that list them, and on cards of their own.

use std::collections::{BTreeMap, BTreeSet};

use crate::coordinate::Coordinate;
use crate::id::PublicKey;

/// A repository that is there, by its newest announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoHead {
    /// Its coordinate.
    pub coordinate: Coordinate,
    /// Who keeps it beside its owner.
    pub maintainers: Vec<PublicKey>,
    /// Whether this viewer does not want to see it.
    pub is_hidden: bool,
}

/// A project that is there, by its newest version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectHead {
    /// Its coordinate; the author is who signed it.
    pub coordinate: Coordinate,
    /// Its members.
    pub members: BTreeSet<Coordinate>,
    /// Whether it is marked `unlisted`.
    pub is_unlisted: bool,
    /// Whether this viewer does not want to see it.
    pub is_hidden: bool,
}

/// A project as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Container {
    /// The project.
    pub project: Coordinate,
    /// Its members, and whether each is there.
    pub members: BTreeMap<Coordinate, bool>,
}

/// What is shown where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// The projects.
    pub containers: BTreeSet<Container>,
    /// The repositories that have a card of their own.
    pub cards: BTreeSet<Coordinate>,
}

/// Places repositories. All of both must be given: a page that is missing would put cards where none belong.
///
/// A project that is listed and not hidden shows its members, those that are not there as such. It takes a
/// repository's own card away only if its author owns or maintains the repository. A hidden repository is
/// shown nowhere.
pub fn place(repos: &[RepoHead], projects: &[ProjectHead]) -> Placement {
    let heads: BTreeMap<_, _> = repos.iter().map(|repo| (&repo.coordinate, repo)).collect();
    let mut placement = Placement::default();
    let mut claimed = BTreeSet::new();
    for project in projects.iter().filter(|project| !project.is_unlisted && !project.is_hidden) {
        let mut members = BTreeMap::new();
        for member in &project.members {
            let head = heads.get(member);
            if head.is_some_and(|repo| repo.is_hidden) {
                continue;
            }
            members.insert(member.clone(), head.is_some());
            if head.is_some_and(|repo| repo.is_kept_by(&project.coordinate.pubkey)) {
                claimed.insert(member);
            }
        }
        placement.containers.insert(Container { project: project.coordinate.clone(), members });
    }
    let free = repos.iter().filter(|repo| !repo.is_hidden && !claimed.contains(&repo.coordinate));
    placement.cards = free.map(|repo| repo.coordinate.clone()).collect();
    placement
}

impl RepoHead {
    fn is_kept_by(&self, key: &PublicKey) -> bool {
        self.coordinate.pubkey == *key || self.maintainers.contains(key)
    }
}
