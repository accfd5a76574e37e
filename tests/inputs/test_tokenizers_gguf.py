"""GGUF's own vocabularies against the ids that llama.cpp publishes beside them, and against SentencePiece."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import gguf
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BrokenFile, LimitExceeded, Unavailable, UsageError
from core.inputs.tokenizers import load, merging
from core.inputs.tokenizers.gguf import Gguf, open_gguf
from core.inputs.tokenizers.pretokens import CUTS, cut
from core.inputs.tokenizers.types import Clock
from core.opening import open_model
from tests.corpus import fetch, names

EXCLUDED: dict[str, str] = {}
"""Vocabularies left out, with the upstream reason. None is."""

PAIRS = [name.removesuffix("_inp") for name in names("vocab_") if name.endswith("_inp")]
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
CORPUS = [
    "the quick brown fox jumps over the lazy dog", "she sells sea shells by the sea shore", "how much wood would a",
    "woodchuck chuck if a woodchuck could chuck wood", "peter piper picked a peck of pickled peppers", "naïve café",
    "1 2 3 4 5 67 89", "the rain in spain stays mainly in the plain", "to be or not to be that is the question",
    "ｆｕｌｌ ｗｉｄｔｈ ① ﬁne ½", "日本語 の 文",
] * 20  # fmt: skip


@cache
def opened(name: str) -> Gguf:
    return open_gguf(str(fetch(name)))


@pytest.mark.corpus
@pytest.mark.parametrize("name", [name for name in PAIRS if name not in EXCLUDED])
def test_ids_are_those_that_llama_cpp_publishes(name: str) -> None:
    texts = fetch(f"{name}_inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = fetch(f"{name}_out").read_text("utf-8").split("\n")
    expected = [[int(word) for word in line.split()] for line in lines]
    if len(expected) > len(texts):
        assert expected.pop() == []
    assert len(texts) == len(expected) >= 40
    found = open_gguf(str(fetch(name))).encode(texts, special=False, parse=False)
    assert [[token.id for token in row] for row in found] == expected


@pytest.mark.corpus
@given(TEXTS)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", ["vocab_gpt_2", "vocab_llama_spm", "vocab_phi_3"])
def test_what_is_encoded_decodes_to_itself(name: str, text: str) -> None:
    tokenizer = opened(name)
    (row,) = tokenizer.encode([text], special=False, parse=False)
    plain = text.replace("\u2581", " ") if tokenizer.info.specials.get("unk") == 0 else text
    assert tokenizer.decode([token.id for token in row]) == plain


@pytest.mark.corpus
@given(TEXTS)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", ["vocab_gpt_2", "vocab_llama_spm", "vocab_bert_bge", "vocab_deepseek_llm"])
def test_tokens_stand_in_order_inside_the_text(name: str, text: str) -> None:
    tokenizer = opened(name)
    (row,) = tokenizer.encode([text], special=True)
    assert all(0 <= token.start <= token.stop <= len(text) for token in row)
    starts = [token.start for token in row]
    assert starts == sorted(starts)
    if name != "vocab_bert_bge":  # BERT drops controls and white space
        covered = {at for token in row for at in range(token.start, token.stop)}
        assert covered == set(range(len(text)))


@pytest.mark.corpus
def test_a_character_of_four_tokens_is_in_each_of_them() -> None:
    (row,) = opened("vocab_llama_spm").encode(["a\U0001f999b"], special=False)
    assert [(t.start, t.stop) for t in row if t.piece.startswith("<0x")] == [(1, 2)] * 4


@pytest.mark.corpus
def test_bos_is_added_and_control_tokens_are_parsed_or_not() -> None:
    tokenizer = opened("vocab_llama_spm")
    (row,) = tokenizer.encode(["</s>hi"])
    assert [(t.id, t.special) for t in row][:2] == [(1, True), (2, True)]
    (plain,) = tokenizer.encode(["</s>hi"], parse=False)
    assert 2 not in [token.id for token in plain]
    assert tokenizer.decode([t.id for t in row]) == "hi"
    assert tokenizer.decode([t.id for t in row], special=True).startswith("<s></s>")


@pytest.mark.corpus
def test_an_empty_text_is_what_the_template_adds() -> None:
    assert [t.id for t in opened("vocab_llama_spm").encode([""])[0]] == [1]
    assert [t.id for t in opened("vocab_bert_bge").encode([""])[0]] == [101, 102]
    assert opened("vocab_gpt_2").encode([""]) == [()]


@pytest.mark.corpus
def test_load_takes_the_vocabulary_of_an_opened_model() -> None:
    model = open_model(fetch("vocab_gpt_2"))
    tokenizer = load.load(model)
    assert (tokenizer.info.kind, tokenizer.info.size, tokenizer.info.exact) == ("gguf", 50257, True)
    assert "pre-tokenizer gpt-2" in tokenizer.info.fidelity
    model.close()


@pytest.mark.parametrize("prefix", [True, False])
def test_the_unigram_kind_agrees_with_sentencepiece(tmp_path: Path, prefix: bool) -> None:
    library = _trained(tmp_path, "unigram", prefix)
    tokenizer = open_gguf(_as_gguf(tmp_path, library, "t5", prefix))
    texts = [*CORPUS[:11], "  the   quick ", "ｔｈｅ ﬁnest ① ½", "zzz QQQ 漢字 quick", "", " ", "don't stop\tnow"]
    for text, row in zip(texts, tokenizer.encode(texts, special=False, parse=False), strict=True):
        assert [token.id for token in row] == library.encode(text), text


def test_the_bpe_of_sentencepiece_agrees_with_its_library(tmp_path: Path) -> None:
    library = _trained(tmp_path, "bpe", True)
    tokenizer = open_gguf(_as_gguf(tmp_path, library, "llama", True))
    texts = [*CORPUS[:8], "zzz woodpeckers", "peppered spain", "\u00e9t\u00e9"]
    for text, row in zip(texts, tokenizer.encode(texts, special=False, parse=False), strict=True):
        assert [token.id for token in row] == library.encode(text), text


def test_a_pretokenizer_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="pre-tokenizer 'martian', which is not known"):
        open_gguf(_written(tmp_path, "gpt2", ["a", "b"], pre="martian", merges=["a b"]))


@pytest.mark.parametrize(
    ("field", "error"),
    [
        ({"merges": []}, "tokenizer.ggml.merges: is missing"),
        ({"types": [1]}, r"token_type: has the wrong length \(expected 2, found 1\)"),
        ({"merges": ["a b"], "pre": "gpt-2", "scores": [0.5]}, "scores: has the wrong length"),
    ],
)
def test_arrays_that_contradict_each_other_are_refused(tmp_path: Path, field: dict[str, object], error: str) -> None:
    with pytest.raises(BrokenFile, match=error):
        open_gguf(_written(tmp_path, "gpt2", ["a", "b"], **field))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff\xff\x7f1234", b"\x04\0\0\0" + b"\xff" * 8])
def test_a_normalization_table_that_points_outside_is_refused(tmp_path: Path, data: bytes) -> None:
    path = _written(tmp_path, "t5", ["<pad>", "</s>", "<unk>", "a"], charsmap=data)
    with pytest.raises(BrokenFile, match="precompiled_charsmap"):
        open_gguf(path).encode(["abc\xff"])


def test_a_special_id_outside_the_vocabulary_is_listed(tmp_path: Path) -> None:
    tokenizer = open_gguf(_written(tmp_path, "gpt2", ["a", "b"], merges=["a b"], pre="gpt-2", bos=7))
    assert [f.message for f in tokenizer.info.findings] == [
        "tokenizer.ggml.bos_token_id is 7, the vocabulary has 2 pieces; it is not used."
    ]
    with pytest.raises(UsageError, match="token id 2 is not in the vocabulary of 2"):
        tokenizer.decode([2])


def test_a_model_without_a_vocabulary_says_so(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "none.gguf", "llama")
    _close(writer)
    with pytest.raises(Unavailable, match="carries no vocabulary"):
        open_gguf(str(tmp_path / "none.gguf"))


def test_the_clock_ends_a_merge_of_many_letters() -> None:
    clock = Clock(0.0)
    with pytest.raises(LimitExceeded, match="longer than 0 s"):
        merging.merged("a" * 20_000, lambda left, right: float(len(left + right)), clock)


@given(TEXTS)
@settings(deadline=None)
def test_every_cut_leaves_all_of_the_text(text: str) -> None:
    for how in CUTS.values():
        ranges = cut(text, how.patterns, Clock())
        assert "".join(text[start:stop] for start, stop in ranges) == text
        assert all(start < stop for start, stop in ranges)


def _trained(folder: Path, kind: str, prefix: bool) -> sentencepiece.SentencePieceProcessor:
    (folder / "corpus.txt").write_text("\n".join(CORPUS), "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"), model_prefix=str(folder / "spm"), model_type=kind,
        vocab_size=180 if kind == "unigram" else 500, add_dummy_prefix=prefix, byte_fallback=kind == "bpe",
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=1.0, minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))


def _as_gguf(folder: Path, library: sentencepiece.SentencePieceProcessor, model: str, prefix: bool) -> str:
    ids = range(library.get_piece_size())
    types = [
        3 if library.is_control(i) else 2 if library.is_unknown(i) else 6 if library.is_byte(i) else 1 for i in ids
    ]
    message = _normalizer(library.serialized_model_proto())
    return _written(
        folder, model, [library.id_to_piece(i) for i in ids], types=types,
        scores=[library.get_score(i) for i in ids], charsmap=message if model == "t5" else None,
        prefix=prefix, unk=2,
    )  # fmt: skip


def _normalizer(data: bytes) -> bytes:
    """precompiled_charsmap (field 2) of the normalizer_spec (field 3) in sentencepiece_model.proto."""
    return _field(_field(data, 3), 2)


def _field(data: bytes, wanted: int) -> bytes:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 2:
            length, at = _varint(data, at)
            if key >> 3 == wanted:
                return data[at : at + length]
            at += length
        elif key & 7 == 5:
            at += 4
        else:
            _, at = _varint(data, at)
    return b""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def _written(
    folder: Path, model: str, pieces: list[str], *, types: list[int] | None = None,
    scores: list[float] | None = None, merges: list[str] | None = None, pre: str = "",
    charsmap: bytes | None = None, prefix: bool | None = None, unk: int | None = None, bos: int | None = None,
) -> str:  # fmt: skip
    path = folder / "made.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(pieces)
    if types is not None:
        writer.add_token_types(types)
    if scores is not None:
        writer.add_token_scores(scores)
    if merges:
        writer.add_token_merges(merges)
    if pre:
        writer.add_tokenizer_pre(pre)
    if charsmap is not None:
        writer.add_precompiled_charsmap(charsmap)
        writer.add_remove_extra_whitespaces(True)
    if prefix is not None:
        writer.add_add_space_prefix(prefix)
    if unk is not None:
        writer.add_unk_token_id(unk)
    if bos is not None:
        writer.add_bos_token_id(bos)
    _close(writer)
    return str(path)


def _close(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
