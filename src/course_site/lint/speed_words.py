"""A quantity beside a word of speed is a measurement, or came from one.

`typed_numbers.py` knows how a speed is usually said. Here it is the other way round. In a sentence that speaks of
speed everything is refused that is no whole number of things: a percentage, a decimal, a share, a multiple, a unit of
what is measured. What may stand there is listed: shares of what can be counted, such as half of a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from course_site.lint.number_words import COUNTED, LARGE
from course_site.lint.required_words import Guarded, words_in
from course_site.pages.plain_text import HELD

WORD = "|".join([*COUNTED, *LARGE, "trillion", "dozen"])
LIBRARY = (
    r"(?:cuBLAS(?:Lt)?|cuDNN|cuFFT|CUTLASS|CuTe|SDPA|PyTorch|[Tt]orch(?:\.\w+)*|FlashInfer|FlashAttention"
    r"(?:-?\d)?|FA-?[1-4]|Triton|Thrust|CUB|Numba"
    r"|TensorRT(?:-LLM)?|vLLM|SGLang|Liger|xFormers|JAX|XLA|NumPy|CuPy|eager|Inductor|NCCL|ThunderKittens"
    r"|TileLang|Mojo|NVIDIA|AMD"
    r"|(?:the\s+)?(?:vendor|library|libraries|competition))\b"
)
FRACTION = (
    r"(?:hal(?:f|ves)|thirds?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|elevenths?|twelfths?"
    r"|\w+teenths?|\w+tieths?|hundredths?|thousandths?)"
)


def _any(words: str) -> str:
    """Return a pattern for any one of these words, which are separated by blanks."""
    return f"(?:{'|'.join(words.split())})"


# --- what speaks of speed ----------------------------------------------------------------------------------

_MEASURED = r"""
    speed\w* sped throughput bandwidth laten(?:cy|cies) efficien\w+ utili[sz]\w+ occupan\w+ performance MFU HFU
    IPC runtimes? run\s+times? wall\s+clock duration overhead roof(?:line)? peak ceiling data\s+sheet brochure
    (?:hit|miss)\s+rate (?:the|its|our|their)\s+time energy watts? \w*joules? (?:tera|giga|peta)flops?
    [TGP]FLOP\S* [TG]B/s [MG]Hz stalls? stalled idl(?:e|es|ed|ing) busy unused cycles? issue\s+slots?
    active\s+warps pipes milliseconds? microseconds? warm-?up autotun\w*
    """
_CHANGED = r"""
    faster slower quicker sooner dearer slow-?down times\s+(?:worse|better) slow(?:s|ed|ing) speeds
    accelerat\w+ hurts? as\s+(?:fast|long|quick|slow)\w*\s+as ahead
    (?:cent|points|times|far|well|falls|lands)\s+behind behind\s+by lags? lagged trail(?:s|ed|ing)
    beats\s+(?:the|its|our) beaten outr[ua]n\w* outper\w+ outpac\w+ wins? won lo(?:ses|st) gain(?:s|ed|ing)?
    sav(?:es|ed|ing|ings) shav\w+ squeez\w+ bump boost\w* improv\w+ advantage parity wash shrinks? shrank slid
    slides knocked wast\w+ saturat\w+ sustain\w* deliver(?:s|ed)? realises? attain\w* achiev\w+ reach(?:es|ed)
    baseline memcpy pace shy\s+of short\s+of away\s+from cost\s+us earned\s+us gives?\s+us
    """
_OURS = (
    r"(?:our\s+(?:[\w-]+\s+){0,2}(?:kernels?|scan|gemm|gemv|softmax|copy|version|path|transpose|reduction|norm)"
    r"|ours)"
)
_SPEED = Guarded(
    *(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            LIBRARY,
            r"%\s*behind",
            rf"\b{_OURS}\b",
            *(rf"\b(?:{word})\b" for word in f"{_MEASURED} {_CHANGED}".split()),
        )
    )
)

# --- what is no whole number of things ----------------------------------------------------------------------

_COUNT = (
    rf"(?:(?<![\w.#^/])\.?\d(?:[\d,.]*\d)?k?(?!\w)|√\d+|\b(?:{WORD})(?:(?:\s+and)?[\s-]+(?:{WORD}))*"
    r"(?:[\s-](?:odd|some)|\s+and\s+some|\s+and\s+an?\s+(?:half|third|quarter))?\b)"
)
SHARE = (
    r"(?:\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|[a-z]+t(?:y|een))[\s-]+(?:and\s+an?\s+)?(?:[a-z]+\s+)?"
    rf"{FRACTION}\b|\d*[½⅓⅔¼¾⅕⅛⅜⅝⅞]"
    r"|(?<!other )(?<!first )(?<!second )(?<!harder )(?<!upper )(?<!lower )(?<!far )(?<!near )\bhalf\b)"
)
_MULTIPLE = (
    r"\b(?:(?:twice|thrice)(?=\s+(?:as|the|that|what|its|our|faster|slower)\b)"
    r"|(?:doubl|tripl|trebl|quadrupl|quintupl|halv)(?:es|ed|ing))\b"
)
_THINGS = _any(
    r"""
    bytes? words? warps? blocks? windows? tiles? box(?:es)? numbers? rows? columns? threads? lanes? rooms?
    seats? lists? pages? evening session lecture hours? minutes? cards? matri(?:x|ces) squares? vectors?
    registers? elements? bits? digits? lines? SMs? keys values tokens? heads? files? trays? cooks? hands?
    kernels? width length precision floats? way grid answers? inputs? outputs? people students? course picture
    image tables? sums? sheets? stages? steps? formats? mantissa banks? brigade groups? copies products?
    stores? problem cache L2 chip die loops? story stairs road arithmetic multiply-adds? FLOPs operations mills
    pantry shelf menu batch pair board half bars? wave work FLOPs? yours them range instructions reads loads
    writes calls trips multiplying bites
    """
)
_OF_THINGS = re.compile(
    r"\s*(?:times\s+|as\s+many\s+)?(?:of\s+)?"
    r"(?:(?:an?|the|its|their|our|your|that|this|each|every|all|those|these|his|her)\s+)?"
    rf"(?:[\w-]+\s){{0,1}}?{_THINGS}\b(?!\s+(?:cycles|time|slots|stalls|rate|bandwidth))",
    re.IGNORECASE,
)
_AMOUNTS = Guarded(
    *(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            rf"(?!100\b){_COUNT}[\s-]*(?:%|per\s?cent\b|pct\b|(?:percentage\s+)?points\b(?!\s+(?:of|on|in)\b))",
            # a decimal that is no version, no setting and no coefficient
            r"(?<![\w.#^/§=\[\"-])(?<!--seconds )"
            r"(?<!section )(?<!sections )(?<!torch )(?<!Triton )(?<!CUDA )(?<!Python )"
            r"\d*\.\d{1,3}(?!\w|\.\d)(?!\s+[rgbs]\b)",
            r"\d[\d.]*\s*:\s*1\b(?=\s+[a-z])|(?<![\d:(])\b\d:\d\b(?![\d:]|\s+sparsity)",
            rf"(?:{_COUNT}|[①-⑳])[\s-]?fold\b|\b(?:{WORD})fold\b",
            r"(?<![\w.#^/])\d(?:[\d.,]*\d)?\s?(?:×|x\b)(?!\s*(?:[\d(=]|[A-Za-z]\b|(?-i:[A-Z])))",
            r"\b(?:is|was|by|of|at|to|an?|gets|got)\s+×\s*\d",
            rf"\bby\s+a\s+multiple\s+of\s+{_COUNT}",
            rf"{_COUNT}\s+to\s+(?:our|its|their|my)\s+{_COUNT}",
            rf"{_COUNT}\s+(?:against|versus|vs\.?)\s+(?:our|its|their|my)?\s*{_COUNT}",
            r"(?<![\w./])\d{1,2}/\d{1,2}\\?\s+of\s+(?:what\b|that\b|the\b|peak\b|"
            rf"{LIBRARY})",
            rf"(?:{LIBRARY}|\bours)[^.]*=\s*\d+\s*/\s*\d+",
            rf"{_COUNT}\s+cents\s+on\s+the\s+dollar|\b(?:a\s+)?couple\s+of\b",
        )
    )
)
# These may count things: two rows in four blocks.
_COUNTS = Guarded(
    *(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            rf"{_COUNT}\s+(?:[a-z-]+\s+){{0,2}}(?:in|out\s+of)\s+(?:a\s+)?(?!one\b){_COUNT}(?!\s*×)",
            r"\b(?:to|at|only)\s+\d+\s+of\s+\d+\b",
            r"\bevery\s+(?:second|third|fourth|fifth|sixth|tenth)\s+(?:cycle|tick|clock|slot|load|access)\b"
            r"|\bevery\s+other\s+issue\s+slot\b",
            rf"(?<!the )(?<!all ){_COUNT}\s+times\b"
            r"(?=\s+(?:\w+er\b|as\b|sooner|dearer|worse|better|less|in\s+the|the\b|over\b))",
            rf"\b(?:is|are|was|by|some|about|around|roughly)\s+{_COUNT}\s+times\s*[.;,]|{SHARE}\s+times\b",
        )
    )
)
_SHARES = Guarded(re.compile(rf"{SHARE}|{_MULTIPLE}", re.IGNORECASE))

# --- beside words that are common --------------------------------------------------------------------------------
#
# *Takes*, *costs*, *drops* and *time* stand in many sentences that say nothing of speed. Beside them only what is told
# as one tells of speed is refused.

_NUMBER = (
    rf"(?:(?<![\w.#^])\d(?:[\d,.]*\d)?k?[½⅓⅔¼¾⅛]?|\b(?:{WORD})(?:(?:\s+and)?[\s-]+(?:{WORD}))*(?:[\s-]odd"
    r"|\s+and\s+some)?\b)"
)
_PART = (
    r"(?:\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|[a-z]+t(?:y|een))[\s-]+(?:and\s+an?\s+)?"
    r"(?:half|third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|twentieth|hundredth)s?\b"
    r"|\bhalf\b|\d*[½⅓⅔¼¾⅕⅛⅜⅝⅞])"
)
_TIMES = r"(?:\b(?:doubl|tripl|quadrupl|quintupl|halv)(?:es?|ed|ing)\b|\b(?:twice|thrice)\b)"
_OF_PROGRAMS = (
    r"(?:(?:speed|throughput|bandwidth|latency|utili[sz]ation|MFU|HFU|efficiency|performance|runtime|run\s+time"
    r"|wall\s+clock|duration|roof(?:line)?|peak|data\s+sheet|brochure|occupancy|(?:hit|miss)\s+rate|rate|energy"
    rf"|traffic|clock|stalls?|issue\s+slots|time)\b|{LIBRARY})"
)
_VERBS = (
    r"\b(?:faster|slower|quicker|sooner|dearer|ahead|behind|beats?|trails?|par|outruns?|gain(?:s|ed)?|earn(?:s|ed)"
    r"|cuts?|costs?|reach(?:es|ed)?|achiev\w+|sustain\w*|saturat\w+|deliver\w*|hits|improv\w*|better|worse|drops?"
    r"|falls?|fell|rises?|rose|climbs?|is\s+worth|yields?|wastes?|saves?|grew|busy|served|leaves?|adds|takes?|took"
    r"|needs?|needed|north\s+of)\b"
)
_COMMON = Guarded(re.compile(rf"{_OF_PROGRAMS}|{_VERBS}", re.IGNORECASE))
_UP_TO_TWENTY = r"(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|a\s+hundred)"
# Each with pieces of words of which one must be there: most sentences have none, and a search takes long.
_PARTS = (
    "hal", "third", "quarter", "fift", "sixth", "seventh", "eighth", "ninth", "tenth", "ieth", "hundredth",
    *"½⅓⅔¼¾⅕⅛⅜⅝⅞",
)  # fmt: skip
_TOLD = Guarded(
    *(
    (hints, re.compile("".join(pattern), re.IGNORECASE))
    for hints, *pattern in (
        (("%", "cent", "pct", "points"),
         rf"(?!100\b){_NUMBER}[\s-]*(?:%|per\s?cent\b|pct\b|(?:percentage\s+)?points\b(?!\s+(?:of|on|in)\b))"),
        (("dollar", "of ", "parts", "part in", "out of", " in "),
         rf"{_NUMBER}\s+(?:cents\s+on\s+the\s+dollar|(?:out\s+)?of\s+(?:every|each)\s+{_NUMBER}|parts?\s+in\s+{_NUMBER}",
         rf"|out\s+of\s+{_NUMBER}|of\s+(?:100|a\s+hundred)\b|in\s+{_UP_TO_TWENTY}\b(?!\s+\w))"),
        (("fold", "factor", "magnitude"),
         rf"(?:{_NUMBER}|[①-⑳])[\s-]?fold\b|\bfactor\s+of\s+(?:about\s+|some\s+|roughly\s+)?{_NUMBER}",
         r"|\borders?\s+of\s+magnitude"),
        (("×", "x"), rf"{_NUMBER}\s?(?:×|x\b)(?!\s*(?:[\d(=]|[A-Za-z]\b|(?-i:[A-Z])))"),
        ((" times", " to ", "ratio"),
         r"(?<![\w.])\d\.\d+(?:\s+times|\s+to\s+\d\.\d+)|\bratio\s+(?:\w+\s+){0,3}\d\.\d"),
        (("fu", "tili", "occupancy", "rate"),
         r"\b(?:MFU|HFU|utili[sz]ation|occupancy|(?:hit|miss)\s+rate)\s+(?:\w+\s+){0,6}?(?:to|at|is|of)\s+(?:the\s+)?",
         rf"(?:\w+\s+(?=\w+ties\b))?{_NUMBER}"),
        ((" times",), rf"{_NUMBER}\s+times\s+(?:sooner|dearer|{_OF_PROGRAMS})",
         rf"|\b(?:is|are|was|by|some|about|around|roughly)\s+{_NUMBER}\s+times\s*[.;,]",
         rf"|{_PART}\s+times\s+(?:as\b|(?:the|its|that)\s+(?:\w+\s+)?{_OF_PROGRAMS}|{_VERBS})"),
        ((" to ",), rf"\b(?:outruns?|beats?|ahead|wins?)\b[^.;:]*\s{_NUMBER}\s+to\s+{_NUMBER}\b"),
        (_PARTS,
         r"\b(?:to|by|gains?|saves?|wastes?|at|cuts?)\s+(?:(?:about|nearly|roughly|some|only|almost)\s+)?", _PART,
         r"(?!\s+of\s+(?:a|the)\s+(?:number|row|tile|list|page|room|block|cache|evening|lecture|course)\b)"),
        (_PARTS, rf"{_PART}\s+(?:of\s+)?(?:(?:the|its|their|a|that|our|all)\s+)*(?:\w+\s+){{0,2}}?{_OF_PROGRAMS}",
         rf"|{_PART}\s+of\s+(?:the\s+)?(?:run|brochure|cycles|bus)\b"),
        (("doubl", "tripl", "upl", "halv", "twice", "thrice"),
         rf"{_OF_PROGRAMS}\s+(?:\w+\s+){{0,2}}?{_TIMES}|{_TIMES}\s+(?:\w+\s+){{0,2}}?{_OF_PROGRAMS}"),
    )
    )
)  # fmt: skip

# --- units of what is measured --------------------------------------------------------------------------------

_ALONE = Guarded(
    *(
    (hints, re.compile("".join(pattern), re.IGNORECASE))
    for hints, *pattern in (
        (("watt", "joule", "j", "w"),
         rf"{_COUNT}\s*(?:watts?|kilowatts?|(?:milli|micro|kilo)?joules?|(?-i:[mk]?J\b))",
         r"|(?-i:(?<![=\w])(?:\d{2,4}|\d+\.\d+)\s+[mk]?W\b(?!\s*[=*/×:]))"),
        (("hz",), rf"{_COUNT}\s*[MG]Hz\b"),
        (("tf", "gf"), r"\b\d[\d.]*\s*(?-i:[TG]Fs?)\b"),
        (("e-",), r"\b\d[\d.]*e-\d+\s*(?:s|seconds)\b"),
        (("$", "€", "£", "dollars", "euros", "cents"), rf"[$€£]\s?\d[\d.,]*|{_COUNT}\s+(?:dollars|euros|cents)\b"),
        ((" times",), rf"{_COUNT}\s+times\s+as\s+(?:long|fast|quick|slow)",
         r"|\d\.\d+\s+times\s+(?:[a-z]+er|as|more|less)\b"),
        (("clocks", "cycles", "ticks"), rf"{_COUNT}\s+(?:clocks|cycles|ticks)\s+(?:per|for\s+each|each)\b"),
        (("/",), r"(?<![\w./])\d/\d{1,2}\s+(?:faster|slower|quicker|less|more)\b"),
        (("-fold",), r"\b\d+\.\d+-fold\b"),
        (("ipc",), rf"{_COUNT}\s*IPC\b|\bIPC\s+(?:of|is|at)\s+{_COUNT}"),
        (("fold",), rf"^\W*(?:an?\s+)?(?:\d[\d.]*|{WORD})-?fold\W*$"),
        (("magnitude", "factor of"), rf"\borders?\s+of\s+magnitude\b|\bfactor\s+of\s+(?:\w+\s+)?(?:√|{_COUNT})"),
        (("out of",), rf"{_COUNT}\s+(?:(?!numbers|keys)\w+\s+)?out\s+of\s+(?:an?\s+)?{_COUNT}"),
        (("warp",), rf"{_COUNT}\s+warps?\s+in\s+{_COUNT}"),
        (("only", "just"), r"\b(?:only|just)\s+\d+\s+of\s+the\s+\d+"),
        (("hundred",), r"\b(?:\d+|\w+ty(?:-\w+)?)\s+in\s+(?:a|every)\s+hundred\b"),
        (("percentage",), rf"{_COUNT}\s+percentage\s+points\b"),
        ((" to ",), r"\d\.\d+\s+to\s+(?:1|one)\b(?!\.\d)|\d+\s*s\s+to\s+\d+|\bfrom\s+\d+\s+to\s+\d+\s+on\s+the\s+per"),
        (("hour", "kwh"), rf"(?:{_COUNT}|{SHARE}\s+of\s+an?)\s+(?:kilo)?watt-?hours?|\bkWh\b"),
        (("jit", "warm", "cold start", "build", "start-up", "startup"),
         rf"\b(?:JIT|warm-?up|cold\s+start|build(?:s|ing)?|start-?up)\b[^.]*?{_COUNT}\s+(?:and\s+an?\s+half\s+)?",
         r"(?:minutes?|hours?|seconds?|min|h|s)\b"),
        ((" times",), r"(?<!= )(?<!: )\b\d+\.\d+\s+times\b",
         rf"|{_COUNT}\s+times\s+as\s+(?:dear|cheap|costly|expensive|efficient|heavy)\b"),
        (("/",), r"\b\d/\d+\s+of\s+the\s+(?:\w+\s+)?(?:time|rate|speed|bandwidth|pace)\b"),
        (("-digit",), r"\b(?:single|double|triple)-digit\s+\w+"),
        ((" per ",), rf"{_COUNT}\s+(?:\w+\s+)?per\s+",
         r"(?:request|load|access|warp|instruction|scheduler|(?:milli|micro|nano)second)\b"),
        (("of every",), rf"\bof\s+every\s+{_COUNT}\s+\w+,\s+{_COUNT}"),
        ((" min ",), r"(?<![\w\"“])\d+\s*min\s+\d+\s*s\b"),
        (("percent", "per cent"), r"\bsingle\s+per\s?cent\b"),
        (("ies",), r"\bin\s+the\s+(?:low|mid|high)\s+\w+ies\b"),
        (("average",), r"\b\d+\s+of\s+\d+[^.]*\bon\s+average\b"),
        (("ratio",), r"\bratio\b[^.]*\d\s*:\s*\d"),
        (("in the time", "in the same time"),
         rf"\bin\s+the\s+(?:same\s+)?time\b[^.]*\b(?:needs?|takes?|took|finish\w*|does|did)\b[^.]*{_COUNT}"),
        ((" of ",), r"(?<![\w.])0?\.\d+\s+of\s+(?:the|what|its|our)\b"),
        (("minutes", "seconds"),
         rf"{_COUNT}\s+minutes?\s+and\s+{_COUNT}\s+seconds|\bfrom\s+{_COUNT}\s+seconds\s+to\s+{_COUNT}"),
        (("cycles", "ticks", "clocks"),
         r"(?<!= )\b\d{2,}[kM]?\s+(?:clock\s+)?(?:cycles|ticks|clocks)\b(?!\s+of\s+work)",
         r"|\b(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred)[\w-]*\s+(?:cycles|ticks|clocks)\b"),
        (("access", "load", "hit", "miss", "request", "fetch", "read"),
         rf"{_COUNT}\s+(?:access(?:es)?|loads?|hits?|miss(?:es)?|requests?|fetch(?:es)?|reads?)\s+in\s+{_COUNT}"),
        ((" of ",), r"\b\d+\.\d+\s+of\s+\d+\b"),
        (("/s", "per second", "s−1", "s-1", "s⁻"),
         rf"(?<!RTX )(?<!GTX )(?:{_COUNT}|\b\d[\d.]*e\d+)\s*(?:(?:[kKMGT]|thousand|million|billion|trillion)\s*)?"
         r"[A-Za-z-]+\s?"
         r"(?:/s(?:ec(?:ond)?)?\b|\s+per\s+second\b|s\s?[⁻−-][¹1]\b)"),
        (("speed",), rf"\bspeed-?\s?up\b[^.;]*?{_COUNT}\s+times\b|{_COUNT}\s+times\b[^.;]*\bspeed-?\s?up"),
        (("doubled", "tripled", "quadrupled", "halved"),
         r"\b(?:kernel|version|copy|ours|it|we)\s+(?:has\s+|have\s+)?(?:more\s+than\s+|nearly\s+|almost\s+)?"
         r"(?:doubled|tripled|quadrupled|halved)\b"),
        (("every", "each"), rf"{_COUNT}\s+(?:(?!bytes|words|rows|lanes)[a-z-]+\s+){{0,2}}(?:of|in|out\s+of)\s+",
         rf"(?:every|each)\s+{_COUNT}"),
        (("'s ", "’s "), rf"{LIBRARY}['’]s\s+\d+"),
        (("another", "extra", "further"), rf"\b(?:another|extra|further)\s+{_COUNT}\s*(?:%|per\s?cent|points)"),
        (("points",), rf"{_COUNT}\s+points\s+of\s+{LIBRARY}"),
        (("×", "x"), r"^[\s\"“#*-]*×\s?\d[\d.]*[\s\"”.!*]*$",
         r"|(?<![\w.#^/])\d(?:[\d.,]*\d)?(?:×|x\b)"
         r"(?=\s+(?:on|at|for|in|over|than|win|gain|the|that|our|its|as|more|less)\b|[.,;:!)]|$)"),
        (("second",),
         rf"\b(?:(?:a\s+)?(?:whole|full|single|mere)|half\s+an?|{SHARE}\s+of\s+an?)\s+(?:milli|micro|nano)?second\b"
         rf"(?!\s+\w+\s+(?:of|for)\b)|{_COUNT}\s+(?:milli|micro|nano)seconds\b",
         rf"|(?!one\b){_COUNT}k?\s+(?!times\b|to\b)(?:\w+\s+){{0,4}}?(?:a|per|each|every)\s+second\b",
         r"(?=\s*(?:[.,;:!)]|$|per\b|for\b|on\b|at\b|out\b|across\b|when\b|with\b|from\b|the\b))",
         rf"|\bevery\s+second\b(?=\s+(?:our|the|this|it|we)\b).*?{_COUNT}",
         rf"|{_COUNT}\s+(?:\w+\s+){{1,4}}every\s+second\b(?!\s+row)",
         rf"|\b(?:takes?|took|burns?|needs?|costs?|to|in|within|under|after)\s+(?!one\b){_COUNT}\s+seconds\b",
         r"|\b(?:one|a)\s+second\s+of\s+(?:our|this|the)\s+(?:\w+\s+)?kernel"),
        (("tera", "giga", "peta", "gig", "micro", "milli", "nano"),
         rf"(?:{_COUNT}|{SHARE})\s+(?:of\s+an?\s+)?(?:tera|giga|peta|gigs?|micros)(?:flops?)?\b",
         r"|\b(?:tera|peta)flops?\s+(?:barrier|mark|line)\b|\bsub-?(?:milli|micro)second\b",
         r"|\ba\s+(?:single|dozen)\s+(?:micro|milli|nano)second|(?-i:\b[IVXLC]{2,})\s+(?:micro|milli|nano)seconds?\b",
         rf"|(?:{_COUNT}|\ban?)\s+(?:tera|giga|peta)-?(?:flop|op|byte)s?\s+(?:per|a|each|every)\s+second\b",
         rf"|{_COUNT},\s+(?:the|in)\s+(?:\w+\s+)?(?:tera|giga|peta)flops\b"),
        (("µs", "ms", "ns"), r"(?-i:\b[IVXLC]+)\s+(?:µs|ms|ns)\b"),
        (("clock", "tok/s"), rf"(?!one\b){_COUNT}k?\s+(?:\w+\s+){{0,4}}?(?:a|per|each|every)\s+clock\b",
         rf"|{_COUNT}k?\s*tok/s"),
        (("cycles", "ticks", "clocks"),
         r"\b(?:every|over|after|needs?|takes?|costs?|some|about|around|than)\s+(?:(?:some|about|over)\s+)?",
         r"(?!(?:\d|one|two|three|four|five|six|seven|eight|nine)\s+(?:clock|cycle|tick))",
         rf"{_COUNT}\s+(?:clock\s+)?(?:cycles|ticks|clocks)\b"),
        (("half",), r"\bhalf\s?way\s+(?:through|to\s+peak)\b"),
        (("compil", "autotun", "prefill", "decod", "training", "nvcc"),
         rf"\b(?:compil|autotun|prefill|decod|training|nvcc)\w*\b.*?"
         rf"(?:{_COUNT}\s+(?:minutes?|hours?|seconds?|min|h|s)|\ba\s+(?:minute|hour))\b",
         rf"|{_COUNT}\s+(?:minutes?|hours?|seconds?|min|h)\b.*?\b(?:compil|autotun)\w*"),
        (("mfu", "hfu", "tili", "occupancy", "rate"),
         r"\b(?:MFU|HFU|utili[sz]ation|occupancy|(?:hit|miss)\s+rate)\s+(?:\w+\s+){0,6}?(?:to|at|is|of)\s+(?:the\s+)?",
         rf"(?:\w+\s+(?=\w+ties\b))?(?:{_COUNT}|{SHARE})"),
        ((" to ",), rf"\b(?:outruns?|beats?|ahead|wins?)\b[^.;:]*\s{_COUNT}\s+to\s+{_COUNT}\b"),
        (("per", "roof"), rf"\b(?:per\s?cent|%)\s+of\s+(?:the\s+)?(?:roofline|peak)\b[^.]*:\s*{_COUNT},\s*{_COUNT}"),
    )
    )
)  # fmt: skip
# A percentage, but for one that somebody is quoted with, and for what formats one.
_SHARES_OF_ALL = Guarded(
    re.compile(
        rf"(?!100\b)(?<![\"“])(?!(?<!.)\d*\.\d%$){_COUNT}[\s-]*(?:%(?!\s*[\dN\"”])|per\s?cent\b|pct\b)(?!\s*[\"”])",
        re.IGNORECASE,
    )
)
_QUOTED_WHOLE = re.compile(r"\s*(?:#+\s*|[-*+]\s+)?[\"“”].*[\"“”]\s*¶?\s*")
_SAID = re.compile(
    r"(?:\b(?:says?|said|asks?|answers?|reads?)\b[^\"“”]{0,12}|\([a-z]\)\s)[\"“][^\"“”]*[\"”]"
    r"(?:\s\([a-z]\)\s[\"“][^\"“”]*[\"”])*"
)
# Who speaks of trust in a number does not speak of the number.
_OF_STATISTICS = re.compile(
    r"\b(?:resamples?|samples|confidence|confident|quantiles?|percentiles?|interval|truth|tolerance|sure)\b",
    re.IGNORECASE,
)
# What a card can do, and the versions of tools, look like decimals.
_OF_VERSIONS = re.compile(
    r"\b(?:capabilit|versions?\b|compil|PTX ISA|Python \d|CUDA \d|arXiv|family|speak|needs \d)", re.IGNORECASE
)
_VERSION = re.compile(r"(?:7\.[05]|8\.[069]|9\.[0-3]|1[0-3]\.[0-3]|3\.1[0-4])")


def speaks_of_speed(sentence: str) -> bool:
    """Return whether a sentence says something of how fast a program is, or of what it makes of a card."""
    return _SPEED.found_in(sentence, words_in(sentence))


def beside_speed(sentence: str, words: frozenset[str]) -> Iterator[re.Match[str]]:
    """Quantities of a sentence that says something of a program's speed; `words` are those of `words_in`."""
    if _QUOTED_WHOLE.fullmatch(sentence):
        return  # what others say, set in quotation marks
    unquoted = _SAID.sub(lambda match: HELD * len(match[0]), sentence)
    if unquoted != sentence:
        sentence, words = unquoted, words_in(unquoted)
    of_speed = _SPEED.found_in(sentence, words)
    if of_speed or not _OF_STATISTICS.search(sentence):
        yield from _SHARES_OF_ALL.finditer(sentence, words)
    yield from _ALONE.finditer(sentence, words)
    if _COMMON.found_in(sentence, words):
        yield from _TOLD.finditer(sentence, words)
    if not of_speed:
        return
    of_versions = bool(_OF_VERSIONS.search(sentence))
    for match in _AMOUNTS.finditer(sentence, words):
        if not (of_versions and _VERSION.fullmatch(match[0])):
            yield match
    for match in _COUNTS.finditer(sentence, words):
        if not (_OF_THINGS.search(match[0]) or _OF_THINGS.match(sentence, match.end())):
            yield match
    for match in _SHARES.finditer(sentence, words):
        if not _OF_THINGS.match(sentence, match.end()):
            yield match
