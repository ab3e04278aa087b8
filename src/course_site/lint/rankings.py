"""Rankings in words: a sentence that names a library and says who leads needs a claim, or a value beside it.

`typed_numbers.py` knows the usual ways to say that one thing is faster than another. Here it is the other way round:
a sentence with the name of a library in it may hold no word of a race at all, unless it asks, supposes or cites, or
prints a value, which is held by its own words. Likewise for what is left of a peak: no share of it is told in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from course_site.lint.required_words import Guarded, words_in
from course_site.lint.speed_words import FRACTION, LIBRARY

_WINS = (
    r"\b(?:(?<!to )(?:beats|beaten|(?-i:(?<=[a-z] )beat)|best(?:s|ed)|tops|topped"
    r"|edges?\s+out|crush\w*|trounc\w+|dwarfs?|humbl\w+"
    r"|dethron\w+|laps|lapped|shames?|embarrass\w+|outr[ua]n\w*|outper\w+|outpac\w+|outdo\w*|overt(?:akes?|ook)|surpass\w*"
    r"|eclips\w+|rivals|rivalled|eats?\s+\w+\s+lunch)|(?:pulls?|pulled|draws?)\s+(?:away|ahead|level|even)"
    r"|un(?:beaten|rivalled|matched|challenged)|second\s+to\s+none|winner|loser|record\s+holder"
    rf"|(?:{LIBRARY}|kernels?|version|ours|we|(?<!what )it|they|both)\s+(?:(?!that\b|which\b)[a-z]+\s+)?"
    r"(?:wins?|won|loses?|lost)"
    r"|(?:faster|slower|quicker|sooner|speedier|better|worse|poorer|stronger|weaker)\s+than"
    r"|(?:is|are|was|were|runs?|stays?|comes?|lies?|stands?|far|well|just|still|already|now|not)\s+(?:\w+\s+)?"
    r"(?:ahead|behind)(?!\s+(?:it|this|that|the|each|every|a|one)\b)"
    r"|ahead\s+of|neck\s+and\s+neck|on\s+(?:a\s+)?par|(?:level|even)\s+with|a\s+match\s+for|matches\s+the"
    r"|(?:leaves?|left|falls?|fell|stays?|lags?|trails?)\s+(?:[\w’'.-]+\s+){0,4}(?:behind|standing|in\s+the\s+dust|far\s+back)\b"
    r"|(?:comes?|came|finish(?:es|ed)?|ends?|ended)\s+(?:in\s+)?(?:first|second|third|last)\b"
    r"|met\s+(?:its|their)\s+ma(?:ster|tch)|(?:cannot|can\s+not|can't|not|no\s+longer)\s+keep|keeps?\s+(?:up|pace)"
    r"|(?:catch(?:es)?|caught)\s+up|(?:has|have|had)\s+caught|gap\b[^.;:]{0,40}\b(?:gone|closed?s?|shut|small|tiny|nothing"
    r"|vanish\w*|rounding|none)|closes?\s+(?:half|most|all|the)\s|for\s+every\s+\w+\s+(?:that\s+)?\S+\s+\w+(?=,)"
    rf"|in\s+the\s+time\s+(?:of|that|it\s+takes)|before\s+(?:the\s+)?{LIBRARY}\s+(?:has\s+|had\s+|is\s+)?"
    r"(?:start|finish|done|begun|began|ends?)\w*|takes?\s+the\s+(?:lead|crown)|in\s+the\s+lead|has\s+the\s+edge"
    r"|(?:takes|needs|lasts|took|needed)\s+(?:\w+\s+)?(?:longer|less\s+time|more\s+time|shorter)"
    r"|as\s+(?:good|well|strong|far|high|capable)\s+as|has\s+found\s+its\s+(?:better|match|master|equal)"
    rf"|(?:only|no)\s+(?:other\s+)?{LIBRARY}\s+[^.;:]{{0,30}}\b(?:more|better|higher|further|closer)"
    rf"|while\s+(?:the\s+)?{LIBRARY}\s+(?:still|is|has)|(?:nothing|little)\s+left\s+to|tell\s+\w+\s+from\s+{LIBRARY}"
    rf"|(?:is|are|stands?|lies|ends?)\s+where\s+(?:the\s+)?{LIBRARY}|between\s+[^.;:]*\b(?:lies|is|are|there\s+is)\s+(?:an?\s+)?"
    r"(?:hair|nothing|little|whisker))\b"
)
# What a kernel of the page's own is among others, or at the end of a race.
_OF_OURS = (
    r"\b(?:our|this|that|the\s+(?:last|first|second|third|final|tuned|naive))\s+(?:[\w-]+\s+){0,2}"
    r"(?:kernel|multiply|version|copy|softmax|attention|rung)\s+(?:wins|(?:comes\s+in|finishes|ends)\s+(?:first|last))\b"
    r"|\b(?:is|was|are)\s+(?:by\s+far\s+)?the\s+(?:quickest|fastest|slowest)\s+(?:[\w-]+\s+){0,2}"
    r"(?:kernels?|multiply|attention|copy|softmax|version|of\s+all|of\s+them|on\s+(?:this|the)\s+\w+|anywhere|there\s+is)\b"
    r"|\bnothing\s+(?:[\w'’-]+\s+){1,6}(?:sooner|faster|quicker)\b"
)
_IN_A_CELL = (
    rf"^\s*\|[^|]*\b(?:ours?|k\d\d|{LIBRARY})[^|]*\|(?:[^|]*\|)*?\s*\**(?:first|second|third|last|fastest|slowest|quickest"
    r"|winner|best|worst)\**\s*\|"
)
_PEAK = (
    r"(?:(?:the|its|their|our|this|that)\s+(?:[\w'’-]+\s+){0,2}(?:peak|roof|machine|hardware|bandwidth|throughput"
    r"|data\s+sheet|ceiling)\b|(?:the|this|our|a)\s+(?:card|machine|hardware|GPU|tensor\s+cores|units?)\s+(?:can|has|have"
    r"|could|promises?|gives?|allows?|offers?)\b|what\s+(?:the\s+data\s+sheet|it|they)\s+(?:promises|can|could)\b)"
)
_NO_REST = (
    r"\b(?:tensor\s+cores?|lanes?|units?|pipes?|SMs?|card|machine|memory|bus)\s+(?:\w+\s+)?(?:hardly|scarcely|barely|almost"
    r"|nearly)\s+(?:ever|never|always)\s+(?:rests?|idles?|waits?|works?|is|are|stands?)\b",
    r"\buses?\s+(?:the\s+|all\s+of\s+the\s+)?(?:[\w-]+\s+){1,3}to\s+the\s+full\b",
    r"\b(?:speed|rate|throughput|bandwidth)\s+(?:is|was|equals)\s+(?:just\s+|nearly\s+|almost\s+)?that\s+of\s+the\s+"
    r"(?:data\s+sheet|card|machine|hardware|memory)\b",
    rf"\b[a-z]+\s+{FRACTION}\s+of\s+(?:the|its|our|a)\s+(?:machine|card|GPU|tensor\s+cores|hardware|lanes)\b",
)
_VAGUE = (
    r"(?:(?:nearly|almost|practically|virtually|just\s+about)\s+(?:all(?!\s+(?!of|that|the)\w)|everything|the\s+whole"
    rf"|nothing|none)|all\s+but\s+(?:an?|one)\s+(?:{FRACTION}|\w+)\b|(?:hardly|barely)\s+any\w*|next\s+to\s+nothing"
    r"|(?:very\s+)?little\s+(?:is\s+)?left|most\s+of\b(?!\s+(?:them|us|these))|the\s+(?:better|larger|greater|lion['’]s)\s+"
    r"(?:part|half|share)\s+of|an?\s+(?:sliver|hair|whisker|shade|trace)\s+(?:of|from|below|under))"
)
_WAYS = (
    ("a ranking in words, with a library's name", re.compile(_WINS, re.IGNORECASE)),
    ("a ranking in words", re.compile(_OF_OURS, re.IGNORECASE)),
    ("a ranking in words", re.compile(_IN_A_CELL, re.IGNORECASE)),
    ("a share of a peak in words", re.compile(rf"\b{_VAGUE}[^.;:,]{{0,50}}?\b{_PEAK}", re.IGNORECASE)),
    *(("a share of a peak in words", re.compile(pattern, re.IGNORECASE)) for pattern in _NO_REST),
    ("a share of a peak in words", re.compile(rf"\bof\s+{_PEAK}[^.;:,]{{0,30}}?\b{_VAGUE}", re.IGNORECASE)),
)
# Pieces of a library's name, of which one must be there: most sentences have none, and the first search takes long.
_OF_LIBRARY = (
    "cub", "cudnn", "cufft", "cutlass", "cute", "sdpa", "torch", "flash", "fa1", "fa2", "fa3", "fa4", "fa-", "triton",
    "thrust", "numba", "tensorrt", "vllm", "sglang", "liger", "xformers", "jax", "xla", "numpy", "cupy", "eager",
    "inductor", "nccl", "kittens", "tilelang", "mojo", "nvidia", "amd", "vendor", "librar", "competition",
)  # fmt: skip
_GUARDED = Guarded((_OF_LIBRARY, _WAYS[0][1]), *(pattern for _, pattern in _WAYS[1:]))
_LIBRARY = re.compile(rf"\b{LIBRARY}")
_ASKS = re.compile(r"\?[\"'”’)\]*_\s]*$")
_WHOLE_QUOTE = re.compile(r"\s*(?:#+\s*|[-*+]\s+)?[\"“”].*[\"“”]\s*¶?\s*")
_SUPPOSED = re.compile(
    r"\b(?:if|whether|unless|suppose|until|once|when(?:ever)?|where(?:ver)?|to|(?:can|could)(?!\s+not)|may|might|must|should|would"
    r"|does|do|did|no\s+longer|likely|perhaps|probably|expect|guess)\b[^,;:.]*$",
    re.IGNORECASE,
)
_TIED = "put it into a `/// claim`, or a value of a record into the sentence"


def rankings_in(sentence: str) -> Iterator[tuple[int, str, str]]:
    """Place, excerpt and reason of a ranking or a share in words, in a plain sentence without a value."""
    for place in _GUARDED.places(words_in(sentence)):
        what, pattern = _WAYS[place]
        found = [
            match for match in pattern.finditer(sentence) if not _SUPPOSED.search(sentence[: match.start()])
        ]
        if not found or (not place and not _LIBRARY.search(sentence)):
            continue
        if not _ASKS.search(sentence) and not _WHOLE_QUOTE.fullmatch(sentence):
            yield found[0].start(), " ".join(found[0][0].split()), f"{what}; {_TIED}"
        return
