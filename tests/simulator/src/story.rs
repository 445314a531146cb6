//! What happens, from a seed: groups with their rules, routes, hosts, and everything that befalls them.

use std::fmt::Write as _;
use std::time::Duration;

use fastrand::Rng;

use crate::cib::Kind;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const MINUTES: i64 = 60_000;
const TEN_YEARS: i64 = 10 * 365 * 24 * 60 * MINUTES;
/// Clocks of controllers that keep time differ by less than this, in milliseconds.
const SET_MOST: i64 = 2_000;

/// What every configuration says of hosts.
const HOSTS: &str = "[hosts]\ndomain = \"example.org\"\non-shared-storage = true\n";

/// One route and its receiver.
#[derive(Default)]
pub(crate) struct RouteOf {
    pub(crate) name: String,
    /// Its receiver says later whether it has the mark.
    pub(crate) confirms_later: bool,
    /// It asks what became of what it sent, and reports that a host is back.
    pub(crate) goes_on: bool,
    if_returned: &'static str,
    /// Milliseconds that an exchange takes.
    pub(crate) pace: u64,
}

/// How an endpoint takes what it gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    #[default]
    Takes,
    /// The connection is refused.
    Refuses,
    /// No answer in time; what was sent has arrived all the same, or has not.
    TimesOut,
    /// It says that it cannot now.
    Busy,
    /// It takes no mark until somebody changes something.
    Denies,
}

/// What somebody writes who can write the register and is no alerter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// An open mark has ended, says a controller that does not exist.
    Ends,
    /// The host of an open mark is back; it is not.
    Returns,
    /// The next fencing has a mark already, of another name.
    OtherName,
    /// The same, on other disks.
    OtherDisks,
    /// A host that lives was fenced.
    Lives,
    /// The same, in many years.
    Future,
    /// Everything is paused.
    Pauses,
    /// An open mark is released.
    Releases,
}

impl Forgery {
    /// Where there is a key.
    pub(crate) const UNSEALED: [Self; 8] = [
        Self::Ends,
        Self::Returns,
        Self::OtherName,
        Self::OtherDisks,
        Self::Lives,
        Self::Future,
        Self::Pauses,
        Self::Releases,
    ];
    pub(crate) const ALL: [Self; 6] =
        [Self::Ends, Self::Returns, Self::OtherName, Self::OtherDisks, Self::Lives, Self::Future];
}

/// How many hosts of a group may be down before marks are held.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Limit {
    /// Any number.
    #[default]
    None,
    AtMost(u32),
    /// So many of a hundred; a fraction of a host is none.
    Percent(u32),
    /// Within these, both included.
    Range(u32, u32),
}

impl Limit {
    fn line(self) -> String {
        match self {
            Self::None => String::new(),
            Self::AtMost(most) => format!("max-unhealthy = {most}\n"),
            Self::Percent(share) => format!("max-unhealthy = \"{share}%\"\n"),
            Self::Range(low, high) => format!("unhealthy-range = \"[{low}-{high}]\"\n"),
        }
    }

    pub(crate) fn allows(self, down: usize, size: usize) -> bool {
        match self {
            Self::None => true,
            Self::AtMost(most) => down <= most as usize,
            Self::Percent(share) => down <= share as usize * size / 100,
            Self::Range(low, high) => down == 0 || (low as usize..=high as usize).contains(&down),
        }
    }
}

/// A group of hosts and its rules, as the configuration says them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) limit: Limit,
    /// The limit must have been kept for so long before a storm ends, and none holds a mark longer than `max_hold`.
    pub(crate) cooldown: Duration,
    pub(crate) max_hold: Duration,
    /// A host counts that failed no longer ago; none means for ever.
    pub(crate) window: Option<Duration>,
    /// So long after its host failed a mark is sent.
    pub(crate) deliver_after: Duration,
    /// So long a host must be back before that counts.
    pub(crate) healthy_delay: Duration,
    /// How many hosts' marks may be sent at once.
    pub(crate) at_once: Option<u32>,
    /// Probes are asked about a host before its mark is sent.
    pub(crate) is_asked: bool,
}

impl Group {
    fn new(name: String) -> Self {
        Self { name, max_hold: Duration::from_secs(3600), ..Self::default() }
    }
}

/// Something that befalls the cloud.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A host dies and is fenced; where nobody runs `fence_mark`, only Pacemaker knows. One that is down is fenced again.
    Fences { host: usize, by: Option<usize> },
    /// A host is connected again, by a controller. That is unseen where the cluster has forgotten it when anybody looks.
    Returns { host: usize, to: usize, unseen: bool },
    /// An endpoint changes its mood.
    Turns { route: usize, mood: Mood },
    /// It does not take these hosts' messages; of none, it takes everybody's again.
    Rejects { route: usize, hosts: Vec<usize> },
    /// attrd has lost everything, or all but one in so many entries.
    Empties { all_but_one_in: Option<u8> },
    /// `fence_mark` keeps the register up on every controller.
    Monitors,
    /// Somebody who can write the register writes what is not so.
    Forges { forgery: Forgery, host: usize, rank: usize },
    /// The alerter is killed at this point of its next pass; the next one starts on a controller, or where it was.
    Dies { cut: Cut, to: Option<usize> },
    /// A controller's power fails.
    Loses { controller: usize },
    /// It is back.
    Finds,
    /// Nothing is sent of everybody, or of a group, for so many milliseconds at most.
    Pauses { group: Option<usize>, limit: Option<u64> },
    /// The oldest pause ends.
    Resumes,
    /// A host is worked on, or a whole group.
    Maintains { host: Option<usize>, group: usize, limit: u64 },
    /// The oldest maintenance ends.
    EndsMaintenance,
    /// An operator lets go the oldest mark but so many.
    Releases { rank: usize },
    /// The same of a group.
    ReleasesGroup { group: usize },
    /// An operator ends the oldest mark but so many.
    Unmarks { rank: usize },
    /// A host has the attribute that asks not to report it, or has it no more.
    Skips { host: usize, is_skipped: bool },
    /// The wall clock is set.
    SetsClock { by: i64 },
    /// The wall clock of one controller is set.
    Jumps { controller: usize, by: i64 },
    /// A row of the oldest mark but so many is damaged.
    Damages { rank: usize },
    /// Of the register one entry in so many is missing, and it is seen that something is.
    Lacks { one_in: u8 },
    /// It is there again.
    Heals,
    /// The register is empty, and the alerter starts on a controller whose journal is.
    Replaces { controller: usize },
    /// Nothing can be written on the disk of the alerter's controller, or of one so many behind it: it hangs, or is full for some of
    /// what is written.
    Jams { behind: usize, hangs: bool },
    /// It can be written again.
    Frees,
}

/// Where an alerter is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// What was fenced is folded, and the policy was not asked yet.
    BeforePolicy,
    /// The policy's holds are written, and the register lacks what is new.
    BeforeRegister,
    /// Attempts have begun in the journal, and nothing was sent.
    BeforeSending,
    /// They are on their way.
    Sent,
    /// Answers have come and are not on record.
    BeforeRecord,
    /// Nowhere: what it wanted to write could not be written, and it goes on.
    Unwritten,
}

impl Cut {
    const ALL: [Self; 5] =
        [Self::BeforePolicy, Self::BeforeRegister, Self::BeforeSending, Self::Sent, Self::BeforeRecord];
}

/// A whole story.
#[derive(Default)]
pub struct Story {
    pub(crate) seed: u64,
    /// The configuration but for `[store]`.
    pub settings: String,
    /// Each with its group, by the order of the configuration.
    pub(crate) hosts: Vec<(String, usize)>,
    pub(crate) groups: Vec<Group>,
    pub(crate) routes: Vec<RouteOf>,
    /// In order, by milliseconds since the beginning.
    pub(crate) events: Vec<(u64, Event)>,
    /// When everything works again and hosts come to rest.
    pub(crate) rest: u64,
    /// Whether the wall clock is ever set.
    pub(crate) sets_clock: bool,
    /// By how many milliseconds the clocks of the controllers are ahead.
    pub(crate) skews: [i64; 3],
    /// Root seals the register, and nobody else writes there.
    pub(crate) has_key: bool,
    /// What hosts are to the cluster; those without an entry are remote nodes.
    pub(crate) kinds: Vec<Kind>,
}

/// How large a cloud may be.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// How long they last.
    pub hours: u64,
    /// How many hosts there are at most.
    pub most_hosts: usize,
    /// 1: clocks differ, registers are lost or lack parts, entries forged, hosts are cluster nodes, disks hang or are full, and endpoints
    /// refuse some hosts; 2: clocks are
    /// wrong by up to ten years, too, and the cluster forgets returns; 3: they are set, too. Not every seed holds yet.
    pub hard: u64,
}

impl Story {
    /// The story of a seed.
    ///
    /// # Panics
    /// There is no hour.
    pub fn new(seed: u64, scale: Scale) -> Self {
        let mut rng = Rng::with_seed(mix(seed));
        let rest = scale.hours * HOUR;
        let routes = routes(&mut rng);
        let sizes = sizes(&mut rng, scale);
        let mut hosts = Vec::new();
        let mut groups = Vec::new();
        let mut settings = HOSTS.to_owned();
        for (group, size) in sizes.iter().enumerate() {
            let name = if group + 1 == sizes.len() { "default".to_owned() } else { format!("g{group}") };
            hosts.extend((0..*size).map(|at| (format!("r{group}-h{at}"), group)));
            let (own, table) = table_of(&mut rng, (name, group, *size), &routes);
            settings.push_str(&table);
            groups.push(own);
        }
        routes.iter().for_each(|route| settings.push_str(&route_table(route)));
        let mut story = Self {
            seed,
            settings,
            hosts,
            groups,
            routes,
            rest,
            sets_clock: rng.u8(..4) == 0,
            ..Self::default()
        };
        story.happen(&mut rng);
        if scale.hard > 0 {
            story.surround(&mut Rng::with_seed(mix(seed ^ 0x0dd_ba11)));
        }
        if scale.hard > 1 {
            story.mistake(&mut Rng::with_seed(mix(seed ^ 0x00c1_0c45)));
        }
        if scale.hard > 0 {
            story.lack(&mut Rng::with_seed(mix(seed ^ 0x1acc)));
        }
        if scale.hard > 2 && story.has_key {
            story.jump(&mut Rng::with_seed(mix(seed ^ 0x0001_04d5)));
        }
        story.events.sort_by_key(|(at, _)| *at);
        story
    }

    /// One group of hosts, half a dozen of whom the one route does not take, or none; all fail within a second.
    pub fn of_rejected(hosts: usize, rejected: usize) -> Self {
        let names = (0..hosts).map(|at| (format!("h{at}"), 0)).collect();
        let route =
            RouteOf { name: "route0".into(), if_returned: "deliver", pace: 100, ..RouteOf::default() };
        let settings = HOSTS.to_owned() + &route_table(&route);
        let fences = |host| (60_000 + 20 * host as u64, Event::Fences { host, by: Some(host % 3) });
        let rejects = (1_000, Event::Rejects { route: 0, hosts: (0..rejected).collect() });
        Self {
            settings,
            hosts: names,
            groups: vec![Group::new("default".into())],
            routes: vec![route],
            events: std::iter::once(rejects).chain((0..hosts).map(fences)).collect(),
            rest: 20 * MINUTE,
            ..Self::default()
        }
    }

    /// A few hosts and one route that calls hosts back, which may have each failure and says of none that it has; an operator ends
    /// half of the marks. Then the hosts are back; the other half fails again while its returns wait, and is back for good.
    pub fn of_returns(hosts: usize) -> Self {
        let mut story = Self::of_rejected(hosts, 0);
        story.routes[0].goes_on = true;
        story.settings = HOSTS.to_owned() + &route_table(&story.routes[0]);
        let each = |at: u64, event: fn(usize) -> Event| {
            (0..hosts).map(move |host| (at + 20 * host as u64, event(host)))
        };
        let fences = |host| Event::Fences { host, by: Some(host % 3) };
        let returns = |host| Event::Returns { host, to: host % 3, unseen: false };
        let moods = [(50_000, Mood::TimesOut), (2 * MINUTE, Mood::Refuses), (20 * MINUTE, Mood::Takes)];
        let mut events = moods.map(|(at, mood)| (at, Event::Turns { route: 0, mood })).to_vec();
        events.extend(each(MINUTE, fences));
        events.extend((0..hosts / 2).map(|_| (3 * MINUTE, Event::Unmarks { rank: 0 })));
        events.extend(each(5 * MINUTE, returns));
        events.extend(each(15 * MINUTE, fences).skip(hosts / 2));
        events.extend(each(40 * MINUTE, returns).skip(hosts / 2));
        events.sort_by_key(|(at, _)| *at);
        Self { events, rest: HOUR, ..story }
    }

    /// By how many milliseconds two controllers' clocks differ at most.
    pub(crate) fn differ(&self) -> u64 {
        let [first, second, third] = self.skews;
        let jumps = self.events.iter().map(|(_, event)| match event {
            Event::Jumps { by, .. } => by.unsigned_abs(),
            _ => 0,
        });
        first.max(second).max(third).abs_diff(first.min(second).min(third)) + jumps.sum::<u64>()
    }

    pub(crate) fn has(&self, is_meant: fn(&Event) -> bool) -> bool {
        self.events.iter().any(|(_, event)| is_meant(event))
    }

    /// Not every story has everything: rare events must not drown in frequent ones.
    fn happen(&mut self, rng: &mut Rng) {
        let hours = usize::try_from(self.rest / HOUR).unwrap();
        for _ in 0..rng.usize(1..=2 * hours) {
            self.single(rng);
        }
        for _ in 0..rng.usize(0..=2) {
            self.rack(rng);
        }
        for _ in 0..rng.usize(0..=2) {
            self.flaps(rng);
        }
        for _ in 0..rng.usize(0..=3) {
            self.outage(rng);
        }
        self.operators(rng, hours);
        self.controllers(rng, hours);
    }

    /// What the cluster and others do to the alerter: a story has little of it, and most have something.
    fn surround(&mut self, rng: &mut Rng) {
        if rng.u8(..4) == 0 {
            self.skews = [0; 3].map(|_: i64| rng.i64(-59_000..=60_000));
        }
        if rng.u8(..4) == 0 {
            self.have_cluster_nodes(rng);
        }
        if rng.u8(..3) == 0 {
            let (route, at) = (rng.usize(..self.routes.len()), self.at(rng));
            let hosts = (0..rng.usize(3..10)).map(|_| self.host(rng)).collect();
            self.add(at, Event::Rejects { route, hosts });
            self.add(at + rng.u64(HOUR..2 * HOUR), Event::Rejects { route, hosts: Vec::new() });
        }
        if rng.u8(..4) == 0 {
            for _ in 0..rng.usize(1..=3) {
                let at = self.at(rng);
                self.add(at, Event::Empties { all_but_one_in: rng.bool().then(|| rng.u8(2..5)) });
                self.add(at + rng.u64(1_000..10 * MINUTE), Event::Monitors);
            }
        }
        if rng.u8(..3) == 0 {
            for _ in 0..rng.usize(1..=6) {
                let (at, host, rank) = (self.at(rng), self.host(rng), rng.usize(..6));
                self.add(at, Event::Forges { forgery: *rng.choice(&Forgery::ALL).unwrap(), host, rank });
            }
        }
    }

    /// Controllers whose clocks are wrong and which have a key, and returns of which the cluster forgets the connection.
    fn mistake(&mut self, rng: &mut Rng) {
        if rng.u8(..3) == 0 {
            self.has_key = true;
            self.events.retain(|(_, event)| !matches!(event, Event::Forges { .. }));
            self.skews = [0; 3].map(|_: i64| off(rng));
        }
        if rng.u8(..3) == 0 {
            for (_, event) in &mut self.events {
                if let Event::Returns { unseen, .. } = event {
                    *unseen = rng.u8(..4) == 0;
                }
            }
        }
    }

    /// What is missing, and disks that cannot be written, while something happens; with a key also entries that no key seals.
    fn lack(&mut self, rng: &mut Rng) {
        let busy = self.events[rng.usize(..self.events.len())].0;
        let (at, controller) = (busy.saturating_sub(rng.u64(..20_000)).max(1), rng.usize(..3));
        let later = at + *rng.choice(&[20_000, 5 * MINUTE, HOUR]).unwrap();
        match rng.u8(..8) {
            // Only sealed heads show that something is missing.
            0 | 1 => {
                self.has_key = true;
                self.events.retain(|(_, event)| !matches!(event, Event::Forges { .. }));
                self.add(at, Event::Lacks { one_in: rng.u8(1..4) });
                self.add(at + rng.u64(1_000..MINUTE), Event::Dies { cut: Cut::Sent, to: Some(controller) });
                self.add(later, Event::Heals);
            }
            2 => self.add(at, Event::Replaces { controller }),
            3..=5 => {
                self.add(at, Event::Jams { behind: rng.usize(..4) / 3, hangs: rng.bool() });
                self.add(later, Event::Frees);
            }
            _ => {}
        }
        for _ in 0..if self.has_key { rng.usize(..6) } else { 0 } {
            let (at, host, rank) = (self.at(rng), self.host(rng), rng.usize(..6));
            let forgery = *rng.choice(&Forgery::UNSEALED).unwrap();
            self.add(at, Event::Forges { forgery, host, rank });
        }
    }

    /// Clocks of controllers that are set far away.
    fn jump(&mut self, rng: &mut Rng) {
        for _ in 0..rng.usize(1..=4) {
            let at = self.at(rng);
            self.add(at, Event::Jumps { controller: rng.usize(..3), by: off(rng) });
        }
    }

    /// Hosts that run the cluster too, which the configuration has to name.
    fn have_cluster_nodes(&mut self, rng: &mut Rng) {
        let kind = if rng.bool() { Kind::Flag } else { Kind::Epoch };
        let few = |_| if rng.u8(..3) == 0 { kind } else { Kind::Remote };
        self.kinds = self.hosts.iter().map(few).collect();
        let own = self.hosts.iter().zip(&self.kinds).filter(|(_, kind)| **kind != Kind::Remote);
        let own: Vec<&str> = own.map(|((name, _), _)| name.as_str()).chain(["r*"]).collect();
        self.settings = self.settings.replacen("[hosts]\n", &format!("[hosts]\nmatch = {own:?}\n"), 1);
    }

    fn at(&self, rng: &mut Rng) -> u64 {
        rng.u64(30_000..self.rest)
    }

    fn add(&mut self, at: u64, event: Event) {
        if at < self.rest {
            self.events.push((at, event));
        }
    }

    fn host(&self, rng: &mut Rng) -> usize {
        rng.usize(..self.hosts.len())
    }

    fn single(&mut self, rng: &mut Rng) {
        let (host, at) = (self.host(rng), self.at(rng));
        self.fails(rng, host, at);
    }

    /// It fails, is perhaps fenced again, and perhaps returns.
    fn fails(&mut self, rng: &mut Rng, host: usize, at: u64) {
        let by = (rng.u8(..10) > 0).then(|| rng.usize(..3));
        self.add(at, Event::Fences { host, by });
        if rng.u8(..8) == 0 {
            let again = at + rng.u64(2_000..10 * MINUTE);
            self.add(again, Event::Fences { host, by: Some(rng.usize(..3)) });
        }
        if rng.u8(..10) < 7 {
            let longest = if rng.bool() { 10 * MINUTE } else { 3 * HOUR };
            let back = at + rng.u64(40_000..longest);
            self.add(back, Event::Returns { host, to: rng.usize(..3), unseen: false });
        }
    }

    /// Many hosts of a group at once; in part within the same second.
    fn rack(&mut self, rng: &mut Rng) {
        let (group, at) = (rng.usize(..self.groups.len()), self.at(rng));
        let mut own: Vec<usize> = (0..self.hosts.len()).filter(|host| self.hosts[*host].1 == group).collect();
        rng.shuffle(&mut own);
        own.truncate(rng.usize(1..=own.len()).min(1_500));
        let spread = *rng.choice(&[1_000, 20_000, 90_000]).unwrap();
        for host in own {
            let jitter = rng.u64(..spread) / 500 * 500;
            self.fails(rng, host, at + jitter);
        }
    }

    fn flaps(&mut self, rng: &mut Rng) {
        let (host, mut at) = (self.host(rng), self.at(rng));
        for _ in 0..rng.usize(3..10) {
            self.add(at, Event::Fences { host, by: Some(rng.usize(..3)) });
            at += rng.u64(20_000..5 * MINUTE);
            self.add(at, Event::Returns { host, to: rng.usize(..3), unseen: false });
            at += rng.u64(20_000..5 * MINUTE);
        }
    }

    fn outage(&mut self, rng: &mut Rng) {
        let (route, at) = (rng.usize(..self.routes.len()), self.at(rng));
        let end = at + rng.u64(MINUTE..3 * HOUR);
        if rng.u8(..4) == 0 {
            let host = self.host(rng);
            self.add(at, Event::Rejects { route, hosts: vec![host] });
            self.add(end, Event::Rejects { route, hosts: Vec::new() });
            return;
        }
        let moods = [Mood::Refuses, Mood::TimesOut, Mood::Busy, Mood::Denies];
        self.add(at, Event::Turns { route, mood: *rng.choice(&moods).unwrap() });
        self.add(end, Event::Turns { route, mood: Mood::Takes });
    }

    fn operators(&mut self, rng: &mut Rng, hours: usize) {
        for _ in 0..rng.usize(0..=hours) {
            let (at, group) = (self.at(rng), rng.usize(..self.groups.len()));
            let (host, rank) = (self.host(rng), rng.usize(..6));
            let later = at + rng.u64(MINUTE..2 * HOUR);
            match rng.u8(..9) {
                0 | 1 => {
                    let limit = rng.bool().then(|| rng.u64(MINUTE..3 * HOUR));
                    self.add(at, Event::Pauses { group: rng.bool().then_some(group), limit });
                    self.add(later, Event::Resumes);
                }
                2 | 3 => {
                    let host = rng.bool().then_some(host);
                    self.add(at, Event::Maintains { host, group, limit: rng.u64(MINUTE..3 * HOUR) });
                    if rng.bool() {
                        self.add(later, Event::EndsMaintenance);
                    }
                }
                4 => self.add(at, Event::Releases { rank }),
                5 => self.add(at, Event::ReleasesGroup { group }),
                6 => self.add(at, Event::Unmarks { rank }),
                7 => {
                    self.add(at, Event::Skips { host, is_skipped: true });
                    self.add(later, Event::Skips { host, is_skipped: false });
                }
                _ => self.add(at, Event::Damages { rank }),
            }
        }
        if self.sets_clock {
            self.clocks(rng);
        }
    }

    /// Back and forth, and never far from the right time.
    fn clocks(&mut self, rng: &mut Rng) {
        let mut times: Vec<u64> = (0..rng.usize(1..6)).map(|_| self.at(rng)).collect();
        times.sort_unstable();
        let mut set = 0;
        for at in times {
            let next = rng.i64(-SET_MOST..=SET_MOST);
            self.add(at, Event::SetsClock { by: next - set });
            set = next;
        }
    }

    fn controllers(&mut self, rng: &mut Rng, hours: usize) {
        for _ in 0..rng.usize(0..=hours) {
            let at = self.at(rng);
            // Where much happens a kill is more likely to hit something.
            let at = self.events.get(rng.usize(..self.events.len())).map_or(at, |(busy, _)| *busy);
            let at = at + rng.u64(..2_000);
            match rng.u8(..3) {
                0 => {
                    self.add(at, Event::Loses { controller: rng.usize(..3) });
                    self.add(at + rng.u64(MINUTE..HOUR), Event::Finds);
                }
                _ => {
                    let cut = *rng.choice(&Cut::ALL).unwrap();
                    self.add(at, Event::Dies { cut, to: rng.bool().then(|| rng.usize(..3)) });
                }
            }
        }
    }
}

/// By how much a clock is wrong, in milliseconds.
fn off(rng: &mut Rng) -> i64 {
    match rng.u8(..4) {
        0 => 0,
        1 => rng.i64(-2 * MINUTES..=2 * MINUTES),
        2 => rng.i64(-60 * MINUTES..=60 * MINUTES),
        _ => *rng.choice(&[-TEN_YEARS, TEN_YEARS]).unwrap(),
    }
}

fn routes(rng: &mut Rng) -> Vec<RouteOf> {
    let route = |at: usize, rng: &mut Rng| RouteOf {
        name: format!("route{at}"),
        confirms_later: rng.u8(..5) == 0,
        goes_on: rng.u8(..4) == 0,
        if_returned: ["deliver", "deliver", "hold", "cancel"][rng.usize(..4)],
        pace: *rng.choice(&[20, 100, 400, 2_000]).unwrap(),
    };
    (0..rng.usize(1..=4)).map(|at| route(at, rng)).collect()
}

fn sizes(rng: &mut Rng, scale: Scale) -> Vec<usize> {
    // Of a hundred stories one has as many hosts as there may be: it takes as long as all the others.
    let most = match rng.u8(..20) {
        0 if rng.u8(..5) == 0 => scale.most_hosts,
        0 => scale.most_hosts.min(1000),
        1..=4 => scale.most_hosts.min(200),
        _ => scale.most_hosts.min(20),
    };
    let groups = rng.usize(1..=3);
    (0..groups).map(|_| rng.usize(1..=(most / groups).max(1))).collect()
}

fn route_table(route: &RouteOf) -> String {
    let RouteOf { name, if_returned, goes_on, .. } = route;
    let path = if *goes_on { "on" } else { "once" };
    format!("[http.{name}]\nurl = \"http://127.0.0.1:9/{path}\"\nif-returned = \"{if_returned}\"\n")
}

/// Its rules, and its table in the configuration. The last group is everybody else.
fn table_of(rng: &mut Rng, (name, at, size): (String, usize, usize), routes: &[RouteOf]) -> (Group, String) {
    let mut table = format!("[groups.{name}]\n");
    if name != "default" {
        writeln!(table, "hosts = [\"r{at}-*\"]").unwrap();
    }
    table.push_str(&notified(rng, routes));
    let mut group = Group { limit: limit(rng, size), ..Group::new(name) };
    table.push_str(&group.limit.line());
    let mut seconds = |key: &str, one_in: u8, most: u64| {
        let seconds = (rng.u8(..one_in) == 0).then(|| rng.u64(1..=most))?;
        writeln!(table, "{key} = {seconds}").unwrap();
        Some(Duration::from_secs(seconds))
    };
    group.cooldown = seconds("cooldown", 2, 600).unwrap_or_default();
    group.max_hold = seconds("max-hold", 2, 7_200).unwrap_or(group.max_hold);
    group.window = seconds("window", 3, 4 * 3_600);
    group.deliver_after = seconds("deliver-after", 4, 300).unwrap_or_default();
    group.healthy_delay = seconds("healthy-delay", 4, 300).unwrap_or_default();
    let (at_once, line) = match rng.u8(..6) {
        0 | 1 => {
            let most = rng.u32(1..=4);
            (Some(most), format!("max-in-flight = {most}\n"))
        }
        2 => (Some(1), "serial = true\n".to_owned()),
        _ => (None, String::new()),
    };
    group.at_once = at_once;
    table.push_str(&line);
    group.is_asked = rng.u8(..5) == 0;
    if group.is_asked {
        let asks = "confirm.exec.bmc]\ncommand = [\"/bin/false\", \"{nodename}\"]";
        writeln!(table, "[groups.{}.{asks}", group.name).unwrap();
    }
    (group, table)
}

fn notified(rng: &mut Rng, routes: &[RouteOf]) -> String {
    let mut names: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
    rng.shuffle(&mut names);
    names.truncate(rng.usize(1..=names.len()));
    if rng.u8(..3) > 0 {
        return format!("routes = {names:?}\n");
    }
    let link = |name: &&str| format!("{{ route = \"{name}\", timeout = {} }}", rng.u64(60..=900));
    let links: Vec<String> = names.iter().map(link).collect();
    format!("chain = [{}]\n", links.join(", "))
}

fn limit(rng: &mut Rng, size: usize) -> Limit {
    let few = u32::try_from(size).unwrap_or(u32::MAX).min(8);
    match rng.u8(..5) {
        0 => Limit::None,
        1 => Limit::AtMost(rng.u32(0..=few)),
        2 | 3 => {
            // A draw of its own, so that a seed still makes the same story.
            rng.bool();
            Limit::Percent(rng.u32(0..=60))
        }
        _ => {
            let low = rng.u32(0..=2);
            Limit::Range(low, low + rng.u32(0..=few))
        }
    }
}

/// A number that seems random (splitmix64).
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
