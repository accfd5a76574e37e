"""From text to ids, mask, positions and segments that agree with each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputMismatch, LimitExceeded, UsageError
from core.inputs.tokenizers.load import codebook
from core.inputs.tokens import Options, embedding_rows, text, tokenize
from core.opening import open_model
from tests.corpus import fetch

BYTES = codebook("bytes")


@given(
    st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=8), min_size=1, max_size=4),
    st.integers(0, 20), st.sampled_from(["right", "left"]), st.sampled_from(["right", "left"]),
)  # fmt: skip
def test_ids_mask_and_positions_agree(texts: list[str], length: int, pad: str, truncate: str) -> None:
    batch = tokenize(BYTES, texts, Options(length=length, pad=pad, truncate=truncate, pad_id=0))  # pyright: ignore[reportArgumentType]
    whole = [list(words.encode()) for words in texts]
    width = length or max(map(len, whole))
    assert batch.ids.shape == batch.mask.shape == batch.positions.shape == batch.segments.shape == (len(texts), width)
    for at, ids in enumerate(whole):
        kept = ids[:width] if truncate == "right" else ids[max(0, len(ids) - width) :]
        valid = batch.mask[at].astype(bool)
        assert batch.ids[at][valid].tolist() == kept
        assert batch.positions[at][valid].tolist() == list(range(len(kept)))
        assert not batch.ids[at][~valid].any()
        assert batch.cut[at] == len(ids) - len(kept)
        assert valid.tolist() == sorted(valid.tolist(), reverse=pad == "right")


@pytest.mark.corpus
def test_truncation_keeps_what_the_template_adds() -> None:
    made = text("one two three four", str(fetch("minilm_tokenizer")), "bytes", "ids", 4, "right", -1, "right", True,
                True, "auto", "auto", 0, 0, 0, "int32")  # fmt: skip
    assert made.array.tolist() == [[101, 2028, 2048, 102]]
    assert made.array.dtype == np.int32
    assert made.fidelity == "The model's own tokenizer.json, run by the tokenizers library."
    assert made.facts["cut"] == [2]
    assert made.facts["table"] == [[0, 101, "[CLS]", 0, 0, True], [1, 2028, "one", 0, 3, False],
                                   [2, 2048, "two", 4, 7, False], [3, 102, "[SEP]", 18, 18, True]]  # fmt: skip


@pytest.mark.corpus
def test_an_empty_text_is_the_frame_and_padding() -> None:
    made = [
        text("", str(fetch("minilm_tokenizer")), "bytes", part, 4, "right", -1, "right", True, True, "auto", "auto",  # pyright: ignore[reportArgumentType]
             0, 0, 0, "int64").array.tolist()
        for part in ("ids", "mask", "positions", "segments")
    ]  # fmt: skip
    assert made == [[[101, 102, 0, 0]], [[1, 1, 0, 0]], [[0, 1, 1, 1]], [[0, 0, 0, 0]]]


def test_an_empty_text_of_bytes_has_no_tokens() -> None:
    batch = tokenize(BYTES, [""])
    assert batch.ids.shape == (1, 0)
    assert list(batch.table()) == []


@pytest.mark.corpus
def test_bos_and_eos_are_put_and_taken_as_asked(tmp_path: Path) -> None:
    from core.inputs.tokenizers.gguf import open_gguf

    tokenizer = open_gguf(str(fetch("vocab_llama_spm")))

    def ids(**how: str) -> list[int]:
        return tokenize(tokenizer, ["hi"], Options(**how)).ids[0].tolist()  # pyright: ignore[reportArgumentType]

    assert ids() == [1, 7251]
    assert ids(bos="no", eos="yes") == [7251, 2]
    assert ids(bos="yes", eos="yes") == [1, 7251, 2]


def test_an_id_beyond_the_embedding_table_is_refused_with_both_numbers() -> None:
    with pytest.raises(InputMismatch, match=r"token id 233 is beyond .* which has 128 rows"):
        tokenize(codebook("points"), ["é"], embedding=128)
    assert tokenize(codebook("points"), ["é"], embedding=234).ids.tolist() == [[233]]
    with pytest.raises(InputMismatch, match=r"token id 999 .* 300 rows"):
        tokenize(BYTES, ["a"], Options(length=2, pad_id=999), 300)


@pytest.mark.corpus
def test_the_embedding_table_of_a_model_is_found() -> None:
    model = open_model(fetch("minilm"))
    assert embedding_rows(model) == 30522
    model.close()


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="the text has 3 tokens, the row has room for 2"):
        tokenize(BYTES, ["abc"], Options(length=2, truncate="refuse"))
    with pytest.raises(UsageError, match="no text"):
        tokenize(BYTES, [])
    with pytest.raises(UsageError, match="no BOS token"):
        tokenize(BYTES, ["a"], Options(bos="yes"))
    with pytest.raises(UsageError, match="do not fit uint8"):
        tokenize(codebook("points"), ["€"]).generated("ids", "uint8")
    with pytest.raises(LimitExceeded, match="the tokens would have"):
        tokenize(BYTES, ["a"], Options(length=1 << 31))
