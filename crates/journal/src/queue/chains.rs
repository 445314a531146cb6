//! Escalation chains in the journal: this file writes what [`marks::chain::next`] decides.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Row, Transaction, params_from_iter};

use crate::queue::deliveries::move_to;
use crate::queue::delivery_row;
use crate::queue::due::DueDelivery;
use crate::row::{self, mark_of};
use crate::store::digest::{Damage, raw_text};
use crate::{Done, Journal, Writing, Wrote};
use marks::chain::{self, CHAIN, Link, Next, Seen, Step, Why};
use marks::delivery::{Attempt, Delivery, State};
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;

/// How many chains advance in one transaction: `fence_mark` waits for each.
const PAGE: usize = 64;

/// Whether the policy lets a mark be sent.
type MayGo<'a> = &'a dyn Fn(MarkId) -> bool;
/// Whether a route is configured.
type IsThere<'a> = &'a dyn Fn(&str) -> bool;
/// The open steps of marks.
type Chains = Vec<(MarkId, Vec<Seen>)>;

/// The result of advancing chains.
#[derive(Clone, Debug, Default)]
pub struct Advanced {
    /// The steps whose turn it is now, since the one before was refused, its time ended, or it is gone.
    pub escalated: Vec<DueDelivery>,
    /// The last steps of chains without another step: each stays, and is retried forever.
    pub exhausted: Vec<DueDelivery>,
}

impl Journal {
    /// Advances chains: from a step that was refused or whose time has ended to the next one, never during an attempt,
    /// and never to a step whose route `is_there` does not know. `may_go` says whether the policy lets a mark be sent;
    /// the clock of a held mark is stopped, and so is that of a doubtful one. Without a change nothing is written, and
    /// only an index is read of each open chain: it may be called before every turn. Damaged steps are quarantined on the
    /// way; the next [`Self::turn`] reports them.
    ///
    /// # Errors
    /// As any write. What was not written is still to be done.
    pub fn advance_chains(
        &mut self,
        may_go: MayGo<'_>,
        is_there: IsThere<'_>,
        now: Timestamp,
    ) -> Done<Advanced> {
        let chains = self.sqlite(self.open_chains(None, is_there))?;
        self.advance_some(chains, may_go, is_there, now)
    }

    /// The same for the chains that may have something to do: those written here since the last call, those whose step's
    /// time is over, and those of `changed`, on which the policy has changed its mind. The cost depends on these alone.
    /// It does not know of earlier writes before the journal was opened, nor of a clock that was set back: then
    /// [`Self::advance_chains`] serves for all.
    ///
    /// # Errors
    /// As [`Self::advance_chains`].
    pub fn advance_stirred(
        &mut self,
        changed: &[MarkId],
        may_go: MayGo<'_>,
        is_there: IsThere<'_>,
        now: Timestamp,
    ) -> Done<Advanced> {
        let mut marks = self.stirred(now)?;
        marks.extend(changed);
        let mut chains = Vec::new();
        for mark in &marks {
            chains.extend(self.sqlite(self.open_chains(Some(*mark), is_there))?);
        }
        let advanced = self.advance_some(chains, may_go, is_there, now)?;
        self.sqlite(self.forget_stirred(&marks))?;
        Ok(advanced)
    }

    fn advance_some(
        &mut self,
        chains: Chains,
        may_go: MayGo<'_>,
        is_there: IsThere<'_>,
        now: Timestamp,
    ) -> Done<Advanced> {
        let mut advanced = Advanced::default();
        for page in self.stirring(chains, may_go, now)?.chunks(PAGE) {
            let (part, damaged) = self.write_at(now, |writing| {
                let (mut part, mut damaged) = (Advanced::default(), Vec::new());
                for chain in page {
                    writing.advance(*chain, is_there, &mut part, &mut damaged)?;
                }
                Ok((part, damaged))
            })?;
            advanced.escalated.extend(part.escalated);
            advanced.exhausted.extend(part.exhausted);
            self.met.extend(damaged);
        }
        Ok(advanced)
    }

    /// When the next step's time ends after `now`, the time of the last [`Self::advance_chains`]. A step with an attempt
    /// in flight waits for its end, however long.
    ///
    /// # Errors
    /// As any read.
    pub fn next_step(&self, now: Timestamp) -> Done<Option<Timestamp>> {
        let sql = "SELECT min(step_until) FROM delivery INDEXED BY delivery_step_until
             WHERE step_until IS NOT NULL AND exhausted_at IS NULL AND state IN ('pending', 'parked', 'held')
               AND last_kind IS NOT 'chain' AND step_until > ?1";
        let found = self.list(sql, [now.0], |row| row.get::<_, Option<i64>>(0))?;
        Ok(found.into_iter().flatten().next().map(Timestamp))
    }

    /// The marks whose chains may have something to do, with whether they may be sent. The index decides nothing else.
    fn stirring(&self, chains: Chains, may_go: MayGo<'_>, now: Timestamp) -> Done<Vec<(MarkId, bool)>> {
        let mut stirring = Vec::new();
        for (mark, steps) in chains {
            let goes = may_go(mark);
            if chain::next(&steps, goes, now) == Next::Stay {
                continue;
            }
            // A mark with a damaged row is not sent.
            let Some(Ok(row)) = self.find_mark(mark)? else { continue };
            let goes = goes && row.standing.doubt().is_none();
            if chain::next(&steps, goes, now) != Next::Stay {
                stirring.push((mark, goes));
            }
        }
        Ok(stirring)
    }

    /// The marks that were written since they were last read, and those whose current step's time has ended.
    fn stirred(&self, now: Timestamp) -> Done<BTreeSet<MarkId>> {
        let over = "SELECT mark FROM delivery INDEXED BY delivery_step_until
             WHERE step_until IS NOT NULL AND exhausted_at IS NULL AND state IN ('pending', 'parked', 'held')
               AND last_kind IS NOT 'chain' AND step_until <= ?1";
        let mut marks = BTreeSet::new();
        for (sql, given) in [(over, &[now.0][..]), ("SELECT mark FROM temp.stirred", &[])] {
            marks.extend(self.list(sql, params_from_iter(given), mark_of)?.into_iter().flatten());
        }
        Ok(marks)
    }

    fn forget_stirred(&self, marks: &BTreeSet<MarkId>) -> rusqlite::Result<()> {
        let mut forget = self.connection.prepare_cached("DELETE FROM temp.stirred WHERE mark = ?1")?;
        marks.iter().try_for_each(|mark| forget.execute([mark.to_string()]).map(drop))
    }

    /// The open steps of every mark, or of one.
    fn open_chains(&self, only: Option<MarkId>, is_there: IsThere<'_>) -> rusqlite::Result<Chains> {
        let one = if only.is_some() { "AND mark = ?1" } else { "" };
        let sql = format!(
            "SELECT mark, step, step_limit, step_until, step_left, exhausted_at, state, last_kind, route
             FROM delivery INDEXED BY delivery_chain
             WHERE step IS NOT NULL AND state NOT IN ('acknowledged', 'dismissed', 'cancelled') {one} ORDER BY mark"
        );
        let mut query = self.connection.prepare_cached(&sql)?;
        let mut rows = query.query(params_from_iter(only.map(|mark| mark.to_string())))?;
        let mut chains: Chains = Vec::new();
        let mut last = Vec::new();
        while let Some(row) = rows.next()? {
            let text = raw_text(row, 0)?;
            if text != last || chains.is_empty() {
                let Some(mark) = mark_of(row)? else { continue };
                chains.push((mark, Vec::new()));
                last = text;
            }
            if let Some((_, steps)) = chains.last_mut() {
                steps.extend(raw(row, is_there));
            }
        }
        Ok(chains)
    }
}

/// A step from its row; `None` if the row is not consistent.
fn raw(row: &Row<'_>, is_there: IsThere<'_>) -> Option<Seen> {
    let number = |at: usize| row.get::<_, Option<i64>>(at).ok();
    let time = |at: i64| u64::try_from(at).ok().map(Duration::from_millis);
    let state = State::parse(&row.get::<_, String>(6).ok()?)?;
    let kind: Option<String> = row.get(7).ok()?;
    let link = Link { step: u32::try_from(number(1)??).ok()?, timeout: time(number(2)??)? };
    let step = Step {
        link,
        until: number(3)?.map(Timestamp),
        left: number(4)?.and_then(time),
        exhausted_at: number(5)?.map(Timestamp),
    };
    let is_there = row.get::<_, String>(8).is_ok_and(|route| is_there(&route));
    Some(Seen { step, state, waits: state == State::Held && kind.as_deref() == Some(CHAIN), is_there })
}

impl Writing<'_> {
    fn advance(
        self,
        (mark, may_go): (MarkId, bool),
        is_there: IsThere<'_>,
        advanced: &mut Advanced,
        damaged: &mut Vec<Damage>,
    ) -> Wrote {
        let Some(row) = row::load(&self, mark)? else { return Ok(()) };
        let Some(mut steps) = self.load_steps(mark, damaged)? else { return Ok(()) };
        let seen: Vec<Seen> = steps.iter().filter_map(|step| step.seen(is_there(&step.route))).collect();
        match chain::next(&seen, may_go, self.now) {
            Next::Stay => {}
            Next::Run(at) => set(&self, &mut steps[at], |step| step.run(self.now))?,
            Next::Stop(at) => set(&self, &mut steps[at], |step| step.stop(self.now))?,
            Next::Escalate { from, to, why } => {
                self.escalate((&mut steps, from, to), why)?;
                advanced.escalated.push(DueDelivery { mark: row, delivery: steps.swap_remove(to) });
            }
            Next::Exhaust(at, why) => {
                set(&self, &mut steps[at], |step| step.exhausted_at = Some(self.now))?;
                self.note_exhausted(&row, &steps[at], why)?;
                advanced.exhausted.push(DueDelivery { mark: row, delivery: steps.swap_remove(at) });
            }
            Next::End => {
                let sent = steps.iter().find(|step| step.state == State::Acknowledged);
                if let Some(sent) = sent {
                    self.settle_if_done(sent)?;
                }
            }
        }
        Ok(())
    }

    /// The steps of a mark's chain. `None` if a damaged row says that it is in flight: it may be, and is awaited. Another
    /// damaged row is quarantined, and is not among the steps.
    fn load_steps(self, mark: MarkId, damaged: &mut Vec<Damage>) -> Wrote<Option<Vec<Delivery>>> {
        let mut steps = Vec::new();
        for (route, state) in raw_states(&self, mark)? {
            // Such a row belongs to no route.
            let (Ok(route), Ok(state)) = (String::from_utf8(route), String::from_utf8(state)) else {
                continue;
            };
            match delivery_row::find(&self, (&mark.to_string(), &route))? {
                Some(Ok(delivery)) => steps.extend(Some(delivery).filter(|d| d.chain.is_some())),
                Some(Err(_)) if state == State::InFlight.as_str() => return Ok(None),
                Some(Err(damage)) => {
                    self.quarantine((&mark.to_string(), &route), &damage)?;
                    if state != State::Quarantined.as_str() {
                        damaged.push(damage);
                    }
                }
                None => {}
            }
        }
        Ok(Some(steps))
    }

    /// The step that was left is held, and the other one may be sent from now on.
    fn escalate(self, (steps, from, to): (&mut [Delivery], Option<usize>, usize), why: Why) -> Wrote {
        let next = steps[to].route.clone();
        let ended = from.map_or_else(|| reason(None, why), |from| reason(Some(&steps[from]), why));
        let detail = format!("{ended}; route {next} is next");
        if let Some(from) = from {
            let left = &mut steps[from];
            if left.state != State::Held {
                move_to(left, State::Held)?;
            }
            left.last = Some(Attempt { at: self.now, kind: CHAIN.to_owned(), detail: detail.clone() });
            set(&self, left, |step| step.leave(self.now))?;
            self.note(left, "escalated", &detail)?;
        }
        let begun = &mut steps[to];
        move_to(begun, State::Pending)?;
        // Its earlier answer, or its wait, says nothing of its route now.
        (begun.next_due, begun.last) = (self.now, None);
        set(&self, begun, |step| {
            *step = Step::new(step.link);
            step.run(self.now);
        })?;
        let detail = format!("route {next} is notified now: {ended}");
        self.note(begun, "escalated", &detail)
    }

    fn note_exhausted(self, mark: &MarkRow, last: &Delivery, why: Why) -> Wrote {
        let ended = reason(Some(last), why);
        let detail = format!("no step of {}'s chain is left: {ended}; it is retried forever", mark.node);
        self.note(last, "exhausted", &detail)
    }
}

/// Routes and states as raw values.
fn raw_states(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut query = transaction.prepare_cached("SELECT route, state FROM delivery WHERE mark = ?1")?;
    query.query_map([mark.to_string()], |row| Ok((raw_text(row, 0)?, raw_text(row, 1)?)))?.collect()
}

fn set(transaction: &Transaction<'_>, delivery: &mut Delivery, change: impl FnOnce(&mut Step)) -> Wrote {
    delivery.chain.as_mut().map(change);
    Ok(delivery_row::update(transaction, delivery)?)
}

/// How the turn of the step that was left ended.
fn reason(left: Option<&Delivery>, why: Why) -> String {
    let Some(left) = left else { return "the previous step has ended or is damaged".to_owned() };
    let route = &left.route;
    let last = left.last.as_ref().map_or("no answer", |last| last.kind.as_str());
    let limit = left.chain.map_or(0, |step| step.link.timeout.as_secs());
    match why {
        Why::Missing => format!("route {route} is not configured any more"),
        Why::Refused => format!("route {route} refused it ({last})"),
        Why::TimeOut | Why::Gone => format!("route {route} did not acknowledge it within {limit} s ({last})"),
    }
}

#[cfg(test)]
mod tests;
