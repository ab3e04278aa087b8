"""What a typed performance number looks like: the words, the units, and the rules over one plain sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from course_site.numbers.bounds import bounds_of
from course_site.pages.plain_text import HELD

# --- the words ---------------------------------------------------------------------------------------

_WORD = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion"
    r"|trillion|dozen"
)
_WORDS = (
    r"(?:\b(?:an?\s+(?=hundred|thousand|million|billion|trillion|dozen))?"
    rf"(?:{_WORD})(?:(?:\s+and)?[\s-]+(?:{_WORD}))*\b)"
)
_DIGITS = (
    r"(?:(?<![A-Za-z0-9_.^])(?<!RTX )(?<!GTX )(?<!Gaudi )"
    r"\d+(?:[.,']\d+| \d{3}(?!\d))*(?:[eE][+-]?\d+)?"
    r"(?:\s*[×x·]\s*10\s*\^?\s*[-−]?[\d⁰¹²³⁴-⁹]+)?[⁰¹²³⁴-⁹]*(?:\^\d+)?\+?)"
)
NUMBER = rf"(?:{_DIGITS}|{_WORDS})"
_MANY = r"(?:(?:tens|dozens|hundreds|thousands|millions|billions|trillions)\s+of)"

_FORMAT = r"(?:bf16|fp16|fp32|fp64|tf32|fp8|fp4|int8|BF16|FP16|FP32|FP64|TF32|FP8|FP4|INT8)"
_QUALIFIER = (
    r"(?:dense|sparse|effective|sustained|peak|measured|achieved|HBM|tensor|matrix|real|useful|more"
    rf"|{_FORMAT})"
)
_SECOND = r"(?:s(?:ec(?:onds?)?)?(?![\w⁻])|second\b)"
_PER = rf"\s*(?:/\s*{_SECOND}|per\s+{_SECOND}|(?:a|each|every)\s+second\b|[·⋅]?\s*s\s*(?:⁻¹|\^?[-−]1))"
RATE = (
    r"(?:"
    # prefixed FLOPS in any spelling but TFLOP (a count), and the plain FLOPS of a rate
    r"[kKMGTPEZ](?:FLOPS|FLOPs|Flops|flops|OPS|ops)\b(?!/)|FLOPS\b|(?i:\b(?:kilo|mega|giga|tera|peta"
    r"|exa)-?flop(?:/?s)?\b)"
    rf"|[kKMGTPEZ]?(?:FLOPS?|FLOPs|Flops?|flops?|OPS?|Ops?|ops?){_PER}"
    rf"|(?:[kKMGTPE]i?)?(?:B|b|[Bb]ytes?|[Bb]its?){_PER}|[kMGTP]i?[Bb]ps\b|GT/s\b"
    rf"|(?i:(?:kilo|mega|giga|tera|peta)(?:byte|bit)s?){_PER}"
    r"|(?:(?:floating-point|integer|arithmetic|output|input|new|generated|memory|random|more|useful)\s+){0,2}"
    r"(?:operations?|additions?|multiplications?|multiply-adds?"
    r"|FMAs?|tokens?|tok"
    r"|samples?|images?|frames?|requests?|queries|iterations?|its?|steps?|elements?|instructions?|launches"
    r"|words?|rows?"
    rf"|transactions?){_PER}"
    r")"
)
TIME = (
    r"(?:(?:us(?![\w/-])|ns|µs|ms|usecs?|msecs?|nsecs?)(?![\w/])|(?i:(?:nano|micro|milli|pico)-?seconds?\b))"
)
_GAP = r"[\s\-–(\[]{0,3}"

_LIBRARY = (
    r"(?:cuBLAS(?:Lt)?|cuDNN|cuFFT|CUTLASS|CuTe|SDPA|PyTorch|[Tt]orch(?:\.\w+)*|FlashInfer|FlashAttention"
    r"(?:-?\d)?|FA-?[1-4]|Triton"
    r"|TensorRT(?:-LLM)?|vLLM|SGLang|Liger|xFormers|JAX|XLA|NumPy|CuPy|eager|Inductor|NCCL|ThunderKittens"
    r"|TileLang|Mojo|NVIDIA|AMD"
    r"|(?:the\s+)?(?:vendor|library|libraries|competition))\b"
)
_RIVAL = (
    rf"(?:{_LIBRARY}|(?i:naive|na[iï]ve|materiali[sz]ed|standard|teaching|plain|first|previous|tuned|baseline"
    r"|reference|kernels?)\b)"
)
_SPEED = (
    r"(?:speed(?:-?\s?ups?)?|throughput|bandwidth|performance|(?:run(?:ning)?|wall(?:-clock)?)[\s-]?time|runtime"
    r"|time(?!\s+(?:axis|step|budget|limit|slot|line|series|complexity))|latency|rate"
    r"|(?:FL)?OP/s|(?:[kMGTP](?:FLOP|B)/s)|FLOPS|TFLOPS|GFLOPS)(?![\w])"
)
_PEAK = (
    r"(?:(?:peak|roof(?:line)?|ceiling)(?!\s+(?:memory|usage|allocation|footprint|number))"
    r"|speed[\s-]of[\s-]light|SOL|line[\s-]rate|data[\s-]sheet|floor)(?![\w])"
)
_ADJECTIVES = (
    r"(?:(?:the|its|our|their|your|that|this|a|an)\s+)?(?:(?!of\b|and\b|or\b|in\b|for\b|session\b|reading\b"
    r"|class\b|lecture\b|teaching\b)[\w'’.-]+\s+){0,3}?"
)
_FASTER = r"(?:faster|slower|quicker|speedier|speed-?\s?ups?|slow-?downs?|sped\s+up)\b"
_BETTER = rf"(?:(?:more|less|higher|lower|better|worse|shorter|longer|greater)\s+{_ADJECTIVES}{_SPEED})"
_AS_FAST = (
    rf"(?:as\s+(?:fast|slow|quick|quickly|slowly)\b|as\s+(?:much|high|low|good|long)\s+{_ADJECTIVES}{_SPEED})"
)
_COMPARED = (
    rf"(?:{_FASTER}|{_BETTER}|{_AS_FAST}|(?:the|its|our|their|that)\s+{_ADJECTIVES}{_SPEED}|{_ADJECTIVES}"
    rf"{_PEAK}|{_LIBRARY})"
)
_OF_WHAT = rf"of\s+{_ADJECTIVES}(?:{_PEAK}|{_SPEED}|{_LIBRARY})"
_FRACTION = (
    r"(?:half|halves|thirds?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?"
    r"|thousandths?)"
)
_DIM = (
    r"(?![(]|[\s]*[\d{\[\\" + HELD + r"⟨πε]|\s*[A-Za-z](?:[\s·×*²)^/,.]|$))"
)  # not one more factor of a product

FILL = "fill it from a record with {{ … }}, or cite its source in the same sentence with [^key]"
CLAIM = (
    "put it in a `/// claim` whose condition holds it up, or cite its source in the same sentence with [^key]"
)


# The ways to type a performance number, in the order in which they are tried: kind, name, patterns. A "unit" is a
# number with a unit, a "ratio" a number that compares, a "word" a comparison without one.
_RULES = tuple(
    (kind, what, re.compile(pattern))
    for kind, what, *patterns in (
        ("unit", "a typed rate",
         rf"(?:{NUMBER}|{_MANY}){_GAP}(?:{_QUALIFIER}\s+){{0,2}}{RATE}"),
        ("unit", "a typed time",
         rf"(?:{NUMBER}|{_MANY}){_GAP}{TIME}",
         r"(?i:\b(?:about|around|roughly|nearly|almost|only|just|under|over|within|than|takes?|took|costs?)\s+"
             rf"(?:half\s+)?an?\s+{TIME})",
         r"(?<![A-Za-z0-9_.])\d+\.\d+\s*(?:s|secs?|seconds?)\b(?!['’/])",
         r"(?i:\b(?:takes?|took|taking|needs?|needed|costs?|finish(?:es|ed)?\s+in|r[au]ns?\s+in|done\s+in"
             r"|completes?d?\s+in))"
             r"\s+(?:only\s+|about\s+|around\s+|roughly\s+|just\s+|under\s+|over\s+|~|≈)*\d+\s*(?:s|secs?"
             r"|seconds?)\b"),
        ("unit", "a typed latency",
         r"(?<![A-Za-z0-9_.])\d[\d,]{2,}\s+(?:clock\s+)?(?:cycles|clocks)\b"),
        ("unit", "a typed number behind its unit",
         rf"\b(?:{RATE}|(?:µs|ms|ns)(?![\w/]))\)?\s*(?:[:=≈~]|is|of)\s*{_DIGITS}"),
        ("ratio", "a typed percentage",
         rf"{NUMBER}\s*(?:%|per\s?cent\b|pct\b)\s*(?:{_FASTER}|{_BETTER}|{_OF_WHAT}|{_ADJECTIVES}{_PEAK}"
             r"|(?:utili[sz]ation|efficiency|efficient|MFU|busy)\b|of\s+(?:what|that\s+of)\b)",
         r"(?i:\b(?:reach(?:es|ed)?|hits?|achieve[sd]?|attain(?:s|ed)?|sustain(?:s|ed)?|delivers?|delivered))\s+"
             rf"(?:only\s+|about\s+|around\s+|roughly\s+|just\s+|nearly\s+|~|≈)*{NUMBER}\s*(?:%|per\s?cent\b)",
         rf"(?i:\bspen[dt]s?\s+){NUMBER}\s*(?:%|per\s?cent\b)\s*of\s+(?:its|the)\s+time\b"),
        ("ratio", "a typed fraction of a peak",
         rf"(?<![A-Za-z0-9_.])0?\.\d+\s+{_OF_WHAT}"),
        ("ratio", "a typed ratio",
         rf"(?<![A-Za-z0-9_.^×])\d+(?:[.,]\d+)*\s*(?:[×✕✖]|x\b)\s*-?\s*(?:{_COMPARED}|(?:in|on|over|than|vs\.?)"
             rf"\s+{_ADJECTIVES}{_LIBRARY})",
         rf"(?<![A-Za-z0-9_.^×])\d+\.\d+(?:[×✕✖]|x\b){_DIM}",
         r"(?<![A-Za-z0-9_.^×/])(?<![×x] )\d+(?:[.,]\d+)*\s?(?:×|x\b)(?=\s*(?:[.,;:!?)\]|]|$|(?:over|at|vs|than"
             r"|compared|against|by|when|and|or)\b))",
         rf"(?:{NUMBER}|(?<!how )\b(?:several|many)|\b(?:a\s+)?couple\s+of|\ba\s+few)\s+times\s+(?:{_FASTER}|"
             rf"{_BETTER}|{_AS_FAST}"
             rf"|(?:the|its|our|their|that)\s+(?:of\s+)?{_ADJECTIVES}(?:{_SPEED}|{_PEAK})|{_LIBRARY})",
         rf"(?i:\b(?:twice|thrice|double|triple|quadruple|half))\s+(?:again\s+)?(?:{_AS_FAST}|{_FASTER}"
             rf"|(?:of\s+)?(?:(?:the|its|our|their|your|that|this)\s+)(?:of\s+)?{_ADJECTIVES}(?:{_SPEED}|{_PEAK})|"
             rf"(?:of\s+)?{_LIBRARY})",
         rf"(?i:\b(?:doubl|tripl|quadrupl|halv)(?:es?|ed|ing))\s+(?:the|its|our|their|your|that)\s+{_ADJECTIVES}"
             rf"{_SPEED}"),
        ("ratio", "a typed fraction",
         rf"(?i:(?:\b(?:an?|{_WORD})[\s-]+)?\b{_FRACTION})\s+(?:of\s+)?(?:(?:the|its|our|their|that|what)\s+)"
             rf"(?:of\s+)?{_ADJECTIVES}"
             rf"(?:{_SPEED}|{_PEAK}|(?:cuBLAS|cuDNN|SDPA)\b)|(?i:\b{_FRACTION}\s+of\s+)(?:{_PEAK}|(?:cuBLAS|cuDNN"
             r"|SDPA|PyTorch)\b)"),
        ("ratio", "a typed ratio",
         r"(?i:\b(?:speed-?\s?ups?|slow-?downs?|faster|slower))\s*(?:of|by|:|=|is)\s+(?:a\s+factor\s+of\s+)?"
             rf"(?:about\s+|around\s+|~|≈)*{NUMBER}"
             rf"|(?i:\bsp(?:eeds?|ed)\s+(?:it\s+|them\s+|this\s+)?up\s+by\s+)(?:a\s+factor\s+of\s+)?{NUMBER}",
         rf"(?:{_DIGITS}|{_WORDS})[\s-]?fold\s+(?:{_FASTER}|{_BETTER}|{_ADJECTIVES}{_SPEED})",
         rf"\b(?:two|three|four|five|six|seven|eight|nine|ten|hundred)fold\s+(?:{_FASTER}|{_BETTER}|"
             rf"{_ADJECTIVES}{_SPEED})",
         rf"(?i:\borders?\s+of\s+magnitude)\s+(?:{_FASTER}|{_BETTER})"),
        ("word", "a typed comparison",
         rf"(?i:\b(?:faster|slower|quicker))\s+than\s+{_ADJECTIVES}{_RIVAL}",
         rf"(?i:\bas\s+(?:fast|slow|quick)\s+as)\s+{_ADJECTIVES}{_RIVAL}",
         # With a capital it is a task and behind "to" a goal; behind a subject it is a claim.
         r"(?:\b(?<!to )beat|(?i:\b(?<!to )(?:beats|outperform(?:s|ed)?|outruns?|outpaces?d?|surpass(?:es|ed)?"
             r"|overtakes?|overtook|trails|trailed)))"
             rf"\s+{_ADJECTIVES}{_RIVAL}",
         r"(?i:\b(?:wins?\s+(?:over|against)|lo(?:ses|st)\s+(?:to|against)|lags?\s+behind|on\s+par\s+with"
             rf"|keeps?\s+up\s+with))\s+{_ADJECTIVES}{_RIVAL}",
         rf"{_LIBRARY}\s+(?:is|was|gets|got)\s+(?:\w+\s+)?(?:beaten|outperformed|overtaken|surpassed)\b"),
    )
    for pattern in patterns
)  # fmt: skip
# Cheap test that spares most sentences the rules above.
_HINT = re.compile(
    rf"\d|\b(?:{_WORD}|tens|dozens|hundreds|thousands|millions|billions|trillions)\b|half|halv|third|quarter"
    r"|fifth|tenth|twice|thrice|doubl|tripl|quadrupl"
    r"|fold\b|magnitude|times|an?\s+(?:nano|micro|milli|[µnm]s)|faster|slower|quicker|as\s+(?:fast|slow|quick)"
    r"|beat|outp|outr|surpass|overt|trail|par\s+with"
    r"|\bwins?\s|\blo(?:ses|st)\s|lag|keeps?\s+up|[½⅓⅔¼¾⅕⅛⅜⅝⅞①-⑳]|sixth|seventh|eighth|ninth|hundredth|fifth"
    r"|dozen|single\s|[IVXLC]{2,}\s+(?:micro|milli|nano)",
    re.IGNORECASE,
)
_DEFINES = re.compile(
    rf"(?:^|[\s(])(?:1|one|an?)\s*(?:{RATE}|{TIME}|(?:kilo|mega|giga|tera)byte|[kMGT]B)\s*(?:\([^)]*\)\s*)?(?:="
    r"|is|are|equals|means)\s"
    rf"|(?:per|in|to|make)\s+(?:an?|one|1)\s+(?:{TIME}|second)|^\W*(?:an?\s+)?(?:{RATE}|{TIME})\W*(?:\([^)]*\)"
    r"\s*)?(?:=|is|are|means|:)\s",
    re.IGNORECASE,
)
_ANY_NUMBER = re.compile(NUMBER)
_ROUND = re.compile(
    r"(?:an?\s+|one\s+)?(?:thousand|million|billion|trillion)(?:\s+(?:thousand|million|billion|trillion))*\b|"
    r"(?:10*|1[, 0]*|1e\d+|10\^?[\d⁰¹²³⁴-⁹]+|one)(?![\d.,])",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"(?:100|a\s+hundred|one\s+hundred|0|zero)\s*(?:%|per\s?cent)\s+of\s+", re.IGNORECASE)
_SUPPOSED = re.compile(r"\b(?:if|whether|unless|suppose|until|once|when)\b[^,;:]*$", re.IGNORECASE)
_MAYBE = re.compile(r"\b(?:can|could|may|might|must|should|would|to)\s+(?:\w+\s+)?$", re.IGNORECASE)
_NEVER = re.compile(r"\b(?:not|never|cannot)\s+(?:\w+\s+)?$")

_COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_VALUES_OF_WORDS: dict[str, float] = {word: value for value, word in enumerate(_COUNTED.split())} | {
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
    "twice": 2, "double": 2, "doubles": 2, "doubled": 2, "thrice": 3, "triple": 3, "triples": 3, "quadruple": 4,
    "half": 0.5, "halves": 0.5, "halved": 0.5, "third": 1 / 3, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1,
}  # fmt: skip

HEADER_UNIT = re.compile(
    rf"(?:^|[\s(,\[/]){RATE}|(?:^|[\s(,\[])(?:µs|us|ms|ns)(?=$|[\s),\]])|%\s*of\s+{_ADJECTIVES}(?:{_PEAK}|"
    rf"{_LIBRARY}|{_SPEED})|(?i:speed-?\s?up)|[×x]\s+over\b"
)


# --- a quantity beside a word of speed ----------------------------------------------------------------
#
# The rules above know how a speed is usually said. These ask less of the words between: a quantity that compares, and
# somewhere in the sentence what is measured of a program, or how it changed.

_COUNT = (
    rf"(?:(?<![\w.#^])\d(?:[\d,.]*\d)?k?[½⅓⅔¼¾⅛]?|\b(?:{_WORD})(?:(?:\s+and)?[\s-]+(?:{_WORD}))*(?:[\s-]odd"
    r"|\s+and\s+some)?\b)"
)
_SHARE = (
    r"(?:\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|[a-z]+ty)[\s-]+(?:and\s+an?\s+)?"
    r"(?:half|third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|twentieth|hundredth)s?\b"
    r"|\bhalf\b|\d*[½⅓⅔¼¾⅕⅛⅜⅝⅞])"
)
_MULTIPLIED = r"(?:\b(?:doubl|tripl|quadrupl|quintupl|halv)(?:es?|ed|ing)\b|\b(?:twice|thrice)\b)"
_MEASURED = (
    r"(?:(?:speed|throughput|bandwidth|latency|utili[sz]ation|MFU|HFU|efficiency|performance|runtime|run\s+time"
    r"|wall\s+clock|duration|roof(?:line)?|peak|data\s+sheet|brochure|occupancy|(?:hit|miss)\s+rate|rate|energy"
    rf"|traffic|clock|stalls?|issue\s+slots|time)\b|{_LIBRARY})"
)
_CHANGES = (
    r"\b(?:faster|slower|quicker|sooner|dearer|ahead|behind|beats?|trails?|par|outruns?|gain(?:s|ed)?|earn(?:s|ed)"
    r"|cuts?|costs?|reach(?:es|ed)?|achiev\w+|sustain\w*|saturat\w+|deliver\w*|hits|improv\w*|better|worse|drops?"
    r"|falls?|fell|rises?|rose|climbs?|is\s+worth|yields?|wastes?|saves?|grew|busy|served|leaves?|adds|takes?|took"
    r"|needs?|needed|north\s+of)\b"
)
_OF_A_PROGRAM = re.compile(rf"{_MEASURED}|{_CHANGES}", re.IGNORECASE)
_UP_TO_TWENTY = r"(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|a\s+hundred)"
# Each with pieces of words of which one must be there: most sentences have none, and a search takes long.
_SHARES = (
    "hal", "third", "quarter", "fift", "sixth", "seventh", "eighth", "ninth", "tenth", "ieth", "hundredth",
    *"½⅓⅔¼¾⅕⅛⅜⅝⅞",
)  # fmt: skip
_BESIDE_SPEED: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (hints, re.compile("".join(pattern), re.IGNORECASE))
    for hints, *pattern in (
        (("%", "cent", "pct", "points"),
         rf"(?!100\b){_COUNT}[\s-]*(?:%|per\s?cent\b|pct\b|(?:percentage\s+)?points\b(?!\s+(?:of|on|in)\b))"),
        (("dollar", "of ", "parts", "part in", "out of", " in "),
         rf"{_COUNT}\s+(?:cents\s+on\s+the\s+dollar|(?:out\s+)?of\s+(?:every|each)\s+{_COUNT}|parts?\s+in\s+{_COUNT}",
         rf"|out\s+of\s+{_COUNT}|of\s+(?:100|a\s+hundred)\b|in\s+{_UP_TO_TWENTY}\b(?!\s+\w))"),
        (("fold", "factor", "magnitude"),
         rf"(?:{_COUNT}|[①-⑳])[\s-]?fold\b|\bfactor\s+of\s+(?:about\s+|some\s+|roughly\s+)?{_COUNT}",
         r"|\borders?\s+of\s+magnitude"),
        (("×", "x"), rf"{_COUNT}\s?(?:×|x\b)(?!\s*(?:[\d(=]|[A-Za-z]\b|(?-i:[A-Z])))"),
        ((" times", " to ", "ratio"),
         r"(?<![\w.])\d\.\d+(?:\s+times|\s+to\s+\d\.\d+)|\bratio\s+(?:\w+\s+){0,3}\d\.\d"),
        (("fu", "tili", "occupancy", "rate"),
         r"\b(?:MFU|HFU|utili[sz]ation|occupancy|(?:hit|miss)\s+rate)\s+(?:\w+\s+){0,6}?(?:to|at|is|of)\s+(?:the\s+)?",
         rf"(?:\w+\s+(?=\w+ties\b))?{_COUNT}"),
        ((" times",), rf"{_COUNT}\s+times\s+(?:sooner|dearer|{_MEASURED})",
         rf"|\b(?:is|are|was|by|some|about|around|roughly)\s+{_COUNT}\s+times\s*[.;,]",
         rf"|{_SHARE}\s+times\s+(?:as\b|(?:the|its|that)\s+(?:\w+\s+)?{_MEASURED}|{_CHANGES})"),
        ((" to ",), rf"\b(?:outruns?|beats?|ahead|wins?)\b[^.;:]*\s{_COUNT}\s+to\s+{_COUNT}\b"),
        (_SHARES,
         r"\b(?:to|by|gains?|saves?|wastes?|at|cuts?)\s+(?:(?:about|nearly|roughly|some|only|almost)\s+)?", _SHARE,
         r"(?!\s+of\s+(?:a|the)\s+(?:number|row|tile|list|page|room|block|cache|evening|lecture|course)\b)"),
        (_SHARES, rf"{_SHARE}\s+(?:of\s+)?(?:(?:the|its|their|a|that|our|all)\s+)*(?:\w+\s+){{0,2}}?{_MEASURED}",
         rf"|{_SHARE}\s+of\s+(?:the\s+)?(?:run|brochure|cycles|bus)\b"),
        (("doubl", "tripl", "upl", "halv", "twice", "thrice"),
         rf"{_MEASURED}\s+(?:\w+\s+){{0,2}}?{_MULTIPLIED}|{_MULTIPLIED}\s+(?:\w+\s+){{0,2}}?{_MEASURED}"),
    )
)  # fmt: skip
# Units that speak for themselves.
_UNITS_ALONE: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (hints, re.compile("".join(pattern), re.IGNORECASE))
    for hints, *pattern in (
        (("watt", "joule", "j"), rf"{_COUNT}\s*(?:watts?|kilowatts?|(?:milli|kilo)?joules?|(?-i:[mk]?J\b))"),
        (("tera", "giga", "peta", "gig", "micro", "milli", "nano"),
         rf"(?:{_COUNT}|{_SHARE})\s+(?:of\s+an?\s+)?(?:tera|giga|peta|gigs?|micros)(?:flops?)?\b",
         rf"|{_SHARE}\s+of\s+an?\s+(?:micro|milli|nano)second\b|\ba\s+(?:single|dozen)\s+(?:micro|milli|nano)second",
         r"|(?-i:\b[IVXLC]{2,})\s+(?:micro|milli|nano)seconds?\b"),
        (("second", "clock", "tok/s"),
         rf"(?!one\b){_COUNT}k?\s+(?!times\b|to\b)(?:\w+\s+){{0,4}}?(?:a|per|each|every)\s+(?:second|clock)\b",
         r"(?=\s*(?:[.,;:!)]|$|per\b|for\b|on\b|at\b|out\b|across\b|when\b|with\b|the\b))", rf"|{_COUNT}k?\s*tok/s"),
        (("cycles", "ticks", "clocks"),
         r"\b(?:every|over|after|needs?|takes?|costs?|some|about|around|than)\s+(?:(?:some|about|over)\s+)?",
         r"(?!(?:\d|one|two|three|four|five|six|seven|eight|nine)\s+(?:clock|cycle|tick))",
         rf"{_COUNT}\s+(?:clock\s+)?(?:cycles|ticks|clocks)\b"),
        (("out of every", "half"), rf"{_COUNT}\s+out\s+of\s+every\s+{_COUNT}|\bhalf\s?way\s+(?:through|to\s+peak)\b"),
        (("compil", "autotun", "prefill", "decod", "training"),
         rf"\b(?:compil|autotun|prefill|decod|training)\w*\b.*?{_COUNT}\s+(?:minutes|hours|seconds)\b"),
    )
)  # fmt: skip
_QUOTED_WHOLE = re.compile(r"\s*(?:#+\s*|[-*+]\s+)?[\"“”].*[\"“”]\s*¶?\s*")


def _beside_speed(sentence: str) -> Iterator[re.Match[str]]:
    """Quantities of a sentence that says something of a program's speed."""
    if _QUOTED_WHOLE.fullmatch(sentence):
        return  # what others say, set in quotation marks
    low = sentence.lower()
    for rules in (_UNITS_ALONE, _BESIDE_SPEED if _OF_A_PROGRAM.search(sentence) else ()):
        for hints, pattern in rules:
            if any(hint in low for hint in hints):
                yield from pattern.finditer(sentence)


# --- one sentence ------------------------------------------------------------------------------------


def _amount(words: str) -> float | None:
    """The number in a piece of prose, as a factor: 0.8 of "80 %", 2 of "twice"."""
    whole = 100 if re.search(r"%|per\s?cent", words) else 1
    digits = re.search(r"\d+(?:\.\d+)?", words.replace(",", ""))
    if digits:
        return float(digits[0]) / whole
    counted = (word.removesuffix("fold") for word in re.findall(r"[a-z]+", words.lower()))
    return next((_VALUES_OF_WORDS[word] / whole for word in counted if word in _VALUES_OF_WORDS), None)


_AT_MOST = re.compile(
    r"\b(?:less\s+than|fewer\s+than|under|below|within|at\s+most|up\s+to|(?:no|not)\b[^.;:]*\bmore\s+than"
    r"|(?:not|never|hardly|nowhere)\b[^.;:]*\bas\s+much\s+as|hardly\s+by)\s*(?:\w+\s+)?$",
    re.IGNORECASE,
)


_ABOUT = re.compile(
    r"\b(?:about|around|roughly|nearly|almost|some|close\s+to)\s+(?:[\w.]+\s*){0,2}(?:\W|$)", re.IGNORECASE
)


def _held_up(excerpt: str, condition: str, before: str) -> bool:
    """True if a bound of a claim's condition holds up the number that the sentence types, in its direction."""
    amount = _amount(excerpt)
    percent = bool(re.search(r"%|per\s?cent|\bpart\s+in\b", excerpt))
    if part := re.search(r"\bpart\s+in\s+(\w+)", excerpt):
        amount = 1 / (_amount(part[1]) or 1.0)
    if not amount:
        return False
    at_most, about = bool(_AT_MOST.search(before)), bool(_ABOUT.search(before + excerpt))
    return bounds_of(condition).hold(amount, at_most=at_most, about=about, percent=percent)


def in_sentence(sentence: str, *, in_claim: bool, condition: str | None) -> Iterator[tuple[int, str, str]]:
    """Place, excerpt and reason of every typed number in one plain sentence."""
    if not _HINT.search(sentence):
        return
    asks = bool(re.search(r"\?[\"'”’)\]*_\s]*$", sentence))
    defines = bool(_DEFINES.search(sentence))
    taken: list[tuple[int, int]] = []
    states_nothing: object
    for kind, what, pattern in _RULES:
        for match in pattern.finditer(sentence):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            excerpt, before = " ".join(match[0].split()), sentence[: match.start()]
            typed = bool(re.search(r"\d", excerpt))
            if kind == "unit":  # what a unit means is not how fast something is
                states_nothing = defines and all(map(_ROUND.fullmatch, _ANY_NUMBER.findall(excerpt)))
            elif kind == "ratio":
                held = not typed if condition is None else _held_up(excerpt, condition, before)
                states_nothing = _WHOLE.match(excerpt) or (asks and not typed) or (in_claim and held)
            else:  # held up by the claim's condition, or a question, a case only supposed, a wish, a possibility
                supposed = not typed and (asks or _SUPPOSED.search(before))
                states_nothing = in_claim or supposed or (_MAYBE.search(before) and not _NEVER.search(before))
            if not states_nothing:
                taken.append(match.span())
                yield match.start(), excerpt, f"{what}; {FILL if typed or kind == 'unit' else CLAIM}"
    if asks or taken:
        return
    for match in _beside_speed(sentence):
        excerpt = " ".join(match[0].split())
        if defines and all(map(_ROUND.fullmatch, _ANY_NUMBER.findall(excerpt))):
            continue
        held = in_claim and (
            not re.search(r"\d", excerpt)
            if condition is None
            else _held_up(excerpt, condition, sentence[: match.start()])
        )
        if not held:
            yield match.start(), excerpt, f"a typed quantity beside a word of speed; {FILL}"
            return
