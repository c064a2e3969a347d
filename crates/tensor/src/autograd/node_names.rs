//! PyTorch's names of the graph's nodes, made of the operations' own: `MulBackward0` of `mul`.
//! Where an operation has another name there, the list has it; where its arguments or operands
//! decide, the operation says it itself (`Operation::node_name`).

/// Operations whose nodes PyTorch calls by the operation that it makes of them.
const NAMES: [(&str, &str); 34] = [
    ("adaptive_avg_pool1d", "SqueezeBackward1"),
    ("adaptive_max_pool1d", "SqueezeBackward1"),
    ("avg_pool1d", "SqueezeBackward1"),
    ("batch_norm", "NativeBatchNormBackward0"),
    ("cholesky_solve", "CholeskySolveBackward0"),
    ("conv1d", "ConvolutionBackward0"),
    ("conv2d", "ConvolutionBackward0"),
    ("conv3d", "ConvolutionBackward0"),
    ("conv_transpose1d", "ConvolutionBackward0"),
    ("conv_transpose2d", "ConvolutionBackward0"),
    ("conv_transpose3d", "ConvolutionBackward0"),
    ("cross_entropy", "NllLossBackward0"),
    ("dropout", "MulBackward0"),
    ("gelu_tanh", "GeluBackward0"),
    ("group_norm", "NativeGroupNormBackward0"),
    ("layer_norm", "NativeLayerNormBackward0"),
    ("linalg_cholesky", "LinalgCholeskyExBackward0"),
    ("linalg_eigvalsh", "LinalgEighBackward0"),
    ("linalg_inv", "LinalgInvExBackward0"),
    ("linalg_lu_factor", "LinalgLuFactorExBackward0"),
    ("linalg_pinv", "LinalgPinvBackward0"),
    ("linalg_solve", "LinalgSolveExBackward0"),
    ("linalg_svdvals", "LinalgSvdBackward0"),
    ("logsigmoid", "LogSigmoidBackward0"),
    ("matrix_exp", "LinalgMatrixExpBackward0"),
    ("max", "MaxBackward1"),
    ("max_pool1d", "SqueezeBackward1"),
    ("max_pool2d", "MaxPool2DWithIndicesBackward0"),
    ("max_pool3d", "MaxPool3DWithIndicesBackward0"),
    ("min", "MinBackward1"),
    ("narrow", "SliceBackward0"),
    ("prelu", "PreluKernelBackward0"),
    ("round_decimals", "RoundBackward1"),
    ("scaled_dot_product_attention", "ScaledDotProductFlashAttentionForCpuBackward0"),
];

/// The name in the list.
pub(super) fn listed(operation: &str) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == operation).map(|(_, name)| *name)
}

/// The operation's own name as a node's: its words begin with capitals, and so does what follows a
/// digit.
pub(super) fn built(operation: &str) -> String {
    let mut name = String::with_capacity(operation.len() + 9);
    let mut begins = true;
    for letter in operation.chars() {
        if letter == '_' {
            begins = true;
            continue;
        }
        name.push(if begins { letter.to_ascii_uppercase() } else { letter });
        begins = letter.is_ascii_digit();
    }
    name + "Backward0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_pytorchs() {
        assert_eq!(built("mul"), "MulBackward0");
        assert_eq!(built("log1p"), "Log1PBackward0");
        assert_eq!(built("expm1"), "Expm1Backward0");
        assert_eq!(built("avg_pool2d"), "AvgPool2DBackward0");
        assert_eq!(built("max_pool2d_with_indices"), "MaxPool2DWithIndicesBackward0");
        assert_eq!(built("_safe_softmax"), "SafeSoftmaxBackward0");
        assert_eq!(listed("conv2d"), Some("ConvolutionBackward0"));
        assert_eq!(listed("mul"), None);
        assert!(NAMES.is_sorted(), "one looks a name up by eye");
    }
}
