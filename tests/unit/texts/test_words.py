"""Words that make code hard to read become fewer."""

from pathlib import Path

import pytest

from tests.unit.texts import words

COUNTED = words.counted()


@pytest.mark.parametrize("tree", words.TREES)
def test_words_only_become_fewer(tree: str):
    allowed = words.allowed().get(tree, {})
    more = {
        word: (allowed.get(word, 0), count) for word, count in COUNTED[tree].items() if count > allowed.get(word, 0)
    }
    assert more == {}, "say it in other words: CONTRIBUTING.md (the table: tests/unit/texts/words.json)"


@pytest.mark.parametrize("tree", words.TREES)
def test_the_table_is_lowered_with_the_words(tree: str):
    fewer = {word: (n, COUNTED[tree].get(word, 0)) for word, n in words.allowed().get(tree, {}).items()}
    fewer = {word: (before, now) for word, (before, now) in fewer.items() if now < before}
    assert fewer == {}, "lower the table: python -m tests.unit.texts.words"


def test_words_are_found_in_docstrings_comments_and_strings(tmp_path: Path):
    file = tmp_path / "sample.py"
    file.write_text('"""It waits for\n    ever."""\nhe = 1  # nobody\n# waits for\n# ever\nx = f"{he} told {x}"\n')
    text = "\n\n".join(words.prose(file))
    found = {word: len(words.pattern(word).findall(text)) for word in ("for ever", "nobody", "told", "he", "anew")}
    assert found == {"for ever": 2, "nobody": 1, "told": 1, "he": found["he"], "anew": 0}
