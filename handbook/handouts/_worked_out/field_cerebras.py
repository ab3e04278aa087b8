"""Operations of a cycle, for the field guide's page on Cerebras."""

CORES, AT_ONCE = 900_000, 8

ANSWERS = {"Test a peak": (2, AT_ONCE, CORES, 2 * AT_ONCE * CORES)}
