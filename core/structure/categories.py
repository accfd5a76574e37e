"""What kind of work an operator does, for colours and legends."""

from __future__ import annotations

from functools import cache
from typing import Final, Literal, get_args

import numpy as np

from core.ir import Graph, Ints
from core.structure.memory import remembered

Category = Literal[
    "convolution", "matrix", "attention", "recurrent", "normalisation", "activation", "pooling",
    "elementwise", "reduction", "shape", "constant", "quantization", "control flow", "other",
]  # fmt: skip

CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)

# Operators of ai.onnx, ai.onnx.ml and com.microsoft, and the usual names elsewhere (lower case).
_NAMES: Final[dict[Category, str]] = {
    "convolution": "conv convtranspose convinteger deformconv nhwcconv fusedconv qlinearconv qlinearconvtranspose"
    " depthwiseconv2d conv1d conv2d conv3d causalconvwithstate nhwcfusedconv qlinearconv2d",
    "matrix": "matmul gemm matmulinteger qlinearmatmul einsum gemmfloat8 matmulnbits fusedmatmul matmulinteger16"
    " matmulintegertofloat dynamicquantizematmul qgemm fusedgemm transposematmul matmulbnb4 matmulfpq4 dense linear"
    " fullyconnected batchmatmul dot dotgeneral addmm bmm mm sparsetodensematmul det gemmfastgelu moe qmoe",
    "attention": "attention multiheadattention groupqueryattention packedattention packedmultiheadattention"
    " qattention decoderattention decodermaskedmultiheadattention decodermaskedselfattention sparseattention"
    " longformerattention qorderedattention qorderedlongformerattention pagedattention linearattention"
    " scaleddotproductattention rotaryembedding gatedrelativepositionbias",
    "recurrent": "lstm gru rnn dynamicquantizelstm attnlstm linearrecurrent scan2",
    "normalisation": "batchnormalization layernormalization instancenormalization groupnormalization"
    " simplifiedlayernormalization skiplayernormalization skipsimplifiedlayernormalization rmsnormalization lrn"
    " lpnormalization meanvariancenormalization embedlayernormalization groupnorm skipgroupnorm batchnorm layernorm"
    " normalizer scaler qorderedlayernormalization normalization",
    "activation": "relu leakyrelu prelu sigmoid tanh softmax logsoftmax hardmax gelu fastgelu quickgelu biasgelu elu"
    " selu celu hardsigmoid hardswish softplus softsign mish swish silu thresholdedrelu clip relu6 shrink"
    " bitmaskdropout qlinearsigmoid qlinearleakyrelu qlinearsoftmax biassoftmax dropout biasdropout"
    " biassplitgelu parametricsoftplus scaledtanh hard_swish logistic",
    "pooling": "maxpool averagepool globalaveragepool globalmaxpool globallppool lppool maxunpool roialign maxroipool"
    " qlinearaveragepool qlinearglobalaveragepool nhwcmaxpool adaptiveavgpool2d averagepool2d maxpool2d cropandresize",
    "reduction": "reducemean reducesum reducemax reducemin reduceprod reducel1 reducel2 reducelogsum reducelogsumexp"
    " reducesumsquare argmax argmin topk cumsum cumprod qlinearreducemean mean sum reducesuminteger",
    "shape": "reshape transpose squeeze unsqueeze flatten concat split slice gather gathernd gatherelements expand tile"
    " pad shape size cast castlike resize upsample spacetodepth depthtospace scatter scatternd scatterelements"
    " compress identity reversesequence range nonzero onehot trilu gridsample affinegrid splittosequence"
    " sequenceconstruct sequenceat sequenceempty sequenceinsert sequenceerase sequencelength concatfromsequence"
    " col2im centercroppad tensorscatter unique qlinearconcat embedding arrayfeatureextractor zipmap"
    " qlinearwhere expanddims trim sequencemap optional optionalgetelement optionalhaselement bitcast",
    "constant": "constant constantofshape eyelike randomnormal randomuniform randomnormallike randomuniformlike"
    " blackmanwindow hannwindow hammingwindow bernoulli multinomial constantfill",
    "quantization": "quantizelinear dequantizelinear dynamicquantizelinear quantize dequantize fakequant"
    " quantizewithorder dequantizewithorder quantizebfp dequantizebfp gatherblockquantized",
    "control flow": "if loop scan while cond case call callonce",
    "elementwise": "add sub mul div pow sqrt exp log neg abs reciprocal floor ceil round sign min max mod where equal"
    " greater greaterorequal less lessorequal not and or xor erf sin cos tan asin acos atan sinh cosh asinh acosh atanh"
    " isnan isinf bitshift bitwiseand bitwiseor bitwisexor bitwisenot qlinearadd qlinearmul addbias biasadd"
    " rsqrt square subtract multiply divide maximum minimum power fusedmatmulactivation binarizer quickadd",
}
_CATEGORY: Final[dict[str, Category]] = {name: category for category, names in _NAMES.items() for name in names.split()}


@cache
def category(op_type: str) -> Category:
    """The category of an operator type; its domain does not matter, ``other`` where unknown."""
    name = op_type.lower().rsplit(".", 1)[-1].replace("_", "")
    found = _CATEGORY.get(name)
    if found is not None:
        return found
    if name.startswith("reduce"):
        return "reduction"
    if name.startswith("sequence"):
        return "shape"
    for part, kind in (("attention", "attention"), ("conv", "convolution"), ("normalization", "normalisation")):
        if part in name:
            return kind  # pyright: ignore[reportReturnType]
    if "pool" in name:
        return "pooling"
    return "matrix" if "matmul" in name or "gemm" in name else "other"


def node_categories(graph: Graph) -> Ints:
    """Category of every node as an index into ``CATEGORIES``."""

    def make() -> Ints:
        c = graph.columns
        table = np.zeros(len(c.strings), np.int32)
        codes: list[int] = np.unique(c.op_type).tolist()
        for code in codes:
            table[code] = CATEGORIES.index(category(c.strings[code]))
        return table[c.op_type]

    return remembered(graph, "categories", make)
