//! The row of a delivery: its columns, its digest, how it is read and written.

use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use crate::store::digest::{Checked, Damage, of_row, text, with_digest};
use crate::store::stirred::stir;
use marks::chain::{Link, Step};
use marks::delivery::{Arrivals, Attempt, Delivery, State};
use marks::id::MarkId;
use marks::time::Timestamp;

/// How many columns [`COLUMNS`] has before the digest.
const DIGEST: usize = 22;

pub(crate) const COLUMNS: &str = "d.mark, d.route, d.state, d.body, d.attempts, d.ambiguous, d.next_due, d.last_at, d.last_kind, d.last_detail, d.reference, d.ended_at, d.required, d.failure_time, d.released_at, d.step, d.step_limit, d.step_until, d.step_left, d.exhausted_at, d.reached, d.targets, d.digest";

/// A delivery `d` that waits, in the words of `delivery_waiting`.
pub(crate) const WAITING: &str = "d.state IN ('pending', 'parked')";
/// One that is held and asked again at a time of its own: its endpoint's side keeps it back, and not its route's terms.
pub(crate) const ASKED_AGAIN: &str = "d.state = 'held' AND d.last_kind <> 'chain' AND d.next_due > d.last_at";
/// One in flight, in the words of `delivery_in_flight`.
pub(crate) const UNDER_WAY: &str = "d.state IN ('in-flight', 'held')";
/// One that is a step behind an acknowledgement ([`Delivery::is_return`]).
pub(crate) const IS_STEP: &str = "instr(d.route, '.') > 0";

/// The row of a key, which may be damaged.
pub(crate) fn find(
    transaction: &Transaction<'_>,
    (mark, route): (&str, &str),
) -> rusqlite::Result<Option<Checked<Delivery>>> {
    let sql = format!("SELECT {COLUMNS} FROM delivery d WHERE d.mark = ?1 AND d.route = ?2");
    let mut query = transaction.prepare_cached(&sql)?;
    query.query_row([mark, route], |row| Ok(decode(row, 0))).optional()
}

/// The same, without a damaged row.
pub(crate) fn load(
    transaction: &Transaction<'_>,
    mark: MarkId,
    route: &str,
) -> rusqlite::Result<Option<Delivery>> {
    Ok(find(transaction, (&mark.to_string(), route))?.and_then(Result::ok))
}

/// All deliveries of a mark, damaged ones too.
pub(crate) fn load_all(
    transaction: &Transaction<'_>,
    mark: MarkId,
) -> rusqlite::Result<Vec<Checked<Delivery>>> {
    let sql = format!("SELECT {COLUMNS} FROM delivery d WHERE d.mark = ?1");
    let mut query = transaction.prepare_cached(&sql)?;
    query.query_map([mark.to_string()], |row| Ok(decode(row, 0)))?.collect()
}

/// The other deliveries of its mark, damaged ones too.
pub(crate) fn load_others(
    transaction: &Transaction<'_>,
    d: &Delivery,
) -> rusqlite::Result<Vec<Checked<Delivery>>> {
    let sql = format!("SELECT {COLUMNS} FROM delivery d WHERE d.mark = ?1 AND d.route <> ?2");
    let mut query = transaction.prepare_cached(&sql)?;
    query.query_map(params![d.mark.to_string(), d.route], |row| Ok(decode(row, 0)))?.collect()
}

/// Writes the columns that may change: neither the bytes nor the place in the order.
pub(crate) fn update(transaction: &Transaction<'_>, d: &Delivery) -> rusqlite::Result<()> {
    let sql = "UPDATE delivery SET state = ?3, attempts = ?5, ambiguous = ?6, next_due = ?7, last_at = ?8, last_kind = ?9, last_detail = ?10, reference = ?11, ended_at = ?12, required = ?13, released_at = ?15, step_until = ?18, step_left = ?19, exhausted_at = ?20, reached = ?21, targets = ?22, digest = ?23 WHERE mark = ?1 AND route = ?2";
    write(transaction, sql, d)
}

/// Runs a statement with all columns.
fn write(transaction: &Transaction<'_>, sql: &str, d: &Delivery) -> rusqlite::Result<()> {
    transaction.prepare_cached(sql)?.execute(with_digest("delivery", columns(d)))?;
    if d.chain.is_some() { stir(transaction, &d.mark.to_string()) } else { Ok(()) }
}

/// A present row stays, with its state: its mark was lost, and is made again.
pub(crate) fn insert(transaction: &Transaction<'_>, d: &Delivery) -> rusqlite::Result<()> {
    let sql = "INSERT INTO delivery VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)
         ON CONFLICT (mark, route) DO NOTHING";
    write(transaction, sql, d)
}

/// All columns but the digest.
fn columns(d: &Delivery) -> Vec<Value> {
    let (last, step) = (d.last.as_ref(), d.chain);
    vec![
        d.mark.to_string().into(),
        text(&d.route),
        text(d.state.as_str()),
        d.body.clone().into(),
        d.attempts.into(),
        d.ambiguous.into(),
        d.next_due.0.into(),
        last.map(|l| l.at.0).into(),
        last.map(|l| text(&l.kind)).into(),
        last.map(|l| text(&l.detail)).into(),
        d.reference.clone().into(),
        d.ended_at.map(|at| at.0).into(),
        d.required.into(),
        d.failure_time.0.into(),
        d.released_at.map(|at| at.0).into(),
        step.map(|step| step.link.step).into(),
        step.map(|step| milliseconds(step.link.timeout)).into(),
        step.and_then(|step| step.until).map(|at| at.0).into(),
        step.and_then(|step| step.left).map(milliseconds).into(),
        step.and_then(|step| step.exhausted_at).map(|at| at.0).into(),
        d.arrivals.attempts.into(),
        joined(&d.arrivals.targets).into(),
    ]
}

/// A line for each.
fn joined(targets: &[String]) -> String {
    targets.iter().flat_map(|target| [target.as_str(), "\n"]).collect()
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Reads the columns of [`COLUMNS`], which begin at column `first`.
pub(crate) fn decode(row: &Row<'_>, first: usize) -> Checked<Delivery> {
    let damage = || {
        let text = |at: usize| row.get::<_, String>(first + at).unwrap_or_default();
        let printable = |s: String| s.chars().filter(char::is_ascii_graphic).take(64).collect::<String>();
        Damage::of_delivery(&printable(text(0)), &printable(text(1)))
    };
    let delivery = decode_unchecked(row, first).ok_or_else(damage)?;
    let kept: Vec<u8> = row.get(first + DIGEST).map_err(|_| damage())?;
    if kept == of_row("delivery", &columns(&delivery)) { Ok(delivery) } else { Err(damage()) }
}

fn decode_unchecked(row: &Row<'_>, first: usize) -> Option<Delivery> {
    let at: Option<i64> = row.get(first + 7).ok()?;
    let kind: Option<String> = row.get(first + 8).ok()?;
    let detail: Option<String> = row.get(first + 9).ok()?;
    let ended: Option<i64> = row.get(first + 11).ok()?;
    let last = match (at, kind, detail) {
        (Some(at), Some(kind), Some(detail)) => Some(Attempt { at: Timestamp(at), kind, detail }),
        (None, None, None) => None,
        _ => return None,
    };
    Some(Delivery {
        mark: MarkId::parse(&row.get::<_, String>(first).ok()?).ok()?,
        route: row.get(first + 1).ok()?,
        required: row.get(first + 12).ok()?,
        state: State::parse(&row.get::<_, String>(first + 2).ok()?)?,
        body: row.get(first + 3).ok()?,
        attempts: row.get(first + 4).ok()?,
        ambiguous: row.get(first + 5).ok()?,
        next_due: Timestamp(row.get(first + 6).ok()?),
        last,
        reference: row.get(first + 10).ok()?,
        ended_at: ended.map(Timestamp),
        failure_time: Timestamp(row.get(first + 13).ok()?),
        released_at: row.get::<_, Option<i64>>(first + 14).ok()?.map(Timestamp),
        chain: step(row, first + 15)?,
        arrivals: Arrivals {
            attempts: row.get(first + 20).ok()?,
            targets: row.get::<_, String>(first + 21).ok()?.lines().map(str::to_owned).collect(),
        },
    })
}

/// The outer `None` means that the columns do not fit each other.
fn step(row: &Row<'_>, first: usize) -> Option<Option<Step>> {
    let number = |at: usize| row.get::<_, Option<i64>>(first + at).ok();
    let time = |at: i64| Some(Duration::from_millis(u64::try_from(at).ok()?));
    match (number(0)?, number(1)?, number(2)?, number(3)?, number(4)?) {
        (None, None, None, None, None) => Some(None),
        (Some(order), Some(limit), until, left, exhausted) => Some(Some(Step {
            link: Link { step: u32::try_from(order).ok()?, timeout: time(limit)? },
            until: until.map(Timestamp),
            left: left.map(time).map_or(Some(None), |left| left.map(Some))?,
            exhausted_at: exhausted.map(Timestamp),
        })),
        _ => None,
    }
}
