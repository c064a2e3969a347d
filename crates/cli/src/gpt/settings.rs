//! The settings of a run: what decides, with the text, which numbers it computes. A run that is
//! resumed takes them from its file, and what the command line says otherwise is a conflict. Where
//! a run computes, in how much memory and what it tells are no settings: they may change.

use std::fmt;
use std::ops::RangeInclusive;

use clap::ValueEnum;
use plimsoll_nn::saved::Value;

const STEPS: RangeInclusive<u64> = 1..=100_000_000;
const BATCH: RangeInclusive<u64> = 1..=1_000_000;
const CONTEXT: RangeInclusive<u64> = 1..=1_000_000;
const LAYERS: RangeInclusive<u64> = 1..=1000;
const WIDTH: RangeInclusive<u64> = 1..=65_536;
const HEADS: RangeInclusive<u64> = 1..=1024;
const VOCABULARY: RangeInclusive<u64> = 256..=65_536;
const ACCUMULATE: RangeInclusive<u64> = 1..=100_000;

/// A model by its name: what the settings are that nobody gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Model {
    /// One that two cores teach in a minute
    Small,
    /// GPT-2 of 124 million parameters, for a GPU
    Gpt2,
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Model::Small => "small",
            Model::Gpt2 => "gpt2",
        })
    }
}

impl Model {
    fn defaults(self) -> Settings {
        let small = Settings {
            model: self,
            steps: 1000,
            batch: 16,
            context: 128,
            layers: 4,
            width: 128,
            heads: 4,
            vocabulary: 256,
            dropout: 0.0,
            learning_rate: 2e-3,
            accumulate: 1,
            precision: Precision::Float32,
            seed: 0,
        };
        match self {
            Model::Small => small,
            Model::Gpt2 => Settings {
                context: 1024,
                layers: 12,
                width: 768,
                heads: 12,
                vocabulary: 50_304,
                learning_rate: 6e-4,
                precision: Precision::Bfloat16Parameters,
                ..small
            },
        }
    }
}

/// What is computed in which dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    /// Everything in float32
    Float32,
    /// Products in bfloat16, parameters in float32
    Bfloat16,
    /// Everything in bfloat16 but the norms' parameters; the optimizer keeps float32 copies
    Bfloat16Parameters,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::Float32 => "float32",
            Precision::Bfloat16 => "bfloat16",
            Precision::Bfloat16Parameters => "bfloat16-parameters",
        })
    }
}

/// What the command line says of the settings. What it does not say comes from the run that is
/// resumed, or is the default.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GivenSettings {
    /// The model, which the other settings may change [default: small]
    #[arg(long, value_enum)]
    pub(crate) model: Option<Model>,
    /// Steps of the optimizer [default: 1000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(STEPS))]
    pub(crate) steps: Option<u64>,
    /// Windows of text in a batch [default: 16]
    #[arg(long, value_parser = clap::value_parser!(u64).range(BATCH))]
    pub(crate) batch: Option<u64>,
    /// Tokens in a window [default: 128; of gpt2 1024]
    #[arg(long, value_parser = clap::value_parser!(u64).range(CONTEXT))]
    pub(crate) context: Option<u64>,
    /// Blocks of attention [default: 4; of gpt2 12]
    #[arg(long, value_parser = clap::value_parser!(u64).range(LAYERS))]
    pub(crate) layers: Option<u64>,
    /// Elements of a token's vector [default: 128; of gpt2 768]
    #[arg(long, value_parser = clap::value_parser!(u64).range(WIDTH))]
    pub(crate) width: Option<u64>,
    /// Heads of attention, which share the width [default: 4; of gpt2 12]
    #[arg(long, value_parser = clap::value_parser!(u64).range(HEADS))]
    pub(crate) heads: Option<u64>,
    /// Tokens: 256 are bytes, more are pairs that the text teaches [default: 256; of gpt2 50304]
    #[arg(long, value_parser = clap::value_parser!(u64).range(VOCABULARY))]
    pub(crate) vocabulary: Option<u64>,
    /// Probability that an element is dropped in training [default: 0]
    #[arg(long)]
    pub(crate) dropout: Option<f64>,
    /// The highest learning rate [default: 0.002; of gpt2 0.0006]
    #[arg(long, value_parser = learning_rate, allow_negative_numbers = true)]
    pub(crate) learning_rate: Option<f64>,
    /// Batches whose gradients make one step [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u64).range(ACCUMULATE))]
    pub(crate) accumulate: Option<u64>,
    /// What is computed in which dtype [default: float32; of gpt2 bfloat16-parameters]
    #[arg(long, value_enum)]
    pub(crate) precision: Option<Precision>,
    /// Seed of the weights and the batches [default: 0]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

/// A learning rate that trains at all.
fn learning_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate >= 0.0 && rate.is_finite() => Ok(rate),
        _ => Err("a learning rate is a number from 0 up".to_string()),
    }
}

/// See the head of this page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) model: Model,
    pub(crate) steps: u64,
    pub(crate) batch: u64,
    pub(crate) context: u64,
    pub(crate) layers: u64,
    pub(crate) width: u64,
    pub(crate) heads: u64,
    pub(crate) vocabulary: u64,
    pub(crate) dropout: f64,
    pub(crate) learning_rate: f64,
    pub(crate) accumulate: u64,
    pub(crate) precision: Precision,
    pub(crate) seed: u64,
}

impl Settings {
    /// What was given, else what was saved, else the defaults; and where the two disagree, or the
    /// file makes no sense, a line for each.
    pub(crate) fn chosen(given: &GivenSettings, saved: Option<&Value>) -> (Settings, Vec<String>) {
        let mut choice = Choice { saved, conflicts: Vec::new() };
        let model = choice.of("model", given.model, Model::Small, |saved| {
            Model::from_str(saved.as_str()?, false).ok()
        });
        let of = model.defaults();
        let settings = Settings {
            model,
            steps: choice.whole("steps", given.steps, of.steps, STEPS),
            batch: choice.whole("batch", given.batch, of.batch, BATCH),
            context: choice.whole("context", given.context, of.context, CONTEXT),
            layers: choice.whole("layers", given.layers, of.layers, LAYERS),
            width: choice.whole("width", given.width, of.width, WIDTH),
            heads: choice.whole("heads", given.heads, of.heads, HEADS),
            vocabulary: choice.whole("vocabulary", given.vocabulary, of.vocabulary, VOCABULARY),
            dropout: choice.of("dropout", given.dropout, of.dropout, Value::as_float),
            learning_rate: choice.of(
                "learning-rate",
                given.learning_rate,
                of.learning_rate,
                Value::as_float,
            ),
            accumulate: choice.whole("accumulate", given.accumulate, of.accumulate, ACCUMULATE),
            precision: choice.of("precision", given.precision, of.precision, |saved| {
                Precision::from_str(saved.as_str()?, false).ok()
            }),
            seed: choice.whole("seed", given.seed, of.seed, 0..=u64::MAX),
        };
        (settings, choice.conflicts)
    }

    /// What a file keeps, by the names of the command line.
    pub(crate) fn to_value(self) -> Value {
        Value::dict([
            ("model", self.model.to_string().into()),
            ("steps", self.steps.into()),
            ("batch", self.batch.into()),
            ("context", self.context.into()),
            ("layers", self.layers.into()),
            ("width", self.width.into()),
            ("heads", self.heads.into()),
            ("vocabulary", self.vocabulary.into()),
            ("dropout", self.dropout.into()),
            ("learning-rate", self.learning_rate.into()),
            ("accumulate", self.accumulate.into()),
            ("precision", self.precision.to_string().into()),
            ("seed", self.seed.into()),
        ])
    }
}

/// Settings as they are chosen, one after the other.
struct Choice<'a> {
    saved: Option<&'a Value>,
    conflicts: Vec<String>,
}

impl Choice<'_> {
    fn whole(
        &mut self,
        name: &str,
        given: Option<u64>,
        default: u64,
        allowed: RangeInclusive<u64>,
    ) -> u64 {
        self.of(name, given, default, |saved| match saved {
            Value::Int(number) => u64::try_from(*number).ok().filter(|n| allowed.contains(n)),
            _ => None,
        })
    }

    fn of<T: Copy + PartialEq + fmt::Display>(
        &mut self,
        name: &str,
        given: Option<T>,
        default: T,
        read: impl Fn(&Value) -> Option<T>,
    ) -> T {
        let Some(saved) = self.saved else { return given.unwrap_or(default) };
        match (saved.get(name).and_then(read), given) {
            (None, _) => {
                self.conflicts.push(format!("--{name}: the file has none that makes sense"));
                default
            }
            (Some(saved), Some(given)) if saved != given => {
                self.conflicts.push(format!("--{name} {given}: the run has {saved}"));
                saved
            }
            (Some(saved), _) => saved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_comes_from_the_file_and_what_is_not_there_is_the_default() {
        let given = GivenSettings {
            steps: Some(7),
            dropout: Some(0.25),
            precision: Some(Precision::Bfloat16),
            seed: Some(u64::MAX),
            ..GivenSettings::default()
        };
        let (first, conflicts) = Settings::chosen(&given, None);
        assert!(conflicts.is_empty());
        assert_eq!((first.steps, first.batch, first.dropout), (7, 16, 0.25));
        let nothing = Settings::chosen(&GivenSettings::default(), Some(&first.to_value()));
        assert_eq!(nothing, (first, Vec::new()));
        assert_eq!(Settings::chosen(&given, Some(&first.to_value())), nothing, "the same again");
    }

    #[test]
    fn a_model_is_what_its_name_says_where_nothing_else_is_given() {
        let given = |width| GivenSettings { model: Some(Model::Gpt2), width, ..Default::default() };
        let (gpt2, _) = Settings::chosen(&given(None), None);
        assert_eq!(
            (gpt2.layers, gpt2.width, gpt2.context, gpt2.vocabulary),
            (12, 768, 1024, 50_304)
        );
        assert_eq!(gpt2.precision, Precision::Bfloat16Parameters);
        let (narrow, _) = Settings::chosen(&given(Some(384)), None);
        assert_eq!(narrow, Settings { width: 384, ..gpt2 });
        let (_, conflicts) =
            Settings::chosen(&given(None), Some(&Model::Small.defaults().to_value()));
        assert_eq!(conflicts, ["--model gpt2: the run has small"]);
    }

    #[test]
    fn every_conflict_is_listed_at_once() {
        let (saved, _) = Settings::chosen(&GivenSettings::default(), None);
        let given = GivenSettings {
            batch: Some(8),
            learning_rate: Some(1e-3),
            seed: Some(0),
            ..GivenSettings::default()
        };
        let (_, conflicts) = Settings::chosen(&given, Some(&saved.to_value()));
        assert_eq!(
            conflicts,
            ["--batch 8: the run has 16", "--learning-rate 0.001: the run has 0.002"]
        );
        let wrong = Settings { heads: 0, ..saved }.to_value();
        let (_, conflicts) = Settings::chosen(&GivenSettings::default(), Some(&wrong));
        assert_eq!(conflicts, ["--heads: the file has none that makes sense"]);
        assert_eq!(Settings::chosen(&GivenSettings::default(), Some(&Value::None)).1.len(), 13);
    }
}
