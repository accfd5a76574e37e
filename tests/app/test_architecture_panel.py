"""The memory table of the architecture panel, by hand."""

from app.components.architecture_panel import architecture_of, memory_table
from core import open_model
from core.architecture import Architecture
from tests.formats.research_files import write_huggingface


def test_memory_by_hand() -> None:
    # 1000 parameters: 4, 2, 1 and half a byte each. Cache: 2 * 3 layers * 2 * 5 tokens * 4 heads * 8 = 1920 elements.
    facts = Architecture("x", "y", "config.json", layers=3, heads=4, kv_heads=4, head_dim=8)
    table = memory_table(1000, facts, batch=2, length=5)
    assert table["weights"].str.replace("\u202f", " ").tolist() == ["4.00 kB", "2.00 kB", "1.00 kB", "500 B"]
    assert table["cache"].str.replace("\u202f", " ").tolist() == ["7.68 kB", "3.84 kB", "1.92 kB", "960 B"]
    assert table["both"].str.replace("\u202f", " ").tolist() == ["11.7 kB", "5.84 kB", "2.92 kB", "1.46 kB"]


def test_unknown_sizes_leave_the_cache_open() -> None:
    table = memory_table(1000, Architecture("x", "y", "config.json", layers=3), batch=1, length=1)
    assert set(table["cache"]) == {"–"}


def test_configuration_comes_from_the_folder(tmp_path) -> None:
    facts = architecture_of(open_model(write_huggingface(tmp_path)[0]))
    assert facts is not None
    assert (facts.model_type, facts.kv_heads) == ("llama", 2)
