//! What messages say of a program that can end in more than one way: the words follow what PyTorch
//! does with it (`measure/on_host.py` and the pages say how that was found).

use plimsoll_lint::{Selection, Source, check};

/// The messages of one rule about a program.
fn messages(rule: &str, text: &str) -> Vec<String> {
    let selection = Selection::default().select(&[rule]).unwrap();
    let found = check(&Source::python("program.py", text), &selection).unwrap();
    found.into_iter().map(|finding| finding.message).collect()
}

fn carried(pass: &str, step: &str) -> String {
    format!(
        "import torch\nimport torch.nn as nn\ngru = nn.GRU(8, 8)\noptimizer = torch.optim.Adam(gru.parameters())\n\
         hidden = None\nfor x, y in loader:\n    optimizer.zero_grad()\n    output, hidden = gru(x, hidden)\n    \
         loss = output.sum()\n    {pass}\n    {step}\n"
    )
}

#[test]
fn a_carried_state_raises_or_grows_by_what_the_loop_does() {
    let step = "optimizer.step()";
    for (pass, step, words) in [
        ("loss.backward()", step, "freed graph and raises"),
        ("loss.backward(retain_graph=False)", step, "freed graph and raises"),
        ("loss.backward(retain_graph=True)", step, "the step changes the weights"),
        (
            "loss.backward(retain_graph=True)",
            "pass",
            "grows by one batch in every iteration, and each",
        ),
    ] {
        let found = messages("hidden-state-not-detached", &carried(pass, step));
        assert_eq!(found.len(), 1, "{pass}");
        assert!(found[0].contains(words), "{pass}: {}", found[0]);
    }
}

#[test]
fn a_kept_loss_keeps_activations_where_the_graph_is_retained() {
    let program = |flag: &str| {
        format!(
            "import torch\nlosses = []\nfor x, y in loader:\n    loss = criterion(model(x), y)\n    \
             loss.backward({flag})\n    losses.append(loss)\n"
        )
    };
    for (flag, words) in
        [("", "its nodes and the tensor"), ("retain_graph=True", "all activations")]
    {
        let found = messages("graph-kept", &program(flag));
        assert_eq!(found.len(), 1, "{flag}");
        assert!(found[0].contains(words), "{}", found[0]);
    }
}

#[test]
fn a_scaler_that_is_never_updated_raises() {
    let text = "import torch\nscaler = torch.amp.GradScaler()\nfor x in loader:\n    \
                scaler.scale(model(x).sum()).backward()\n    scaler.step(optimizer)\n";
    let found = messages("scaler-misuse", text);
    assert!(found.len() == 1 && found[0].contains("raises a RuntimeError"), "{found:?}");
}

#[test]
fn a_layer_in_training_mode_does_what_its_kind_does() {
    for (layer, words, others) in [
        ("Dropout(0.5)", "at random", "statistics"),
        ("BatchNorm1d(8)", "running statistics", "random"),
    ] {
        let text = format!(
            "import torch\nimport torch.nn as nn\nmodel = nn.Sequential(nn.Linear(8, 8), nn.{layer})\n\
             with torch.no_grad():\n    for x in test_loader:\n        out = model(x)\n"
        );
        let found = messages("batchnorm-or-dropout-without-eval", &text);
        assert_eq!(found.len(), 1, "{layer}");
        assert!(found[0].contains(words) && !found[0].contains(others), "{}", found[0]);
    }
}
