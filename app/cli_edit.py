"""The verb that changes a model: edit."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from app.cli_text import Bar, cell, print_json
from core.errors import UnreadableFile, UsageError
from core.limits import MIB, check

DONE: Final = 0
_SCRIPT: Final = 16 * MIB


def add_edit(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``edit``."""
    add = parser.add_argument
    add("script", metavar="SCRIPT.json", help='edits: {"version": 1, "edits": [{"edit": "rename_node", ...}]}')
    add("-o", dest="output", metavar="OUT", required=True, help="the file to write")
    add("--overwrite", action="store_true", help="replace OUT where it exists")
    add("--external", action="store_true", help="write the tensors into a file beside OUT")
    add("--no-compare", action="store_true", help="do not run the model before and after")
    parser.set_defaults(work=edit)


def edit(options: argparse.Namespace) -> int:
    """Replay an edit script and write what it makes; every edit is checked before anything is written."""
    from core.edits.export import export_onnx
    from core.edits.kinds import kind_of, read_script, to_json
    from core.edits.onnx_document import OnnxDocument
    from core.edits.proof import prove
    from core.edits.revisions import History
    from core.edits.verify import prepare
    from core.identity import digest
    from core.opening import open_model

    edits = read_script(_text(options.script))
    if not edits:
        raise UsageError("the edit script has no edits", path=options.script)
    model = open_model(options.file)
    document = OnnxDocument.of(model)
    with Bar("reading") as bar:
        history = History.of(digest(model, bar))
    findings = list[dict[str, Any]]()
    for place, entry in enumerate(edits, 1):
        tried = prepare(document, entry)
        found = [{"edit": place, "severity": f.severity, "code": f.code, "message": f.message} for f in tried.findings]
        if not tried.ready:
            bad = next(f for f in tried.findings if f.severity == "error")
            raise UsageError(f"edit {place} ({kind_of(entry)}) cannot be made: {bad.message}", path=options.file)
        findings += found
        document, history = tried.after, history.committed(entry)
    with Bar("writing") as bar:
        written = export_onnx(
            document, options.output, external=options.external or None, overwrite=options.overwrite, progress=bar
        )
    checks: dict[str, Any] = {"onnx_checker": written.checked or "valid", "findings": findings}
    if not options.no_compare:
        checks["comparison"] = prove(model, open_model(options.output)).to_json()
    report = {
        "source": {"file": Path(options.file).name, "sha256": history.root},
        "bytes_reused": written.reused,
        "bytes_encoded": written.encoded,
        "fidelity": "unchanged tensors byte for byte, messages encoded again",
    }
    data = {
        "revision": history.head,
        "edits": [to_json(entry) for entry in edits],
        "checks": checks,
        "written": [{"file": name, "bytes": size, "sha256": sha} for name, size, sha in written.files],
        "report": report,
    }
    if options.json:
        print_json(data)
    else:
        _print(data)
    return DONE


def _text(path: str) -> str:
    try:
        check("the bytes of the edit script", Path(path).stat().st_size, _SCRIPT, path=path)
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise UsageError("is no UTF-8 text", path=path) from None


def _print(data: dict[str, Any]) -> None:
    for item in data["written"]:
        print(f"written {cell(item['file'], 0)}, {item['bytes']:,} bytes, sha256 {item['sha256'][:16]}")
    print(f"revision {data['revision'][:16]} of {data['report']['source']['sha256'][:16]}, {len(data['edits'])} edits")
    for found in data["checks"]["findings"]:
        print(f"{found['severity']}: {cell(found['message'], 0)}")
    print(f"onnx checker: {cell(data['checks']['onnx_checker'], 0)}")
    proof = data["checks"].get("comparison")
    if proof is not None:
        print(f"before and after: {proof['verdict']}" + (f" ({cell(proof['reason'], 0)})" if proof["reason"] else ""))
        for output in proof["outputs"]:
            sqnr = "" if output["sqnr_db"] is None else f", {output['sqnr_db']:.1f} dB"
            print(f"  {cell(output['name'], 0)}: largest difference {output['max_abs']:.3g}{sqnr}")
