"""Tokenizer files against ids that other programs made."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import pytest
import sentencepiece

from core.errors import BrokenFile, LimitExceeded, NotFound, Unavailable, UnknownFormat, UnreadableFile, UsageError
from core.inputs.tokenizers import native
from core.inputs.tokenizers.byte_level import LETTERS
from core.inputs.tokenizers.load import codebook, find, load
from core.opening import open_model
from tests.corpus import fetch
from tests.inputs.published_ids import BERT, GPT2

EMPTY: dict[str, object] = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": None, "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"},
}  # fmt: skip


def ids_of(path: object, texts: list[str], **how: bool) -> list[list[int]]:
    return [[token.id for token in row] for row in load(str(path)).encode(texts, **how)]


def written(folder: Path, **changes: object) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**EMPTY, **changes}))
    return path


@pytest.mark.corpus
def test_minilm_gives_the_ids_of_transformers() -> None:
    assert ids_of(fetch("minilm_tokenizer"), list(BERT)) == list(BERT.values())
    info = load(fetch("minilm_tokenizer")).info
    assert (info.exact, info.length, info.specials["cls"], info.specials["pad"]) == (True, 128, 101, 0)


@pytest.mark.corpus
def test_wordllama_gives_the_ids_published_for_its_vocabulary() -> None:
    """It is Llama 2's; llama.cpp publishes ids of the same vocabulary."""
    texts = fetch("vocab_llama_spm_inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = fetch("vocab_llama_spm_out").read_text("utf-8").split("\n")[: len(texts)]
    assert ids_of(fetch("wordllama_tokenizer"), texts, special=False) == [[int(w) for w in ln.split()] for ln in lines]


@pytest.mark.corpus
def test_vocab_and_merges_give_the_ids_of_transformers() -> None:
    fetch("gpt2_merges")
    tokenizer = load(fetch("gpt2_encoder"))
    assert (tokenizer.info.kind, tokenizer.info.size, tokenizer.info.specials) == ("merges", 50257, {"eos": 50256})
    rows = tokenizer.encode(list(GPT2))
    assert [[token.id for token in row] for row in rows] == list(GPT2.values())
    assert [tokenizer.decode(GPT2[text]) for text in list(GPT2)[2:8]] == list(GPT2)[2:8]
    (row,) = tokenizer.encode(["hi \U0001f44d<|endoftext|>"])
    assert [(t.start, t.stop, t.special) for t in row] == [(0, 2, False), (2, 4, False), (3, 4, False), (4, 17, True)]


@pytest.mark.corpus
def test_tiktoken_ranks_give_the_same_ids_as_the_merges(tmp_path: Path) -> None:
    """The ids of GPT-2's pieces are their ranks (tiktoken's r50k_base)."""
    byte = {letter: bytes((at,)) for at, letter in enumerate(LETTERS)}
    pieces = json.loads(fetch("gpt2_encoder").read_text("utf-8"))
    lines = [
        base64.b64encode(b"".join(byte[letter] for letter in piece)).decode() + f" {rank}"
        for piece, rank in pieces.items()
        if rank < 50256
    ]
    (tmp_path / "r50k_base.tiktoken").write_text("\n".join(lines) + "\n")
    tokenizer = load(tmp_path)
    assert (tokenizer.info.exact, tokenizer.info.specials) == (True, {"eos": 50256})
    assert [[token.id for token in row] for row in tokenizer.encode(list(GPT2))] == list(GPT2.values())
    (row,) = tokenizer.encode(["x<|endoftext|>y"])
    assert [(t.id, t.start, t.stop, t.special) for t in row] == [(87, 0, 1, False), (50256, 1, 14, True),
                                                                 (88, 14, 15, False)]  # fmt: skip
    assert tokenizer.decode([t.id for t in row]) == "xy"


@pytest.mark.corpus
def test_a_wordpiece_vocabulary_gives_the_ids_of_transformers(tmp_path: Path) -> None:
    pieces = json.loads(fetch("minilm_tokenizer").read_text("utf-8"))["model"]["vocab"]
    (tmp_path / "vocab.txt").write_text("\n".join(sorted(pieces, key=pieces.__getitem__)) + "\n", "utf-8")
    assert ids_of(tmp_path / "vocab.txt", list(BERT)) == list(BERT.values())
    info = load(tmp_path).info
    assert not info.exact
    assert "case is folded, judged by its pieces" in info.fidelity
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    cased = load(tmp_path)
    assert cased.info.exact
    assert [token.id for token in cased.encode(["Hello"])[0]] == [101, 100, 102]


def test_a_sentencepiece_model_gives_its_pieces_places_and_frame(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("the cat sat on the mat\nthe dog sat on the log\n" * 20)
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "c.txt"), model_prefix=str(tmp_path / "tokenizer"), vocab_size=60, model_type="bpe",
        minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    library = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    bare = load(tmp_path)
    assert (bare.info.kind, bare.info.size, bare.info.exact) == ("sentencepiece", library.get_piece_size(), False)
    (row,) = bare.encode(["the cat é sat"])
    assert [token.id for token in row] == library.encode("the cat é sat")
    assert [(t.start, t.stop) for t in row if t.id == library.unk_id()] == [(8, 9)]
    assert bare.decode(library.encode("the dog")) == "the dog"
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer"}')
    framed = load(tmp_path)
    assert framed.info.exact
    assert [t.id for t in framed.encode(["the cat"])[0]] == [*library.encode("the cat"), library.eos_id()]
    shutil.copy(tmp_path / "tokenizer.model", tmp_path / "sentencepiece.bpe.model")
    assert "count ids one higher" in load(tmp_path / "sentencepiece.bpe.model").info.fidelity


@pytest.mark.corpus
def test_the_tokenizer_beside_a_model_is_found() -> None:
    fetch("minilm_tokenizer")
    model = open_model(fetch("minilm"))
    assert find(model) == str(fetch("minilm_tokenizer"))
    model.close()


# --- files that nobody should trust -------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": ["nospace"]}}, "both have the id 0"),
        ({"model": {"type": "BPE", "vocab": {"\ud800": 0}, "merges": []}}, r"'\\ud800' holds half a surrogate pair"),
        ({"model": {"type": "BPE", "vocab": {"a": 10**18}, "merges": []}}, "is 1000000000000000000, allowed is 0"),
        ({"model": {"type": "Magic"}}, "model type is 'Magic'"),
        ({"model": 7}, "model is an integer, expected an object"),
        ({"added_tokens": [{"id": -1, "content": "<s>"}]}, "An added token is '<s>' with the id -1"),
    ],
)
def test_a_broken_tokenizer_is_refused_with_its_first_problem(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(BrokenFile, match=words):
        load(written(tmp_path, **changes))


def test_a_regular_expression_without_end_is_stopped(tmp_path: Path) -> None:
    pattern = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    tokenizer = load(written(tmp_path, pre_tokenizer=pattern))
    assert [f.code for f in tokenizer.info.findings] == ["tokenizer.regex"]
    with pytest.raises((BrokenFile, LimitExceeded)):
        tokenizer.encode(["a" * 5000 + "b"])


def test_a_text_that_doubles_forty_times_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    tokenizer = load(written(tmp_path, normalizer={"type": "Sequence", "normalizers": [double] * 40}))
    monkeypatch.setattr(native, "SECONDS", 1.0)
    with pytest.raises((LimitExceeded, BrokenFile)):
        tokenizer.encode(["a"])


def test_padding_of_a_trillion_in_the_file_is_not_done(tmp_path: Path) -> None:
    padding = {"strategy": {"Fixed": 10**12}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
               "pad_type_id": 0, "pad_token": "a"}  # fmt: skip
    assert ids_of(written(tmp_path, padding=padding), ["b"]) == [[1]]


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("x.model", b"\x0a\xff\xff\xff\x0f" + b"x" * 100, BrokenFile),
        ("x.tiktoken", b"YQ== 0\nYg== x\n", BrokenFile),
        ("tokenizer.json", b'{"model": ' + b"[" * 100_000, BrokenFile),
        ("tokenizer.json", b'{"a": 1, "a": 2}', BrokenFile),
        ("vocab.txt", b"hello\nworld\n", BrokenFile),
        ("vocab.json", b"{}", UnreadableFile),
        ("words.bin", b"\x00\x01", NotFound),
        ("tokenizer.model", b"\xff\xfe", UnknownFormat),
    ],
)
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, name: str, data: bytes, error: type[Exception]) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(error):
        load(tmp_path / name)


def test_too_long_a_text_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(LimitExceeded, match="characters to tokenize is 262145"):
        load(written(tmp_path)).encode(["a" * (1 << 18 | 1)])


def test_half_a_surrogate_pair_in_a_text_is_a_replacement_character(tmp_path: Path) -> None:
    model = {"type": "WordLevel", "vocab": {"a": 0, "\ufffd": 1}, "unk_token": "a"}
    assert ids_of(written(tmp_path, model=model), ["\ud800"]) == [[1]]


# --- codebooks ------------------------------------------------------------------------------


def test_codebooks_of_bytes_points_and_words() -> None:
    text = "hé \U0001f44d"
    assert [t.id for t in codebook("bytes").encode([text])[0]] == list(text.encode())
    assert [(t.start, t.stop) for t in codebook("bytes").encode(["é"])[0]] == [(0, 1), (0, 1)]
    assert [t.id for t in codebook("points").encode([text])[0]] == [104, 233, 32, 0x1F44D]
    for name in ("bytes", "points"):
        book = codebook(name)
        assert book.decode([t.id for t in book.encode([text])[0]]) == text
    words = codebook("words", 100, 3)
    (row,) = words.encode(["The cat, the CAT"])
    assert [t.piece for t in row] == ["The", "cat", ",", "the", "CAT"]
    assert row[0].id == row[3].id != row[1].id == row[4].id
    assert all(1 <= t.id < 100 for t in row)
    assert [t.id for t in codebook("words", 100, 4).encode(["The cat"])[0]] != [row[0].id, row[1].id]
    with pytest.raises(Unavailable, match="cannot be turned back"):
        words.decode([1])
    with pytest.raises(UsageError, match="token id 256 is not in the vocabulary of 256"):
        codebook("bytes").decode([256])
    with pytest.raises(NotFound, match="no codebook is called 'x'"):
        codebook("x")
