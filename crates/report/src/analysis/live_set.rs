//! What is alive at one position, by site, by kind and by stack.

use std::collections::HashMap;

use super::lives::Lives;
use super::sites::{SiteId, Sites};
use crate::kind::Kind;
use crate::stacks::StackId;

/// Bytes and how many allocations they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Requested bytes.
    pub bytes: u64,
    /// Allocations.
    pub count: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.count += 1;
    }
}

/// What is alive at one position. Lists are in falling order of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveSet {
    /// The position.
    pub position: u32,
    /// Everything.
    pub total: Amount,
    /// By the user's own line.
    pub by_site: Vec<(SiteId, Amount)>,
    /// By kind, in the order of [`Kind::ALL`], kinds without bytes left out.
    pub by_kind: Vec<(Kind, Amount)>,
    /// By whole stack.
    pub by_stack: Vec<(StackId, Amount)>,
}

impl LiveSet {
    /// Groups what is alive at `position`.
    pub fn at(lives: &Lives, sites: &Sites, position: u32) -> LiveSet {
        let mut set = LiveSet { position, ..LiveSet::default() };
        let mut kinds = [Amount::default(); Kind::ALL.len()];
        let mut stacks: HashMap<StackId, Amount> = HashMap::new();
        for life in lives.alive_at(position) {
            let bytes = lives.bytes[life];
            set.total.add(bytes);
            kinds[lives.kind[life].index()].add(bytes);
            stacks.entry(lives.stack[life]).or_default().add(bytes);
        }
        let mut by_site: HashMap<SiteId, Amount> = HashMap::new();
        for (stack, amount) in &stacks {
            let site = by_site.entry(sites.of_stack(*stack)).or_default();
            site.bytes = site.bytes.saturating_add(amount.bytes);
            site.count += amount.count;
        }
        set.by_site = by_site.into_iter().collect();
        set.by_site.sort_by_key(|(site, amount)| (std::cmp::Reverse(amount.bytes), *site));
        set.by_stack = stacks.into_iter().collect();
        set.by_stack.sort_by_key(|(stack, amount)| (std::cmp::Reverse(amount.bytes), *stack));
        let kinds = Kind::ALL.into_iter().zip(kinds);
        set.by_kind = kinds.filter(|(_, amount)| amount.count > 0).collect();
        set
    }
}
