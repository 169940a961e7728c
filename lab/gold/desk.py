"""The review in a terminal: one item on the screen, one key a decision, everything on the disk at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lab.gold.review import Item, enter, read, standing

KEYS = "a accept · r reject · e edit · 2 1 0 judge its passage anew · s skip · u undo · q quit"
CLAIM_KEYS = "a accept · r reject · s skip · u undo · q quit"
PASSAGE_KEYS = "2 answers · 1 in part · 0 does not · s skip · u undo · q quit"
Show = Callable[[Item, str, int, int], None]  # item, text around its span, place, of how many


def work(
    folder: Path, who: str, items: Sequence[Item], around: Callable[[Item], str], keys: Iterator[str], show: Show, ask: Callable[[str], str]
) -> int:
    """Goes through what this person has not decided yet; returns how many decisions were made. Ends with the keys, at `q`, or when nothing is left.

    `keys` gives one key at a time, `ask` a line of text (the new words of a question); both may end with EOFError or KeyboardInterrupt, and nothing is lost.
    """
    done = {item for _, item in standing(read(folder), who)}
    left = [item for item in items if item.name not in done]
    history: list[tuple[int, Item]] = []
    at = made = 0
    while at < len(left):
        item = left[at]
        show(item, around(item), at + 1, len(left))
        key = next(keys, "q").lower()
        if key == "q":
            break
        if key == "u":
            if history:
                at, undone = history.pop()
                enter(folder, who, undone, "undo")
                made -= 1
            continue
        if key == "s":
            at += 1
            continue
        if item.is_passage and key in "012":
            enter(folder, who, item, "judge", grade=int(key))
        elif item.source and not item.claim and key in "012":  # the question itself is still to be decided
            enter(folder, who, item.own_passage(), "judge", grade=int(key))
            history.append((at, item.own_passage()))
            made += 1
            continue
        elif not item.is_passage and key in {"a", "r"}:
            enter(folder, who, item, "accept" if key == "a" else "reject")
        elif not item.is_passage and not item.claim and key == "e":
            text = ask("new words: ").strip()
            if not text:
                continue
            enter(folder, who, item, "edit", text=text)
        else:
            continue  # a key that means nothing here
        history.append((at, item))
        made += 1
        at += 1
    return made


def single_keys() -> Iterator[str]:
    """Keys as they are pressed; lines where standard input is no terminal."""
    if not sys.stdin.isatty():
        for line in sys.stdin:
            yield line.strip()[:1] or "s"
        return
    try:
        import termios
        import tty
    except ImportError:  # Windows: a key and Enter
        while True:
            yield input("> ").strip()[:1]
    else:
        number = sys.stdin.fileno()
        while True:
            before = termios.tcgetattr(number)
            try:
                tty.setcbreak(number, termios.TCSADRAIN)  # what was typed ahead is kept
                key = os.read(number, 1).decode("ascii", "replace")
            finally:
                termios.tcsetattr(number, termios.TCSADRAIN, before)
            if not key or key == "\x04":
                return
            yield key
