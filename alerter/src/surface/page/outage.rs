//! One outage on a page of its own: the rows of `show`.

use std::time::Duration;

use maud::{DOCTYPE, Markup, html};

use crate::outage::{Kept, Moment, Times};
use crate::surface::markup::sent;
use crate::words::{length, utc};

/// The whole document.
pub(super) fn draw(kept: &Kept) -> String {
    let (outage, node) = (kept.outage(), &kept.mark.node);
    let times = outage.times();
    sent(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="stylesheet" href="/page.css";
                title { (node) ": outage of " (utc(kept.mark.failure_time)) }
            }
            body {
                p id="bar" { a href="/" { "nova-host-alerter" } " · mark " code { (kept.mark.id) } }
                main {
                    h1 { (node) " failed at " (utc(kept.mark.failure_time)) }
                    @if let Some(instances) = kept.instances() { p id="instances" { (instances.what) } }
                    (downtime(&times))
                    (rows(&outage.timeline()))
                }
            }
        }
    })
}

fn downtime(times: &Times) -> Markup {
    html! {
        @if let Some(seconds) = times.downtime {
            p id="downtime" { "Downtime: " b { (length(Duration::from_secs(seconds))) } }
        }
    }
}

fn rows(timeline: &[Moment]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Timeline" {
            table id="timeline" {
                thead { tr { @for name in ["Time", "After", "Event", "What", "Who"] { th scope="col" { (name) } } } }
                tbody {
                    @for one in timeline {
                        tr {
                            td { (utc(one.at)) }
                            td { (one.since_failure()) }
                            td { (one.event) }
                            td { (one.sentence()) }
                            td { (one.by) }
                        }
                    }
                }
            }
        }
    }
}
