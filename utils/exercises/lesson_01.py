"""The exercises of lesson 1, text to token IDs."""

from itertools import product

import regex
import torch
from tiktoken_ext.openai_public import r50k_pat_str

from utils.exercises import Exercise
from utils.tokenizer import END_OF_TEXT, END_OF_TEXT_ID, get_tokenizer, pad_texts, text_to_ids


class Split(Exercise, number="1.A", where="section 1.2", asks="a list of strings"):
    cases = [
        ("hello--world",),
        ("two  spaces",),
        ("“Stop?!” he said… \n",),
        ("\troom12: café a_b",),
        ("it's 2πr=π_5€\r\n",),
    ]
    edges = [("",)]

    def right(text):
        return regex.findall(r"\w+|\s+|[^\w\s]+", text)

    def whitespace_lost(text):
        """hello--world comes out as one piece, and the pieces of two  spaces join to twospaces"""
        return text.split()

    def whitespace_dropped(text):
        """words and symbols are there, but the whitespace is lost: two  spaces cannot be restored"""
        return regex.findall(r"\w+|[^\w\s]+", text)

    def only_words(text):
        """only the words are there: symbols and whitespace are pieces too"""
        return regex.findall(r"\w+", text)

    def cut_at_each_space(text):
        """the text is cut at each space: the spaces are lost, and symbols stick to the words"""
        return text.split(" ")

    def split_at_punctuation(text):
        """these are the pieces of split_at_punctuation: it drops the whitespace, and knows only a few symbols"""
        return [piece for piece in regex.split(r"(--|[,.:;?!()]|\s)", text) if piece.strip()]

    def cut_only_at_whitespace(text):
        """nothing is lost, but symbols stick to the words: hello--world should be three pieces"""
        return [piece for piece in regex.split(r"(\s+)", text) if piece]

    def symbols_lost(text):
        """words and whitespace are there, but the symbols between them are lost"""
        return regex.findall(r"\w+|\s+", text)

    def whitespace_with_symbols(text):
        """nothing is lost, but a symbol and the whitespace beside it form one piece: they are two runs"""
        return regex.findall(r"\w+|\W+", text)

    def symbols_one_by_one(text):
        """nothing is lost, but each symbol is a piece of its own: keep a run of symbols together"""
        return regex.findall(r"\w+|\s+|[^\w\s]", text)

    def whitespace_one_by_one(text):
        """nothing is lost, but each space is a piece of its own: keep a run of whitespace together"""
        return regex.findall(r"\w+|\s|[^\w\s]+", text)

    def symbols_and_whitespace_one_by_one(text):
        """nothing is lost, but each symbol and each space is a piece of its own: keep runs of them together"""
        return regex.findall(r"\w+|\W", text)

    def characters(text):
        """each character is a piece of its own: keep a run of characters of one kind together"""
        return list(text)

    def empty_pieces(text):
        """the pieces are right, but there are empty ones among them: leave these out"""
        return regex.split(r"(\s+|[^\w\s]+)", text)

    def digits_apart(text):
        """room12 is cut in two: a run of letters and digits is one piece"""
        return regex.findall(r"[^\W\d]+|\d+|\s+|[^\w\s]+", text)

    def underscore_as_symbol(text):
        """a_b is cut in three: here _ counts as a letter"""
        return regex.findall(r"[^\W_]+|\s+|[^\w\s]+|_+", text)

    def gpt2_pre_tokens(text):
        """these are GPT-2's pre-tokens: a space is in one piece with the word after it, and room12 is cut in two"""
        return regex.findall(r50k_pat_str, text)

    def ascii_letters_only(text):
        """café is cut in two: é is a letter too, though not one of A to Z"""
        return regex.findall(r"[A-Za-z0-9_]+|\s+|[^A-Za-z0-9_\s]+", text)


_TEXTS = (" Good night.\n", "猫が好き", "が猫猫", "∩ and Zoë")


def _bytes(ids):
    return get_tokenizer().decode_tokens_bytes(ids)


class Decode(Exercise, number="1.B", where="section 1.7", asks="the text as one string"):
    cases = {repr(text): (get_tokenizer().encode_ordinary(text),) for text in _TEXTS}

    def right(ids):
        return get_tokenizer().decode(ids)

    def token_by_token(ids):
        """the English text is right, but 猫が好き comes out with several �"""
        return "".join(piece.decode("utf-8", errors="replace") for piece in _bytes(ids))

    def parts_of_characters_lost(ids):
        """猫 disappears: each of its tokens holds only some of its bytes, and these are lost"""
        return "".join(piece.decode("utf-8", errors="ignore") for piece in _bytes(ids))

    def parts_of_characters_escaped(ids):
        """猫 comes out as escapes, \\x and so on: join the bytes of all tokens first, then read them as text"""
        return "".join(piece.decode("utf-8", errors="backslashreplace") for piece in _bytes(ids))

    def parts_of_characters_refused(ids):
        """your function raises UnicodeDecodeError where a token holds only a part of 猫: join all bytes first"""
        return "".join(piece.decode("utf-8") for piece in _bytes(ids))

    def spaces_inserted(ids):
        """there is a space between every two tokens: a token already contains its own space where there is one"""
        return " ".join(get_tokenizer().decode([token_id]) for token_id in ids)

    def bytes_as_letters(ids):
        """each byte became a character of its own: UTF-8 uses up to four bytes for one character"""
        return b"".join(_bytes(ids)).decode("latin-1")

    def still_bytes(ids):
        """these are the right bytes, but still bytes: decode them to get a string"""
        return b"".join(_bytes(ids))

    def bytes_as_written_in_code(ids):
        """your text shows how Python writes bytes, b'…': decode the bytes instead"""
        return str(b"".join(_bytes(ids)))

    def list_of_pieces(ids):
        """this is a list with one piece per token, but 猫 takes several tokens: return one string"""
        return [get_tokenizer().decode([token_id]) for token_id in ids]


class Read(Exercise, number="1.C", where="section 1.3", asks="the text as one string"):
    # The bytes of these characters all have a letter in cp1252; one byte of ” has none.
    cases = {repr(text): (text.encode("utf-8"),) for text in (" plain\n", "“Zoë", "café — 5.5", "∩")}
    edges = {repr(text): (text.encode("utf-8"),) for text in ("”", "🐈", "")}

    def right(content):
        return content.decode("utf-8")

    def windows_code_page(content):
        """Zoë comes out as ZoÃ«, and “ as the three characters â€œ"""
        return content.decode("cp1252", errors="replace")

    def bytes_as_letters(content):
        """each byte became a character of its own: UTF-8 uses up to four bytes for one character"""
        return content.decode("latin-1")

    def only_ascii_left(content):
        """Zoë comes out as Zo: every character that is not ASCII is lost"""
        return content.decode("ascii", errors="ignore")

    def bytes_replaced(content):
        """ë comes out as two �, one for each of its bytes: read them together, as UTF-8"""
        return content.decode("ascii", errors="replace")

    def ascii_fails(content):
        """your function raises UnicodeDecodeError at the first character that is not ASCII: the bytes are UTF-8"""
        return content.decode("ascii")

    def bytes_escaped(content):
        """ë comes out as \\xc3\\xab: its two bytes are written as escapes, not read as UTF-8"""
        return content.decode("ascii", errors="backslashreplace")

    def bytes_as_written_in_code(content):
        """your text shows how Python writes bytes, b'…': decode the bytes instead"""
        return str(content)

    def encoded(content):
        """your function raises AttributeError: a text has the method encode, and bytes have decode"""
        return content.encode("utf-8")


def _merge(ids, pair, new_id):
    merged = []
    for token_id in ids:
        if merged and (merged[-1], token_id) == pair:
            merged[-1] = new_id
        else:
            merged.append(token_id)
    return merged


class Apply(Exercise, number="1.1", where="section 1.4", asks="a list of IDs"):
    cases = {
        "abcabab": (list(b"abcabab"), {(98, 99): 256, (97, 98): 257, (97, 256): 258, (257, 257): 259}),
        "dabcabcbc": (list(b"dabcabcbc"), {(97, 98): 256, (256, 99): 257, (98, 99): 258}),
        "aaaaaaa": (list(b"aaaaaaa"), {(97, 97): 256, (256, 256): 257, (256, 97): 258}),
    }
    edges = {
        "a merge that does not occur": (list("ébab".encode()), {(69, 98): 256, (97, 98): 257}),
        "no merges": (list(b"ab"), {}),
    }

    def right(ids, merges):
        for pair, new_id in merges.items():
            ids = _merge(ids, pair, new_id)
        return ids

    def only_the_first_merge(ids, merges):
        """only the first merge is applied: apply the others too, one after the other"""
        return _merge(ids, *next(iter(merges.items())))

    def only_the_last_merge(ids, merges):
        """only the last merge has an effect: each must start from the result of the one before"""
        return _merge(ids, *list(merges.items())[-1])

    def last_learned_first(ids, merges):
        """the result is that of merging from the last learned to the first: a later merge needs an earlier one's ID"""
        return Apply.right(ids, dict(reversed(merges.items())))

    def one_walk(ids, merges):
        """bytes are merged from left to right, and no new ID is merged again: make one merge after the other"""
        merged = []
        while ids:
            pair = tuple(ids[:2])
            merged.append(merges.get(pair, ids[0]))
            ids = ids[2:] if pair in merges else ids[1:]
        return merged

    def merged_at_once(ids, merges):
        """what is further left is merged first: make one merge in the whole row, and only then the next"""
        merged = []
        for token_id in ids:
            merged.append(token_id)
            while tuple(merged[-2:]) in merges:
                merged[-2:] = [merges[tuple(merged[-2:])]]
        return merged

    def sorted_by_pairs(ids, merges):
        """the merges are made in the order of their pairs: make them in the order in which they were learned"""
        return Apply.right(ids, dict(sorted(merges.items())))


class ByHand(Exercise, number="1.2", where="section 1.5", asks="a list of strings, one for each token"):
    def right():
        return ["th", "er", "e"]

    def lowest_rank_left_out():
        """er, of rank 256, is not merged: at each step, merge the pair of lowest rank, wherever it is"""
        yield from (["the", "re"], ["the", "r", "e"], ["th", "e", "re"], ["th", "e", "r", "e"])
        yield from (["t", "here"], ["t", "he", "re"], ["t", "he", "r", "e"], ["t", "h", "e", "re"])

    def pairs_left():
        """there is still a pair of neighbours in the vocabulary: merge until there is none"""
        yield from (["t", "h", "er", "e"], ["t", "h", "e", "r", "e"])

    def piece_not_in_the_vocabulary():
        """one of these pieces is not in the vocabulary: you can only merge what it has"""
        yield from (["th", "ere"], ["t", "h", "ere"], ["t", "her", "e"], ["ther", "e"], ["there"])

    def not_the_word():
        """joined, these pieces do not spell there: no letter may be missing, added or moved"""
        pieces = ["t", "h", "e", "r", "er", "th", "the", "re", "he", "here"]
        yield from ([*row] for length in (1, 2, 3) for row in product(pieces, repeat=length) if "".join(row) != "there")


class Unmerge(Exercise, number="1.3", where="section 1.4", asks="a list of integers"):
    cases = {
        "IDs two levels deep": ([257, 99, 256, 97, 257], {(97, 97): 256, (98, 256): 257}),
        "IDs six levels deep": (
            [261, 102, 259, 97, 258],
            {(97, 98): 256, (256, 99): 257, (100, 257): 258, (258, 256): 259, (101, 259): 260, (260, 260): 261},
        ),
    }
    edges = {
        "a merge that does not occur": ([256, 195, 169, 98], {(97, 98): 256, (256, 98): 257}),
        "no merges": ([97, 98], {}),
    }

    def right(ids, merges):
        for pair, new_id in reversed(merges.items()):
            ids = [part for token_id in ids for part in (pair if token_id == new_id else [token_id])]
        return ids

    def one_level(ids, merges):
        """only one level is undone: the parts of a merged ID can be merged IDs themselves"""
        parts = {new_id: pair for pair, new_id in merges.items()}
        return [part for token_id in ids for part in parts.get(token_id, [token_id])]

    def only_the_last_merge(ids, merges):
        """only the merge learned last is undone: undo the others too, from last to first"""
        return Unmerge.right(ids, dict([*merges.items()][-1:]))

    def pairs_in_the_list(ids, merges):
        """the list contains pairs: put the two parts of each in the list instead"""
        parts = {new_id: pair for pair, new_id in merges.items()}
        return [parts.get(token_id, token_id) for token_id in ids]

    def lists_in_the_list(ids, merges):
        """the list contains lists of parts: put the parts themselves in the list"""
        parts = {new_id: pair for pair, new_id in merges.items()}
        return [Unmerge.lists_in_the_list(parts[i], merges) if i in parts else i for i in ids]

    def one_list_per_id(ids, merges):
        """the bytes are right, but each ID has become a list of its own: put them all in one list"""
        return [Unmerge.right([token_id], merges) for token_id in ids]

    def parts_swapped(ids, merges):
        """the two parts of a pair are swapped: the left one comes first"""
        return Unmerge.right(ids, {pair[::-1]: new_id for pair, new_id in merges.items()})

    def bytes_dropped(ids, merges):
        """IDs below 256 are missing: they are already bytes and stay as they are"""
        return Unmerge.right([token_id for token_id in ids if token_id > 255], merges)

    def merged_ids_dropped(ids, merges):
        """the merged IDs are missing: replace each by its parts"""
        return [token_id for token_id in ids if token_id < 256]

    def looked_up_among_pairs(ids, merges):
        """your function raises KeyError for a merged ID: the keys of merges are pairs, and the IDs its values"""
        return [part for token_id in ids for part in (merges[token_id] if token_id > 255 else [token_id])]


class Counts(Exercise, number="1.4", where="section 1.5", asks="a list of six counts"):
    def right():
        return [3, 3, 3, 2, 3, 4]

    def words():
        """a token is not a word: letters, digits and symbols are cut apart even where no space is between them"""
        yield from ([1, 2, 1, 1, 1, 2], [1, 1, 1, 1, 1, 1], [1, 2, 1, 1, 1, 1])

    def characters():
        """these are the numbers of characters: a run of letters, of digits or of symbols is one pre-token"""
        yield from ([5, 8, 9, 3, 12, 4], [5, 8, 9, 3, 12, 6])

    def parts_not_counted():
        """symbols are tokens of their own, and so is whitespace that does not go with a word"""
        return [2, 2, 2, 2, 2, 2]

    def whitespace_not_counted():
        """the rest is right, but whitespace that is not in a word's token has its own tokens: here one per newline"""
        yield from ([3, 2, 3, 2, 3, 2], [3, 2, 3, 2, 3, 3])

    def symbols_with_the_word():
        """a symbol is not in one token with letters or digits, except in English endings such as 's"""
        yield from ([1, 3, 3, 2, 3, 4], [2, 3, 3, 2, 3, 4], [3, 3, 1, 2, 3, 4], [3, 3, 2, 2, 3, 4])
        yield from ([3, 3, 3, 2, 1, 4], [3, 3, 3, 2, 2, 4], [1, 3, 1, 2, 1, 4], [2, 3, 2, 2, 2, 4])

    def ending_with_the_word():
        """only I'm is wrong: the pattern cuts an English ending off its word"""
        return [3, 3, 3, 1, 3, 4]

    def ending_cut_up():
        """only I'm is wrong: the pattern keeps an English ending together"""
        return [3, 3, 3, 3, 3, 4]

    def runs_cut_up():
        """a run of digits is one pre-token, and so is a run of symbols"""
        yield from ([5, 3, 3, 2, 3, 4], [3, 3, 3, 2, 4, 4], [5, 3, 3, 2, 4, 4])

    def two_spaces():
        """only the two spaces are wrong: the lesson shows what becomes of the two before Zoë"""
        yield from ([3, 2, 3, 2, 3, 4], [3, 4, 3, 2, 3, 4])

    def two_newlines():
        """only the last is wrong: each \\n is one newline, and here each of the two is a token of its own"""
        yield from ([3, 3, 3, 2, 3, 2], [3, 3, 3, 2, 3, 3], [3, 3, 3, 2, 3, 6])


def _row(documents):
    """Return lists of IDs as one, with 50256 between them."""
    return [token_id for ids in documents for token_id in [*ids, END_OF_TEXT_ID]][:-1]


class Documents(Exercise, number="1.5", where="section 1.8", asks="one list of IDs"):
    # Each ends with a symbol, so that no token crosses to the next even where nothing separates them.
    cases = {
        "two documents": (["Mind the step!", "Ladders are wet."],),
        "a document that mentions <|endoftext|>": (["He typed <|endoftext|> here.", "And then?", "Nothing."],),
        "equal documents": (["Yes.", "No.", "Yes.", "Oh, yes.", "No.", "Yes."],),
        "empty documents": (["", "", "Rain.", "", "Fog.", ""],),
    }
    edges = {
        "one document": (["Only one document today."],),
        "whitespace around documents": (["  Low tide. ", "\nHigh tide.\n\n", " Slack. "],),
    }

    def right(documents):
        return _row(text_to_ids(document).tolist() for document in documents)

    def text_trusted(documents):
        """a document that only mentions <|endoftext|> is cut in two: a text must not be able to do that"""
        return text_to_ids(END_OF_TEXT.join(documents), allow_special=True).tolist()

    def separator_as_text(documents):
        """<|endoftext|> comes between the documents as ordinary text, in several tokens: put in the ID 50256"""
        return text_to_ids(END_OF_TEXT.join(documents)).tolist()

    def mention_refused(documents):
        """your function raises ValueError for a document that mentions <|endoftext|>: take it as ordinary text"""
        return _row(get_tokenizer().encode(document) for document in documents)

    def mention_removed(documents):
        """<|endoftext|> is missing from the document that mentions it: it is ordinary text there"""
        return Documents.right([document.replace(END_OF_TEXT, "") for document in documents])

    def empty_documents_lost(documents):
        """an empty document has lost its 50256: it is a document like any other"""
        return Documents.right([document for document in documents if document])

    def start_decided_by_content(documents):
        """empty documents at the start have lost their 50256: go by the index, not by what is there so far"""
        ids = []
        for document in documents:
            ids += [END_OF_TEXT_ID] * bool(ids) + text_to_ids(document).tolist()
        return ids

    def last_decided_by_content(documents):
        """a document that equals the last one has lost its 50256: go by the index, not by the content"""
        ids = []
        for document in documents:
            ids += text_to_ids(document).tolist() + [END_OF_TEXT_ID] * (document != documents[-1])
        return ids

    def after_the_last_too(documents):
        """50256 also follows the last document: here it comes only between two documents"""
        return [*Documents.right(documents), END_OF_TEXT_ID]

    def before_the_first_too(documents):
        """50256 also comes before the first document: here it comes only between two documents"""
        return [END_OF_TEXT_ID, *Documents.right(documents)]

    def equal_documents_lost(documents):
        """of equal documents only the first is there: each counts, however often it occurs"""
        return Documents.right([*dict.fromkeys(documents)])

    def only_the_first(documents):
        """only the first document is there: does the `return` come before the end of the loop?"""
        return text_to_ids(documents[0]).tolist()

    def only_the_last(documents):
        """only the last document is there: does each replace what is there so far?"""
        return text_to_ids(documents[-1]).tolist()

    def no_separator(documents):
        """nothing separates the documents: the model would read them as one"""
        return text_to_ids("".join(documents)).tolist()

    def lists_in_the_list(documents):
        """each document is a list within the list: put its IDs themselves in the list"""
        return _row([text_to_ids(document).tolist()] for document in documents)

    def one_list_per_document(documents):
        """each document is a list of its own: put all IDs in one list, with 50256 between documents"""
        return [text_to_ids(document).tolist() for document in documents]


class PadLeft(Exercise, number="1.6", where="section 1.10", asks="a batch and its mask"):
    # The ID of ! is 0, and that of a comma is 11.
    cases = {
        "two texts": (["Every effort moves you forward", "Every day"],),
        "pad_id=0": (["Last boat!", "Good night, and mind the step", " Finish!", "! Go\n"], 0),
        "pad_id=11": (["Low tide, and fog", "Wait"], 11),
    }
    edges = {"texts of one length": (["one", "two"],), "one text": (["Mind the step!"],)}

    def right(texts, pad_id=END_OF_TEXT_ID):
        rows = [text_to_ids(text).tolist() for text in texts]
        gaps = [max(map(len, rows)) - len(row) for row in rows]
        batch = torch.tensor([[pad_id] * gap + row for gap, row in zip(gaps, rows)])
        is_token = torch.tensor([[False] * gap + [True] * len(row) for gap, row in zip(gaps, rows)])
        return batch, is_token

    def padded_right(texts, pad_id=END_OF_TEXT_ID):
        """the padding is on the right: every text must end in the last column"""
        return pad_texts(texts, pad_id)

    def texts_reversed(texts, pad_id=END_OF_TEXT_ID):
        """the padding is on the left, but the texts run backwards"""
        return tuple(tensor.flip(1) for tensor in pad_texts(texts, pad_id))

    def ids_not_moved(texts, pad_id=END_OF_TEXT_ID):
        """the mask is right, but the IDs are still on the left"""
        return pad_texts(texts, pad_id)[0], PadLeft.right(texts)[1]

    def mask_not_moved(texts, pad_id=END_OF_TEXT_ID):
        """the IDs are right, but the mask still says that the tokens are on the left"""
        return PadLeft.right(texts, pad_id)[0], pad_texts(texts)[1]

    def mask_inverted(texts, pad_id=END_OF_TEXT_ID):
        """the mask is inverted: True means that the entry is a token"""
        return PadLeft.right(texts, pad_id)[0], ~PadLeft.right(texts)[1]

    def mask_false_everywhere(texts, pad_id=END_OF_TEXT_ID):
        """the IDs are right, but the mask is False everywhere: it is True where there is a token"""
        return PadLeft.right(texts, pad_id)[0], torch.zeros_like(PadLeft.right(texts)[1])

    def mask_true_everywhere(texts, pad_id=END_OF_TEXT_ID):
        """the IDs are right, but the mask is True everywhere: it is False where there is padding"""
        return PadLeft.right(texts, pad_id)[0], torch.ones_like(PadLeft.right(texts)[1])

    def integer_mask(texts, pad_id=END_OF_TEXT_ID):
        """the mask is right, but made of numbers: use True and False (torch.bool), which can select entries"""
        return PadLeft.right(texts, pad_id)[0], PadLeft.right(texts)[1].long()

    def mask_from_the_ids(texts, pad_id=END_OF_TEXT_ID):
        """the mask says that a token whose ID equals pad_id is padding: go by the lengths, not by the IDs"""
        return PadLeft.right(texts, pad_id)[0], PadLeft.right(texts, pad_id)[0] != pad_id

    def pad_id_ignored(texts, pad_id=END_OF_TEXT_ID):
        """the rows are always filled with 50256: fill them with pad_id"""
        return PadLeft.right(texts)

    def filled_with_0(texts, pad_id=END_OF_TEXT_ID):
        """the rows are always filled with 0: fill them with pad_id"""
        return PadLeft.right(texts, 0)
