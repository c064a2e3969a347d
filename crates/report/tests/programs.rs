//! Snapshots of real PyTorch programs (`programs/*.py`, run on an H200 by `make_snapshots.py`):
//! what is found in each is what was put into it, with the line of the program; and nothing is
//! found in the clean ones. Lines are looked up in the programs' own source. This is the list of
//! samples; a new one that is not in it fails.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_report::{FindingKind, Report, open};
use support::{sample, samples};

/// A program, what must be found in it, a part of the cause, and a part of the line that must be
/// named.
type Expected = (&'static str, &'static [(FindingKind, &'static str, &'static str)]);

use FindingKind::{Churn, Fragmentation, Leak, OutOfMemory, OversizedCache, PinnedSegment};

const PROGRAMS: &[Expected] = &[
    ("clean_mlp", &[]),
    ("clean_conv_sgd", &[]),
    ("clean_accumulation", &[]),
    ("clean_checkpointed", &[]),
    ("clean_eval_between", &[]),
    ("clean_logged_losses", &[]),
    ("clean_annotated", &[]),
    ("clean_averaged", &[]),
    ("clean_gan", &[]),
    ("clean_generation", &[]),
    ("clean_metrics", &[]),
    ("clean_preloaded", &[]),
    ("clean_replay", &[]),
    ("clean_requests", &[]),
    ("clean_transformer_amp", &[]),
    ("clean_truncated_state", &[]),
    ("clean_warmup", &[]),
    ("ok_beam", &[]),
    ("ok_amp", &[]),
    ("ok_checkpoint", &[]),
    ("ok_ema", &[]),
    ("ok_lbfgs", &[]),
    ("ok_replay", &[]),
    ("ok_metrics", &[]),
    ("ok_kv_prompts", &[]),
    ("ok_two_phase", &[]),
    ("val_running", &[(Leak, "graph is kept alive by results", "# gradients are on")]),
    ("gan_history", &[(Leak, "graph is kept alive by a loss", "return F.binary_cross_entropy")]),
    ("lstm_stream", &[(Leak, "carried from step to step", "out, self.state = self.lstm(")]),
    ("td_trace", &[(Leak, "graph is kept alive", "next_value = self.critic(")]),
    ("preview_first", &[(Leak, "slices", "recon = model(noisy)")]),
    (
        "last_token",
        &[
            (Leak, "slices", "hidden = self.encoder(tokens)"),
            (Fragmentation, "live blocks leave parts", "return x + self.proj(y)"),
        ],
    ),
    ("chunk_heads", &[(Leak, "slices", "wide = self.heads(")]),
    ("grad_inputs", &[(Leak, "inputs keep their gradients", "inputs = torch.randn(")]),
    ("adv_kept", &[(Leak, "inputs keep their gradients", "return torch.clamp(images")]),
    ("frag_pyramid", &[(Fragmentation, "live blocks leave parts", "strips.append(")]),
    ("frag_search", &[(Fragmentation, "live blocks leave parts", "self.hidden = nn.Linear(")]),
    (
        "oom_rollouts",
        &[
            (OutOfMemory, "input memory fills the device, left", "frames = torch.rand("),
            (Leak, "values are kept", "frames = torch.rand("),
        ],
    ),
    ("oom_remainder", &[(OutOfMemory, "a single request", "return F.one_hot(tokens")]),
    ("ok_resnet", &[]),
    // Buffers of 12 MiB are segments of their own: what was freed is cache, and the later ones
    // would not have fitted anywhere.
    ("checkerboard", &[]),
    // Nothing stays, but lengths that grow leave segments that the next length cannot use.
    ("clean_curriculum", &[(OversizedCache, "sizes that change", "loss = (head(out) - x)")]),
    ("expandable_segments", &[]),
    ("two_streams", &[]),
    ("threads", &[]),
    ("wrapped_trace", &[]),
    ("cpp_stacks", &[]),
    ("graph_pool", &[]),
    ("pinned_host", &[]),
    ("leak_loss_sum", &[(Leak, "graph is kept alive by a loss", "total = total +")]),
    ("leak_losses_retained", &[(Leak, "graph is kept alive by a loss", "cross_entropy(")]),
    ("leak_hidden_state", &[(Leak, "graph is kept alive by a state", "hidden = cell(")]),
    ("leak_state_stream", &[(Leak, "graph is kept alive by a state", "self.state = self.net(")]),
    ("leak_eval_outputs", &[(Leak, "graph is kept alive by results", "outputs.append(")]),
    ("leak_released_at_end", &[(Leak, "graph is kept alive by results", "results.append(")]),
    ("leak_slices", &[(Leak, "slices that keep the whole storage", "features = net(x)")]),
    ("leak_hook", &[(Leak, "values are kept", "loss = net(x)")]),
    ("leak_cache", &[(Leak, "values are kept", "CACHE[key] = ")]),
    ("leak_input_gradients", &[(Leak, "inputs keep their gradients", "requires_grad=True")]),
    ("leak_replaced_optimizer", &[(Leak, "optimizer state", "optimizer.step()")]),
    ("leak_attention_maps", &[(Leak, "graph is kept alive by results", "        net(x)")]),
    ("leak_lstm_state", &[(Leak, "graph is kept alive by a state", "model(x, state)")]),
    ("leak_predictions", &[(Leak, "values are kept", "logits.softmax(")]),
    ("leak_row_views", &[(Leak, "slices that keep the whole storage", "batch = torch.randn(")]),
    ("leak_same_input", &[(Leak, "graph is kept alive by results", "samples = [net(x)")]),
    ("leak_best_models", &[(Leak, "models are made again", "copy.deepcopy(net)")]),
    ("leak_epoch_outputs", &[(Leak, "values are kept", "self.outputs.append(")]),
    ("leak_gradient_history", &[(Leak, "values are kept", "p.grad.clone()")]),
    ("leak_gradient_penalty", &[(Leak, "graph is kept alive by a loss", "penalties.append(")]),
    ("leak_logger", &[(Leak, "graph is kept alive by a loss", "functional.cross_entropy(")]),
    ("leak_prefetched", &[(Leak, "values are kept", ".pin_memory().cuda(")]),
    ("leak_scheduler_per_epoch", &[(Leak, "optimizer state", "optimizer.step()")]),
    ("leak_sessions", &[(Leak, "values are kept", "self.project(tokens)")]),
    ("leak_tracebacks", &[(Leak, "graph is kept alive by results", "hidden.softmax(")]),
    ("crops_kept", &[(Leak, "slices that keep the whole storage", "return torch.rand(")]),
    ("failed_batches", &[(Leak, "graph is kept alive by a loss", "loss = F.cross_entropy(")]),
    ("hook_store", &[(Leak, "values are kept", "x = self.body(x)")]),
    ("lru_bias", &[(Leak, "values are kept", "bias = torch.zeros(")]),
    ("metrics_entropy", &[(Leak, "graph is kept alive by a loss", "entropy = -(probs")]),
    ("rmt_memory", &[(Leak, "graph is kept alive by results", "logits, memory = model(")]),
    ("ema_states", &[(Leak, "values are kept", "ema = {k: 0.9 * ema[k]")]),
    ("embeddings_gpu", &[(Leak, "graph is kept alive by results", "return net(batch)")]),
    ("gru_chain", &[(Leak, "graph is kept alive by a state", "h = cell(x, h)")]),
    ("running_total", &[(Leak, "graph is kept alive by a loss", "loss = (net(x) - x)")]),
    ("saliency", &[(Leak, "inputs keep their gradients", "requires_grad=True")]),
    ("frag_lengths", &[(Fragmentation, "that nothing fits into", "bank.append(")]),
    (
        "frag_shards",
        &[
            (Fragmentation, "in pieces", "tables.append("),
            (PinnedSegment, "small live blocks", "tables.append("),
        ],
    ),
    ("fragmented_lengths", &[(PinnedSegment, "small live blocks", "kept.append(torch.empty(")]),
    (
        "fragmented_contexts",
        &[
            (Leak, "values are kept", "answers.append("),
            (OversizedCache, "sizes that change", "context = torch.cat("),
        ],
    ),
    (
        "pinned_segments",
        &[
            (PinnedSegment, "small live blocks", "results.append("),
            (OversizedCache, "early peak", "scratch.append("),
        ],
    ),
    ("oom_first_forward", &[(OutOfMemory, "activation", "net(x).mean()")]),
    ("oom_model", &[(OutOfMemory, "parameter", "net.cuda()")]),
    ("oom_attention", &[(OutOfMemory, "a single request", "scores = q @ q.transpose(1, 2)")]),
    (
        "oom_leaky",
        &[
            (OutOfMemory, "activation memory fills the device, left", "loss = (net(x) ** 2)"),
            (Leak, "graph is kept alive by a loss", "loss = (net(x) ** 2)"),
        ],
    ),
    ("oom_adam_state", &[(OutOfMemory, "optimizer state memory fills", "            opt.step()")]),
    ("oom_eval_grad", &[(OutOfMemory, "activation memory fills", "logits = net(image)")]),
    ("oom_curriculum", &[(OutOfMemory, "activation", "loss = layer(x)")]),
    ("fragmented", &[(Fragmentation, "in pieces", "keep.append(")]),
    ("oom_batch", &[(OutOfMemory, "activation", "torch.relu(layer(x))")]),
    ("oom_optimizer", &[(OutOfMemory, "optimizer state", "range(5))).cuda()")]),
    (
        "oom_fragmented",
        &[
            (OutOfMemory, "input", "(keep if index % 2 else drop)"),
            (OutOfMemory, "fragmentation", "(keep if index % 2 else drop)"),
        ],
    ),
    ("oversized_cache", &[(OversizedCache, "early peak", "loss = net(x)")]),
    ("spike_cache", &[(OversizedCache, "early peak", "net(torch.randn(60000")]),
    ("churn_empty", &[(Churn, "driver", "x = F.relu(self.middle(x))")]),
    ("churn_empty_cache", &[(Churn, "driver", "y = net(x).relu()")]),
];

#[test]
fn what_was_put_in_is_found_and_nothing_else() {
    for (name, expected) in PROGRAMS {
        let report = Report::of(open(sample(name)).unwrap(), *name);
        let found: Vec<String> = report
            .findings
            .iter()
            .map(|f| {
                format!(
                    "{} ({}) at line {}",
                    f.kind,
                    f.cause,
                    report.lines.sites.frame(f.site).line
                )
            })
            .collect();
        assert_eq!(found.len(), expected.len(), "{name}: {found:#?}");
        let source = source_of(name);
        for (kind, cause, line) in *expected {
            let line = 1 + source.lines().position(|text| text.contains(line)).unwrap() as u32;
            let hit = report.findings.iter().find(|finding| {
                let frame = report.lines.sites.frame(finding.site);
                let file = report.snapshot.strings.get(frame.file);
                finding.kind == *kind
                    && finding.cause.contains(cause)
                    && frame.line == line
                    && file == format!("programs/{name}.py")
            });
            assert!(
                hit.is_some(),
                "{name}: {kind} ({cause}) at line {line} is not among {found:#?}"
            );
        }
    }
}

/// Samples that were given, without their programs, and those that `make_made.py` made.
const WITHOUT_A_PROGRAM: [&str; 5] = [
    "clean_training",
    "leak_losses_keep_graph",
    "oom_activations",
    "made_pinned_host",
    "made_several_devices",
];

#[test]
fn every_sample_and_every_program_is_in_the_list() {
    let listed: BTreeSet<String> = PROGRAMS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(listed.len(), PROGRAMS.len(), "one is there twice");
    let stem = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.split('.').next().unwrap().to_string()
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let programs = std::fs::read_dir(folder).unwrap().map(|entry| stem(&entry.unwrap().path()));
    let programs: BTreeSet<String> = programs.filter(|name| name != "make_snapshots").collect();
    assert_eq!(programs, listed);
    let recorded = samples().into_iter().map(|(path, _)| stem(&path));
    let recorded: BTreeSet<String> =
        recorded.filter(|name| !WITHOUT_A_PROGRAM.contains(&&**name)).collect();
    assert_eq!(recorded, listed);
}

/// A line that is reached from several places does not tell which of them keeps what it makes.
#[test]
fn the_call_that_keeps_is_named_where_the_line_does_not_tell() {
    let report = Report::of(open(sample("leak_logger")).unwrap(), "leak_logger");
    let line =
        1 + source_of("leak_logger").lines().position(|l| l.contains("self.logger.log(")).unwrap();
    let call = format!("what stays comes from the call at programs/leak_logger.py:{line}.");
    assert!(report.findings[0].message.ends_with(&call), "{}", report.findings[0].message);
    // Both calls of this one keep what they fetch.
    let report = Report::of(open(sample("leak_prefetched")).unwrap(), "leak_prefetched");
    assert!(!report.findings[0].message.contains("from elsewhere"));
}

fn source_of(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    std::fs::read_to_string(folder.join(format!("{name}.py"))).unwrap()
}

#[test]
fn bytes_per_step_are_those_of_the_program() {
    // What each step keeps, from the shapes in the programs, four bytes a number.
    for (name, per_step) in [
        ("leak_slices", 4 * 512 * 2048),
        ("crops_kept", 4 * 3 * 1024 * 1024),
        ("leak_hook", 4 * 512 * 1024),
        ("leak_cache", 4 * 64 * 16 * 512),
        // The images and their gradients.
        ("leak_input_gradients", 2 * 4 * 64 * 3 * 32 * 32),
        // Adam's two states of the two layers, and of its step counters none on the device.
        ("leak_replaced_optimizer", 2 * 4 * (256 * 1024 + 1024 + 1024 * 256 + 256)),
        // The input, the two hidden results that relu leaves, and the output.
        ("leak_eval_outputs", 4 * 256 * (256 + 1024 + 1024 + 16)),
        // A copy of every gradient.
        ("leak_gradient_history", 4 * (256 * 1024 + 1024 + 1024 * 64 + 64)),
        // The keys and values of a prompt, of which the two are views.
        ("leak_sessions", 4 * 4 * 192 * 512),
        ("leak_prefetched", 4 * 64 * 3 * 32 * 32),
        // The copied layers.
        ("leak_best_models", 4 * (256 * 1024 + 1024 + 1024 * 256 + 256)),
    ] {
        let report = Report::of(open(sample(name)).unwrap(), name);
        assert_eq!(report.findings[0].bytes_per_step, Some(per_step), "{name}");
        let text = &report.findings[0].message;
        assert!(text.starts_with("Each step leaves "), "{name}: {text}");
    }
}

/// Each epoch's end leaves something, and few of the optimizer's steps are an epoch's end.
#[test]
fn what_comes_with_every_epoch_is_told_apart_from_every_step() {
    for (name, steps, each) in [
        // Three batches of predictions after each third step.
        ("leak_epoch_outputs", "5 of 15 steps", 3 * 4 * 128 * 1000),
        // Momentum of the two layers after each fourth step.
        ("leak_scheduler_per_epoch", "7 of 29 steps", 4 * 2 * (512 * 512 + 512)),
    ] {
        let report = Report::of(open(sample(name)).unwrap(), name);
        let [finding] = &report.findings[..] else { panic!("{name}") };
        let each = plimsoll_core::ByteSize(each);
        let words = format!("{steps} leave something behind, {each} each; ");
        assert!(finding.message.starts_with(&words), "{name}: {}", finding.message);
    }
}

#[test]
fn the_given_samples_are_explained() {
    let clean = Report::of(open(sample("clean_training")).unwrap(), "clean_training");
    assert_eq!(clean.findings, []);
    let leak = Report::of(open(sample("leak_losses_keep_graph")).unwrap(), "leak");
    let [finding] = &leak.findings[..] else { panic!("{:?}", leak.findings) };
    assert_eq!(finding.kind, FindingKind::Leak);
    assert!(finding.cause.contains("a graph is kept alive by a loss"), "{}", finding.cause);
    assert_eq!(leak.lines.sites.frame(finding.site).line, 17);
    // Two hidden results of 1 MiB, the input, its labels, the loss' log-softmax and two numbers.
    assert_eq!(finding.bytes_per_step, Some(2 * 1_048_576 + 524_288 + 2048 + 10_240 + 8));
    let oom = Report::of(open(sample("oom_activations")).unwrap(), "oom");
    let failed = &oom.findings[0];
    assert_eq!(failed.kind, FindingKind::OutOfMemory);
    assert!(failed.cause.starts_with("activation memory fills the device"), "{}", failed.cause);
    assert_eq!(oom.lines.sites.frame(failed.site).line, 40);
    assert!(failed.message.contains("activation 1.53 GiB (78 %)"), "{}", failed.message);
}

#[test]
fn a_large_model_in_gzip_is_clean() {
    let report = Report::of(open(sample("clean_transformer_amp")).unwrap(), "transformer");
    assert_eq!(report.findings, []);
    assert_eq!(report.snapshot.writer.format, "pickle 4, gzip");
}
