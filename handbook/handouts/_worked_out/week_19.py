"""How often a step of the multiply in Triton stands in a listing for AMD, for week 19."""

STAGES = 3  # as k05_triton asks for it
IN_THE_LOOP = 1
AHEAD = (
    STAGES - IN_THE_LOOP
)  # steps whose tiles are there when nothing is left to fetch

ANSWERS = {"Count by hand first": (IN_THE_LOOP + AHEAD, STAGES, AHEAD)}
