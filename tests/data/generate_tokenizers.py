#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tokenizer_*.json: tokenizers as Hugging Face's `tokenizers` trains and saves them, and what it makes of texts.

Each file is {"tokenizer": tokenizer.json, "cases": [[text, ids, decoded], ...], "decoded": [[ids, text], ...]}: ids with the
tokens before a text, texts without special tokens.
"""
import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXT = (HERE.parents[1] / "examples" / "romeo_and_juliet.txt").read_text(encoding="utf-8")[:60000] + "naïve café — “日本語” 😀 " * 9
TEXTS = ["", " ", "a", "  a  b ", "Hello world!", "\n\n\tx\r\n y", "It's WE'LL 'ſ don'T", "1234567 3.14", "naïve cafe\u0301 — “日本語” 😀👩‍👦",
         "Привет שלום مرحبا ไทย हिन्दी 한국어", "a\0b\x01\x7f\x85\u180e\u3000\ufeffz", "if (x[i] != 0) {\n        return;\n    }", "▁▁a ▁b",
         "<s>go</s> <mask>\tnaive naively <r>  x", "<|end|>", "<|en<|end|>", "<0x41>", "aaaaaaaaaaaaaaaa", "the " * 9, "½ ² Ⅷ ٣ ﬁ İß",
         "a<r> \n<mask>b", "xnaive naive", "\u0301e", "\U000f1234"]


def write(name, t, n, alphabet=(), specials=(), change=None):
    t.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=n, initial_alphabet=list(alphabet), special_tokens=list(specials),
                                                      show_progress=False))
    t.add_tokens([AddedToken("naive", single_word=True), AddedToken("<r>", rstrip=True)])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    values = json.loads(t.to_str())
    if change:
        change(values)
    t = Tokenizer.from_str(json.dumps(values))
    rng = random.Random(3)
    texts = TEXTS + [TEXT[i:i + 40] for i in (rng.randrange(len(TEXT)) for _ in range(12))]
    cases = [[text, t.encode(text).ids, t.decode(t.encode(text).ids)] for text in texts]
    drawn = [[rng.randrange(3, t.get_vocab_size() + 3) if i % 2 else rng.randrange(3, 259) for _ in range(9)] for i in range(40)]
    lines = [json.dumps(line, ensure_ascii=False) for line in
             (values, *cases, *([ids, t.decode(ids)] for ids in drawn))]
    a, b = 1, 1 + len(cases)
    (HERE / f"tokenizer_{name}.json").write_text(
        '{"tokenizer": %s,\n"cases": [\n%s\n],\n"decoded": [\n%s\n]}\n' % (lines[0], ",\n".join(lines[a:b]), ",\n".join(lines[b:])),
        encoding="utf-8")


def byte_level(pre, norm=None, **model):
    t = Tokenizer(models.BPE(**model))
    t.normalizer, t.pre_tokenizer, t.decoder = norm, pre, decoders.ByteLevel()
    return t


def begins_with(token, id):
    return processors.TemplateProcessing(single=f"{token} $A", pair=f"{token} $A $B", special_tokens=[(token, id)])


def sentence_piece(norm, pre, decoder):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer, t.pre_tokenizer, t.decoder, t.post_processor = norm, pre_tokenizers.Metaspace(), decoder, begins_with("<s>", 1)

    def change(values):  # as converters write it: words are not split, bytes are no added tokens
        values["pre_tokenizer"] = pre
        values["added_tokens"] = [one for one in values["added_tokens"] if not one["content"].startswith("<0x")]
        values["model"]["merges"] = [" ".join(pair) for pair in values["model"]["merges"]]
    return t, change


def main():
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))
    write("gpt2", t, 420, alphabet, ["<|end|>"])
    t = byte_level(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                   normalizers.NFC(), ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begins_with("<s>", 1)])
    write("llama3", t, 420, alphabet, ["<|end|>", "<s>"])
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    late = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    t, change = sentence_piece(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, decoders.Sequence(late))
    write("llama2", t, 470, (), specials, change)
    t, change = sentence_piece(None, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
                               decoders.Sequence([decoders.Metaspace(prepend_scheme="first"), decoders.ByteFallback()]))
    write("metaspace", t, 470, (), specials, change)
    t = Tokenizer(models.BPE(unk_token="<u>"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Replace(Regex("[aeiou]{2,}"), "oo")])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\s|e"), "merged_with_next"), pre_tokenizers.Digits(True),
                                               pre_tokenizers.Split("o", "merged_with_previous"), pre_tokenizers.Punctuation("contiguous"),
                                               pre_tokenizers.Split(Regex(r"[^q-t]"), "removed", invert=True)])
    write("splits", t, 160, (), ["<u>"])
    t = Tokenizer(models.BPE(unk_token="<u>", fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(False), pre_tokenizers.WhitespaceSplit()])
    write("words", t, 160, (), ["<u>"])


if __name__ == "__main__":
    main()
