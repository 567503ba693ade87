//! What a table is made from: its spec, its optimizer, who gets a row and who loses it.
//!
//! The text is JSON; unknown keys and values without meaning are refused with the key and what is allowed.

use clickmill_types::schema::{Init, MAX_DIM, TableSpec};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Most buckets that a table may have: 2^12.
pub const MAX_BUCKET_BITS: u32 = 12;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    pub spec: TableSpec,
    /// The table has 2^this buckets; a bucket holds up to 2^24 - 2 rows.
    #[serde(default = "default_bucket_bits")]
    pub bucket_bits: u32,
    #[serde(default)]
    pub optimizer: Optimizer,
    #[serde(default)]
    pub admission: Admission,
    #[serde(default)]
    pub eviction: Eviction,
    /// Keep show and click counts in every row; implied by `eviction.show_click`.
    #[serde(default)]
    pub statistics: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Optimizer {
    Sgd {
        #[serde(default)]
        weight_decay: f32,
    },
    Adagrad {
        #[serde(default)]
        initial_accumulator: f32,
        #[serde(default = "default_adagrad_eps")]
        eps: f32,
        #[serde(default)]
        weight_decay: f32,
    },
    /// One accumulator a row: the mean of the squared gradients.
    RowWiseAdagrad {
        #[serde(default)]
        initial_accumulator: f32,
        #[serde(default = "default_adagrad_eps")]
        eps: f32,
        #[serde(default)]
        weight_decay: f32,
    },
    /// Moments change only in steps that touch the row; bias correction by the table's step.
    LazyAdam {
        #[serde(default = "default_beta1")]
        beta1: f32,
        #[serde(default = "default_beta2")]
        beta2: f32,
        #[serde(default = "default_adam_eps")]
        eps: f32,
        #[serde(default)]
        weight_decay: f32,
    },
    /// Equal to dense Adam: steps that did not touch the row are made up for on touch or read.
    Adam {
        #[serde(default = "default_beta1")]
        beta1: f32,
        #[serde(default = "default_beta2")]
        beta2: f32,
        #[serde(default = "default_adam_eps")]
        eps: f32,
        #[serde(default)]
        weight_decay: f32,
    },
    /// FTRL-proximal, per coordinate; the learning rate is the paper's alpha.
    Ftrl {
        #[serde(default = "default_ftrl_beta")]
        beta: f32,
        #[serde(default)]
        l1: f32,
        #[serde(default)]
        l2: f32,
        #[serde(default = "default_lr_power")]
        lr_power: f32,
        #[serde(default)]
        initial_accumulator: f32,
    },
}

impl Default for Optimizer {
    fn default() -> Self {
        Self::RowWiseAdagrad {
            initial_accumulator: 0.0,
            eps: default_adagrad_eps(),
            weight_decay: 0.0,
        }
    }
}

/// Which signs get a row. A sighting is one training lookup that contains the sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Admission {
    #[default]
    Always,
    /// At the `at`-th sighting, as counted by a sketch of 2^`sketch_bits` bytes that ages.
    Count {
        at: u32,
        #[serde(default = "default_sketch_bits")]
        sketch_bits: u32,
    },
    /// Each sighting admits with probability `p`, drawn from (seed, sign, step).
    Probability { p: f64 },
}

/// Which rows go at a fence; rules are applied in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Eviction {
    /// Rows that no update has touched for more steps than this.
    #[serde(default)]
    pub ttl_steps: Option<u32>,
    #[serde(default)]
    pub show_click: Option<ShowClick>,
    /// Rows beyond this go, the lowest score first, or the longest untouched without show-click.
    #[serde(default)]
    pub max_rows: Option<u64>,
    /// The same, for the bytes of rows and index.
    #[serde(default)]
    pub max_bytes: Option<u64>,
}

/// score = `show_coefficient` * (show - click) + `click_coefficient` * click.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowClick {
    #[serde(default = "default_show_coefficient")]
    pub show_coefficient: f32,
    #[serde(default = "one")]
    pub click_coefficient: f32,
    /// Shows and clicks are multiplied by this at every fence that evicts.
    #[serde(default = "default_decay")]
    pub decay: f32,
    /// Rows with a score below this go.
    #[serde(default = "default_threshold")]
    pub threshold: f32,
}

fn default_bucket_bits() -> u32 {
    6
}
fn default_adagrad_eps() -> f32 {
    1e-10
}
fn default_adam_eps() -> f32 {
    1e-8
}
fn default_beta1() -> f32 {
    0.9
}
fn default_beta2() -> f32 {
    0.999
}
fn default_ftrl_beta() -> f32 {
    1.0
}
fn default_lr_power() -> f32 {
    -0.5
}
fn default_sketch_bits() -> u32 {
    22
}
fn default_show_coefficient() -> f32 {
    0.1
}
fn one() -> f32 {
    1.0
}
fn default_decay() -> f32 {
    0.98
}
fn default_threshold() -> f32 {
    0.8
}

impl TableConfig {
    /// A table with every default.
    pub fn new(spec: TableSpec) -> Self {
        Self {
            spec,
            bucket_bits: default_bucket_bits(),
            optimizer: Optimizer::default(),
            admission: Admission::default(),
            eviction: Eviction::default(),
            statistics: false,
        }
    }

    pub fn from_json(text: &str) -> Result<Self, Error> {
        let config: Self = serde_json::from_str(text)
            .map_err(|error| Error::config("table configuration", error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a configuration holds only strings and finite numbers")
    }

    pub fn has_statistics(&self) -> bool {
        self.statistics || self.eviction.show_click.is_some()
    }

    pub fn check(&self) -> Result<(), Error> {
        let place = format!("table `{}`", self.spec.name);
        let check = Check { place: &place };
        check.within("dim", self.spec.dim, 1, MAX_DIM)?;
        check.within("bucket_bits", self.bucket_bits, 0, MAX_BUCKET_BITS)?;
        match self.spec.init {
            Init::Zeros => {}
            Init::Uniform { scale } => check.not_negative("init.scale", scale)?,
            Init::Normal { std } => check.not_negative("init.std", std)?,
        }
        self.optimizer.check(&check)?;
        match self.admission {
            Admission::Always => {}
            Admission::Count { at, sketch_bits } => {
                check.within("admission.at", at, 1, 255)?;
                check.within("admission.sketch_bits", sketch_bits, 8, 30)?;
            }
            Admission::Probability { p } => {
                if !(p > 0.0 && p <= 1.0) {
                    return check.fail(format!("admission.p is {p}; allowed: above 0, up to 1"));
                }
            }
        }
        self.eviction.check(&check)
    }
}

impl Optimizer {
    fn check(&self, check: &Check<'_>) -> Result<(), Error> {
        match *self {
            Self::Sgd { weight_decay } => check.not_negative("optimizer.weight_decay", weight_decay),
            Self::Adagrad {
                initial_accumulator,
                eps,
                weight_decay,
            }
            | Self::RowWiseAdagrad {
                initial_accumulator,
                eps,
                weight_decay,
            } => {
                check.not_negative("optimizer.initial_accumulator", initial_accumulator)?;
                check.not_negative("optimizer.weight_decay", weight_decay)?;
                check.positive("optimizer.eps", eps)
            }
            Self::LazyAdam {
                beta1,
                beta2,
                eps,
                weight_decay,
            }
            | Self::Adam {
                beta1,
                beta2,
                eps,
                weight_decay,
            } => {
                check.below_one("optimizer.beta1", beta1)?;
                check.below_one("optimizer.beta2", beta2)?;
                check.not_negative("optimizer.weight_decay", weight_decay)?;
                check.positive("optimizer.eps", eps)
            }
            Self::Ftrl {
                beta,
                l1,
                l2,
                lr_power,
                initial_accumulator,
            } => {
                check.not_negative("optimizer.beta", beta)?;
                check.not_negative("optimizer.l1", l1)?;
                check.not_negative("optimizer.l2", l2)?;
                check.not_negative("optimizer.initial_accumulator", initial_accumulator)?;
                if !(-1.0..=0.0).contains(&lr_power) {
                    return check.fail(format!("optimizer.lr_power is {lr_power}; allowed: -1 to 0"));
                }
                Ok(())
            }
        }
    }
}

impl Eviction {
    fn check(&self, check: &Check<'_>) -> Result<(), Error> {
        if let Some(rule) = self.show_click {
            check.not_negative("eviction.show_click.show_coefficient", rule.show_coefficient)?;
            check.not_negative("eviction.show_click.click_coefficient", rule.click_coefficient)?;
            check.not_negative("eviction.show_click.threshold", rule.threshold)?;
            if !(rule.decay > 0.0 && rule.decay <= 1.0) {
                return check.fail(format!(
                    "eviction.show_click.decay is {}; allowed: above 0, up to 1",
                    rule.decay
                ));
            }
        }
        Ok(())
    }
}

struct Check<'a> {
    place: &'a str,
}

impl Check<'_> {
    fn fail(&self, reason: String) -> Result<(), Error> {
        Err(Error::config(self.place, reason))
    }

    fn within(&self, key: &str, value: u32, low: u32, high: u32) -> Result<(), Error> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        self.fail(format!("{key} is {value}; allowed: {low} to {high}"))
    }

    fn not_negative(&self, key: &str, value: f32) -> Result<(), Error> {
        if value.is_finite() && value >= 0.0 {
            return Ok(());
        }
        self.fail(format!("{key} is {value}; allowed: a finite number, 0 or more"))
    }

    fn positive(&self, key: &str, value: f32) -> Result<(), Error> {
        if value.is_finite() && value > 0.0 {
            return Ok(());
        }
        self.fail(format!("{key} is {value}; allowed: a finite number above 0"))
    }

    fn below_one(&self, key: &str, value: f32) -> Result<(), Error> {
        if (0.0..1.0).contains(&value) {
            return Ok(());
        }
        self.fail(format!("{key} is {value}; allowed: 0 up to, not including, 1"))
    }
}
