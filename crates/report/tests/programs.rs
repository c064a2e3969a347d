//! Snapshots of real PyTorch programs (`programs/*.py`, run on an H200 by `make_snapshots.py`): what is found in each is what was
//! put into it, with the line of the program; and nothing is found in the clean ones. Lines are looked up in the programs'
//! own source.

mod support;

use std::path::Path;

use plimsoll_report::{FindingKind, Report, open};
use support::sample;

/// A program, what must be found in it, a part of the cause, and a part of the line that must be named.
type Expected = (&'static str, &'static [(FindingKind, &'static str, &'static str)]);

use FindingKind::{Churn, Fragmentation, Leak, OutOfMemory, OversizedCache};

const PROGRAMS: &[Expected] = &[
    ("clean_mlp", &[]),
    ("clean_conv_sgd", &[]),
    ("clean_accumulation", &[]),
    ("clean_checkpointed", &[]),
    ("clean_eval_between", &[]),
    ("clean_logged_losses", &[]),
    ("clean_annotated", &[]),
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

fn source_of(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    std::fs::read_to_string(folder.join(format!("{name}.py"))).unwrap()
}

#[test]
fn bytes_per_step_are_those_of_the_program() {
    // What each step keeps, from the shapes in the programs, four bytes a number.
    for (name, per_step) in [
        ("leak_slices", 4 * 512 * 2048),
        ("leak_hook", 4 * 512 * 1024),
        ("leak_cache", 4 * 64 * 16 * 512),
        // The images and their gradients.
        ("leak_input_gradients", 2 * 4 * 64 * 3 * 32 * 32),
        // Adam's two states of the two layers, and of its step counters none on the device.
        ("leak_replaced_optimizer", 2 * 4 * (256 * 1024 + 1024 + 1024 * 256 + 256)),
        // The input, the two hidden results that relu leaves, and the output.
        ("leak_eval_outputs", 4 * 256 * (256 + 1024 + 1024 + 16)),
    ] {
        let report = Report::of(open(sample(name)).unwrap(), name);
        assert_eq!(report.findings[0].bytes_per_step, Some(per_step), "{name}");
        let text = &report.findings[0].message;
        assert!(text.starts_with("Each step leaves "), "{name}: {text}");
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
    assert!(failed.message.contains("activation 1.53 GiB (77 %)"), "{}", failed.message);
}

#[test]
fn a_large_model_in_gzip_is_clean() {
    let path = sample("clean_transformer_amp").with_extension("pickle.gz");
    let report = Report::of(open(path).unwrap(), "transformer");
    assert_eq!(report.findings, []);
    assert_eq!(report.snapshot.writer.format, "pickle 4, gzip");
}
