"""Generated inputs: exact dtype and shape, repeatable, sane proposals."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from core.errors import InputMismatch, LimitExceeded, Unavailable
from core.graph_builder import GraphBuilder
from core.inputs.generic import default_dims, default_recipe, generate, shared_dims
from core.inputs.recipe import Recipe
from core.ir import Model, Tensor


@dataclass(frozen=True)
class Slot:
    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None


NUMPY = [
    "float64", "float32", "float16", "int64", "int32", "int16", "int8",
    "uint64", "uint32", "uint16", "uint8", "bool", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["random", "zeros", "ones"])
@pytest.mark.parametrize("dtype", NUMPY)
def test_dtype_and_shape_are_exact(dtype, kind):
    array = generate(Slot("x", dtype, ("n", 3)), Recipe(kind, dims={"n": 2}))
    assert array.dtype == np.dtype(dtype)
    assert array.shape == (2, 3)
    if kind != "random":
        assert (array == (0 if kind == "zeros" else 1)).all()


def test_a_scalar_and_an_empty_array_are_arrays_too():
    assert generate(Slot("x", "int64", ()), Recipe("ones")).shape == ()
    assert generate(Slot("x", "float32", (0, 4)), Recipe("random")).shape == (0, 4)
    assert generate(Slot("x", "string", (0,)), Recipe("random")).shape == (0,)


def test_the_seed_decides():
    slot = Slot("x", "float32", (64,))
    first, again, other = (generate(slot, Recipe("random", seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_random_floats_are_standard_normal_or_uniform_in_their_range():
    slot = Slot("x", "float32", (20_000,))
    normal = generate(slot, Recipe("random"))
    # the mean of 20,000 normal numbers lies within 5 / sqrt(20000) = 0.035 but for 1 in 2 million
    assert abs(normal.mean()) < 0.036
    assert abs(normal.std() - 1) < 0.03
    uniform = generate(slot, Recipe("random", low=2.0, high=4.0))
    assert uniform.min() >= 2
    assert uniform.max() <= 4
    assert abs(uniform.mean() - 3) < 0.03


def test_random_integers_reach_both_ends_and_stay_within_their_type():
    numbers = generate(Slot("x", "int64", (2_000,)), Recipe("random", low=3, high=6))
    assert set(numbers.tolist()) == {3, 4, 5, 6}
    assert generate(Slot("x", "uint8", (2_000,)), Recipe("random", low=-5, high=1e9)).max() == 255
    assert set(generate(Slot("x", "int32", (500,)), Recipe("random")).tolist()) == set(range(10))


def test_a_range_without_a_number_in_it_is_refused():
    with pytest.raises(InputMismatch, match=r"no int64 lies between 3\.2 and 3\.8"):
        generate(Slot("x", "int64", (2,)), Recipe("random", low=3.2, high=3.8))
    with pytest.raises(InputMismatch, match="Swap its ends"):
        generate(Slot("x", "float32", (2,)), Recipe("random", low=1, high=0))


def test_text_is_made_of_lower_case_words():
    words = generate(Slot("s", "string", (5,)), Recipe("random"))
    assert words.dtype == object
    assert all(isinstance(word, str) and len(word) == 8 and word.islower() for word in words)
    assert generate(Slot("s", "string", (2,)), Recipe("zeros")).tolist() == ["", ""]


def test_an_opaque_input_is_refused():
    with pytest.raises(Unavailable, match="input 'x' is no tensor of numbers or text"):
        generate(Slot("x", "opaque", (2,)), Recipe("zeros"))


LACKING = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}


@pytest.mark.parametrize(("dtype", "oracle"), LACKING.items(), ids=list(LACKING))
def test_types_that_numpy_lacks_travel_as_bit_patterns(dtype, oracle):
    ones = generate(Slot("x", dtype, (4,)), Recipe("ones"))
    assert ones.view(oracle).astype(np.float32).tolist() == [1.0] * 4
    numbers = generate(Slot("x", "float32", (3000,)), Recipe("random", 5, low=-3.0, high=3.0))
    patterns = generate(Slot("x", dtype, (3000,)), Recipe("random", 5, low=-3.0, high=3.0))
    assert patterns.itemsize == (2 if dtype == "bfloat16" else 1)
    expected = numbers.astype(oracle).astype(np.float32)
    got = patterns.view(oracle).astype(np.float32)
    ties = np.abs(np.abs(numbers - got) - np.abs(numbers - expected)) == 0
    assert (got == expected)[~ties].all()
    assert np.abs(numbers - got).max() == np.abs(numbers - expected).max()


@pytest.mark.parametrize(("dtype", "carrier", "span"), [("int4", np.int8, (-8, 7)), ("uint4", np.uint8, (0, 15))])
def test_four_bit_integers_take_one_byte_each(dtype, carrier, span):
    numbers = generate(Slot("x", dtype, (2000,)), Recipe("random", low=-100, high=100))
    assert numbers.dtype == carrier
    assert (numbers.min(), numbers.max()) == span


def test_a_huge_input_is_refused_before_it_is_made():
    with pytest.raises(LimitExceeded, match="Choose smaller sizes"):
        generate(Slot("x", "float32", ("n",)), Recipe("random", dims={"n": 1 << 40}))


class TestFromFile:
    def test_the_array_is_taken_as_it_is(self, tmp_path):
        made = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.save(tmp_path / "x.npy", made)
        array = generate(Slot("x", "float32", ("n", 3)), Recipe("npy", path=str(tmp_path / "x.npy")))
        assert np.array_equal(array, made)
        assert array.dtype == np.float32

    def test_another_dtype_is_refused_with_how_to_save_it(self, tmp_path):
        np.save(tmp_path / "cat.npy", np.zeros((2, 3)))
        with pytest.raises(InputMismatch, match=r"takes float32, file cat\.npy holds float64.*astype\('float32'\)"):
            generate(Slot("x", "float32", ("n", 3)), Recipe("npy", path=str(tmp_path / "cat.npy")))

    def test_another_shape_is_refused(self, tmp_path):
        np.save(tmp_path / "x.npy", np.zeros((2, 4), np.float32))
        with pytest.raises(InputMismatch, match="takes shape n × 3, the array has 2 × 4"):
            generate(Slot("x", "float32", ("n", 3)), Recipe("npy", path=str(tmp_path / "x.npy")))

    def test_text_comes_as_text(self, tmp_path):
        np.save(tmp_path / "s.npy", np.array(["a", "bc"]))
        assert generate(Slot("s", "string", ("n",)), Recipe("npy", path=str(tmp_path / "s.npy"))).tolist() == [
            "a",
            "bc",
        ]


class TestProposals:
    @pytest.mark.parametrize(
        ("name", "dtype", "kind"),
        [
            ("attention_mask", "int64", "ones"),
            ("mask", "bool", "ones"),
            ("token_type_ids", "int64", "zeros"),
            ("state", "float32", "zeros"),
            ("x", "float32", "random"),
            ("cond", "bool", "ones"),
        ],
    )
    def test_names_decide(self, name, dtype, kind):
        proposal = default_recipe(Slot(name, dtype, (1, 4)))
        assert proposal.recipe.kind == kind
        assert proposal.reason.endswith(".")

    def test_a_sample_rate_is_one(self):
        slot = Slot("sr", "int64", ())
        assert generate(slot, default_recipe(slot).recipe) == 16000

    def test_bytes_and_pixels_stay_in_range(self):
        recipe = default_recipe(Slot("bytes", "int32", ("n", 2048))).recipe
        assert (recipe.low, recipe.high) == (0, 255)
        recipe = default_recipe(Slot("x", "float32", ("n", 3, "h", "w"))).recipe
        assert (recipe.low, recipe.high) == (0.0, 1.0)

    def test_token_ids_stay_below_the_rows_of_the_table_they_look_up(self):
        builder = GraphBuilder(0, "main")
        ids, wide, table, out = (builder.value(name) for name in ("ids", "wide", "table", "out"))
        builder.inputs, builder.outputs = [ids], [out]
        builder.node("Cast", "cast", [ids], [wide])
        builder.node("Gather", "embed", [table, wide], [out])
        builder.initializer(table, 0)
        builder.set_type(ids, "int32", ("batch", "seq"))
        tensor = Tensor("table", "float32", (30522, 8), None, role="initializer")
        model = Model("onnx", "ONNX model", "m.onnx", (), {}, (tensor,), (builder.finish(),), {})
        recipe = default_recipe(model.graphs[0].value(ids), model).recipe
        assert (recipe.low, recipe.high) == (0, 30521)

    def test_sizes_follow_from_names_and_places(self):
        def sizes(*slots):
            return {key: proposal.size for key, proposal in default_dims(slots).items()}

        assert sizes(Slot("ids", "int64", ("batch_size", "sequence_length"))) == {
            "batch_size": 1,
            "sequence_length": 16,
        }
        assert sizes(Slot("x", "float32", (None, 3, "height", "width"))) == {"x[0]": 1, "height": 64, "width": 64}
        assert sizes(Slot("image", "float32", ("N", None, None, 3))) == {"N": 1, "image[1]": 64, "image[2]": 64}
        assert sizes(Slot("x", "float32", ("p2o.DynamicDimension.0", 3, "?", "p2o.DynamicDimension.1"))) == {
            "p2o.DynamicDimension.0": 1, "x[2]": 64, "p2o.DynamicDimension.1": 64,
        }  # fmt: skip
        assert sizes(Slot("ids", "int64", ("s72", "s70"))) == {"s72": 1, "s70": 16}

    def test_next_to_a_sample_rate_the_last_axis_is_audio(self):
        slots = [
            Slot("input", "float32", (None, None)),
            Slot("state", "float32", (2, None, 128)),
            Slot("sr", "int64", ()),
        ]
        assert {key: p.size for key, p in default_dims(slots).items()} == {
            "input[0]": 1, "input[1]": 512, "state[1]": 1,
        }  # fmt: skip


class TestSharedSizes:
    IDS, MASK = Slot("ids", "int64", ("batch", "seq")), Slot("mask", "int64", ("batch", "seq"))

    def test_a_file_decides_before_recipes_and_defaults(self):
        sizes = shared_dims(
            [self.IDS, self.MASK], {"mask": Recipe("ones", dims={"seq": 5, "batch": 3})}, {"ids": (2, 9)}
        )
        assert sizes == {"batch": 2, "seq": 9}

    def test_recipes_decide_before_defaults(self):
        assert shared_dims([self.IDS, self.MASK], {"mask": Recipe("ones", dims={"seq": 5})}, {}) == {
            "batch": 1,
            "seq": 5,
        }

    def test_files_that_disagree_are_refused(self):
        with pytest.raises(InputMismatch, match="dimension 'seq' is 9 elsewhere and 8"):
            shared_dims([self.IDS, self.MASK], {}, {"ids": (2, 9), "mask": (2, 8)})
